data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real alpha;
  real<lower=-1, upper=1> beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 1);
  sigma ~ lognormal(0, 0.5);
  y[2 : N] ~ normal(alpha + beta * y[1 : (N - 1)], sigma); // [likelihood]
}
