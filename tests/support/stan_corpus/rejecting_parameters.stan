data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real<lower=0> a;
  real<lower=0> b;
}
transformed parameters {
  real<lower=0> gap = a - b; // the program's law is that of its priors, given a > b
}
model {
  a ~ exponential(1);
  b ~ exponential(2);
  y ~ normal(gap, 1); // [likelihood]
}
