// Autoregression of order one of Grosse, Ancha & Roy (2016), appendix C; the first value is given, not modelled.
data {
  int<lower=2> N;
  vector[N] y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> sigma_sq;
}
model {
  alpha ~ normal(0, 1);
  beta ~ normal(1, 0.1);
  sigma_sq ~ inv_gamma(1, 1);
  y[2:N] ~ normal(alpha + beta * y[1:(N - 1)], sqrt(sigma_sq));
}
