data {
  int<lower=2> K;
  int<lower=0> N;
  array[N] int<lower=1, upper=K> y;
}
parameters {
  ordered[K - 1] c; // [refused]
}
model {
  for (n in 1 : N) y[n] ~ ordered_logistic(0, c); // [likelihood]
}
