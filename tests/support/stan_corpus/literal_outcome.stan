data {
  int<lower=1> n;
  int<lower=1> N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> Omega;
  real<lower=0, upper=1> p;
}
model {
  y ~ bernoulli(p);
  for (i in 1 : n) 1 ~ bernoulli(Omega); // [refused]
}
