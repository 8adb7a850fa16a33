data {
  int<lower=0> N;
  int<lower=1> K;
  array[N] int<lower=1, upper=K> y;
}
parameters {
  simplex[K] theta;
}
model {
  for (n in 1 : N) y[n] ~ categorical(theta); // [likelihood]
}
