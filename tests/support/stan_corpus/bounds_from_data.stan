data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real<lower=max(y), upper=20> b; // [refused]
}
model {
  b ~ exponential(0.1);
  y ~ uniform(0, b); // [likelihood]
}
