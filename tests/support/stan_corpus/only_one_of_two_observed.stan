data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real mu;
  real a;
}
model {
  mu ~ normal(0, 1);
  a ~ normal(0, 1);
  x ~ normal(mu, 1); // [refused]
  y ~ normal(a * x, 1);
}
