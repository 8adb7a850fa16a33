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
  target += -0.5 * sum(square((y - mu) / s)) - N * log(s); // [likelihood] [refused]
}
