// Linear regression of Grosse, Ancha & Roy (2016), appendix C: both variances unknown.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] x;
  vector[N] y;
}
parameters {
  real<lower=0> sigma_sq;
  real<lower=0> scale_sq;
  real alpha;
  vector[K] beta;
}
model {
  sigma_sq ~ inv_gamma(1, 1);
  scale_sq ~ inv_gamma(1, 1);
  alpha ~ normal(0, sqrt(scale_sq));
  beta ~ normal(0, sqrt(scale_sq));
  y ~ normal(alpha + x * beta, sqrt(sigma_sq));
}
