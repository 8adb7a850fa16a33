data {
  int<lower=0> N;
  vector[N] pre;
  vector[N] post;
}
transformed data {
  vector[N] gain = post - pre;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 1);
  gain ~ normal(mu, 1);
}
