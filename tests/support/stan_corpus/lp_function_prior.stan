functions {
  real unit_normal_lp(real x, real m, real s) {
    x ~ normal(0, 1);
    return m + s * x;
  }
}
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real raw;
}
model {
  real mu = unit_normal_lp(raw, 1, 2); // [refused]
  y ~ normal(mu, 1); // [likelihood]
}
