functions {
  real halves_lpdf(real x, real s) {
    return normal_lpdf(x | 0, s) + log(2);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
}
model {
  s ~ halves(2); //
  y ~ normal(0, s); // [likelihood]
}
