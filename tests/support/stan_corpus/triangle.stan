data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real<lower=0, upper=2> a;
  real<lower=-a, upper=a> b;
}
model {
  y ~ normal(b, a + 0.1); // [likelihood]
}
