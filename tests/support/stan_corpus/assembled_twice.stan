data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real a;
  real b;
}
transformed parameters {
  vector[3] both;
  both[1] = a;
  both[2] = b;
  both[3] = a; // a stands at two places
}
model {
  both ~ normal(0, 1); // [refused]
  y ~ normal(a + b, 1); // [likelihood]
}
