data {
  int<lower=0> n;
  int<lower=0, upper=n> k;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  k ~ binomial(n, theta); // [likelihood]
}
