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
  s ~ exponential(1);
  target += -N * log(s); // [refused]
  target += -0.5 * dot_self((y - mu) / s);
}
