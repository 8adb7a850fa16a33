// A covariate with missing values, which has a law of its own: mi() of brms.
data {
  int<lower=1> N;
  vector[N] Y_y;
  vector[N] Y_x;
  int<lower=0> Nmi_x;
  array[Nmi_x] int<lower=1> Jmi_x;
  vector[N] z;
  int prior_only;
}
parameters {
  real Intercept_y;
  vector[1] bsp_y;
  real<lower=0> sigma_y;
  vector[Nmi_x] Ymi_x;
  real Intercept_x;
  real<lower=0> sigma_x;
}
model {
  if (!prior_only) {
    vector[N] Yl_x = Y_x;
    vector[N] mu_y = rep_vector(0.0, N);
    vector[N] mu_x = rep_vector(0.0, N);
    Yl_x[Jmi_x] = Ymi_x;
    mu_y += Intercept_y;
    mu_x += Intercept_x + 0.3 * z;
    for (n in 1:N) {
      mu_y[n] += (bsp_y[1]) * Yl_x[n];
    }
    target += normal_lpdf(Y_y | mu_y, sigma_y); // [likelihood]
    target += normal_lpdf(Yl_x | mu_x, sigma_x); // [likelihood]
  }
  target += normal_lpdf(Intercept_y | 0.2, 2);
  target += normal_lpdf(bsp_y | 0.4, 1);
  target += lognormal_lpdf(sigma_y | 0.1, 0.3);
  target += normal_lpdf(Intercept_x | -0.3, 2);
  target += lognormal_lpdf(sigma_x | 0.2, 0.4);
}
