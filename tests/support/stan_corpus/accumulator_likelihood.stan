data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  real ll = 0;
  for (n in 1 : N) {
    ll = ll + normal_lpdf(y[n] | mu, s);
  }
  mu ~ normal(0, 1);
  s ~ exponential(1);
  target += ll; // [likelihood]
}
