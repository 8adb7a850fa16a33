data {
  int<lower=0> N;
  array[N] real<lower=0> dose;
  vector[N] x;
}
transformed data {
  vector[N] scaled;
  for (n in 1 : N) {
    scaled[n] = log10(dose[n]);
  }
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  sigma ~ lognormal(-1, 0.5);
  scaled ~ normal(a + b * x, sigma); // [likelihood]
}
