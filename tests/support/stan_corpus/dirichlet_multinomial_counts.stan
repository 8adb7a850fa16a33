data {
  int<lower=1> J;
  int<lower=1> K;
  array[J, K] int<lower=0> y;
  vector<lower=0>[K] a;
}
parameters {
  array[J] simplex[K] theta;
}
model {
  for (j in 1 : J) {
    theta[j] ~ dirichlet(a);
    y[j] ~ multinomial(theta[j]); // [likelihood]
  }
}
