functions {
  real halves_lpdf(vector x, real s) {
    return -2 * log(s) - 0.5 * dot_self(x / s);
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  vector<lower=0>[2] s;
}
model {
  s ~ halves(2); // [refused] //
  y ~ normal(s[1], s[2]); // [likelihood]
}
