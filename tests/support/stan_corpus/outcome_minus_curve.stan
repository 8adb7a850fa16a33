data {
  int<lower=0> N;
  vector[N] x;
  array[N] real y;
}
parameters {
  real a;
  real<lower=0> s;
}
model {
  a ~ normal(0, 1);
  s ~ exponential(1);
  for (n in 1 : N) (y[n] - a * x[n]) ~ double_exponential(0, s); // [likelihood]
}
