data {
  int<lower=2> K;
  int<lower=0> N;
  array[N] int<lower=1, upper=K> y;
  vector[N] x;
}
parameters {
  real beta;
  ordered[K - 1] c;
}
model {
  beta ~ normal(0, 1);
  c ~ normal(0, 5);
  for (n in 1 : N) y[n] ~ ordered_logistic(x[n] * beta, c); // [likelihood]
}
