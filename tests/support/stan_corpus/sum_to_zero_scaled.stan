data {
  int<lower=2> I;
  vector[I] y;
}
parameters {
  vector[I - 1] free;
  real<lower=0> s;
}
transformed parameters {
  vector[I] beta;
  beta[1 : I - 1] = free;
  beta[I] = -sum(free);
}
model {
  s ~ lognormal(0, 1);
  beta ~ normal(0, s); // the constant of the law given the sum depends on s [refused]
  y ~ normal(beta, 1); // [likelihood]
}
