data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> g;
  vector[N] x;
  vector[N] y;
}
parameters {
  corr_matrix[2] Omega;
  vector<lower=0>[2] tau;
  vector[2] mu;
  array[J] vector[2] b;
  real<lower=0> sigma;
}
model {
  tau ~ cauchy(0, 2.5);
  Omega ~ lkj_corr(2);
  mu ~ normal(0, 5);
  sigma ~ exponential(1);
  b ~ multi_normal(mu, quad_form_diag(Omega, tau));
  for (n in 1 : N) {
    y[n] ~ normal(b[g[n], 1] + b[g[n], 2] * x[n], sigma); // [likelihood]
  }
}
