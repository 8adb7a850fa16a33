data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  real lp = 0;
  lp += normal_lpdf(mu | 0, 1);
  lp += exponential_lpdf(s | 1);
  target += lp;
  y ~ normal(mu, s); // [likelihood]
}
