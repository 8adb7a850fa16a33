data {
  int<lower=1> I;
  array[I] int<lower=0> n;
  array[I] int<lower=0> N;
}
parameters {
  real alpha;
  real<lower=0> tau;
  vector[I] b;
}
transformed parameters {
  real<lower=0> sigma = 1.0 / sqrt(tau);
}
model {
  alpha ~ normal(0.0, 1.0);
  tau ~ gamma(0.01, 0.01); // one draw in a thousand is too small for a double
  b ~ normal(0.0, sigma);
  n ~ binomial_logit(N, alpha + b); // [likelihood]
}
