functions {
  void likelihood_lp(vector y, real mu) {
    y ~ normal(mu, 1);
  }
}
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 1);
  likelihood_lp(y, mu); // [refused]
}
