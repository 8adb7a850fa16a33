data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
}
transformed parameters {
  real log_s = log(s);
}
model {
  log_s ~ normal(0, 1);
  target += -log_s; // log absolute derivative
  y ~ normal(0, s); // [likelihood]
}
