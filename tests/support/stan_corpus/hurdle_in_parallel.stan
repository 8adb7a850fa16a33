functions {
  // as brms writes hurdle_lognormal
  real hurdle_lognormal_lpdf(real y, real mu, real sigma, real hu) {
    if (y == 0) {
      return bernoulli_lpmf(1 | hu);
    } else {
      return bernoulli_lpmf(0 | hu) + lognormal_lpdf(y | mu, sigma);
    }
  }
  real partial_log_lik_lpmf(array[] int seq, int start, int end, data vector Y, real Intercept, real sigma, real hu) {
    real ptarget = 0;
    int N = end - start + 1;
    vector[N] mu = rep_vector(0.0, N);
    mu += Intercept;
    for (n in 1 : N) {
      int nn = n + start - 1;
      ptarget += normal_lpdf(Y[nn] | mu[n], sigma);
    }
    return ptarget;
  }
}
data {
  int<lower=1> N;
  vector<lower=0>[N] y;
  vector[N] z;
  int grainsize;
}
transformed data {
  array[N] int seq = linspaced_int_array(N, 1, N);
}
parameters {
  real mu;
  real Intercept;
  real<lower=0, upper=1> hu;
}
model {
  mu ~ normal(0.5, 1);
  Intercept ~ normal(-1, 2);
  hu ~ beta(2, 3);
  for (n in 1 : N) {
    target += hurdle_lognormal_lpdf(y[n] | mu, 0.8, hu); // [likelihood]
  }
  target += reduce_sum(partial_log_lik_lpmf, seq, grainsize, z, Intercept, 1.5, hu); // [likelihood]
}
