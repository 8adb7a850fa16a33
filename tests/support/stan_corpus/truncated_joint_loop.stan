data {
  int<lower=1> J;
  array[J] int<lower=0> y;
}
parameters {
  real<lower=0, upper=5> a;
  array[J] real<lower=0, upper=10> lambda;
}
model {
  for (j in 1 : J) {
    lambda[j] ~ gamma(a + 1, 1);
    y[j] ~ poisson(lambda[j]); // [likelihood]
  }
}
