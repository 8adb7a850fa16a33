data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  mu ~ normal(0, 1);
  target += -log(s); // [refused]
  y ~ normal(mu, s);
}
