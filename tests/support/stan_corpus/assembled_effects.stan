data {
  int<lower=1> I;
  int<lower=1> N;
  array[N] int<lower=1, upper=I> item;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[I] slope;
  vector[I] place;
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
}
transformed parameters {
  array[I] vector[2] both; // holds every element of slope and place once
  for (i in 1 : I) {
    both[i, 1] = slope[i];
    both[i, 2] = place[i];
  }
}
model {
  mu ~ normal(0, 1);
  tau ~ exponential(1);
  L ~ lkj_corr_cholesky(4);
  for (i in 1 : I) {
    target += multi_normal_cholesky_lpdf(both[i] | mu, diag_pre_multiply(tau, L));
  }
  y ~ bernoulli_logit(exp(slope[item]) .* place[item]); // [likelihood]
}
