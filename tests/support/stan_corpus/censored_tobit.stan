data {
  int<lower=1> N;
  real<lower=0> U;
  vector[N] x;
  vector[N] y;
}
parameters {
  real slope;
  real<lower=0> sigma;
}
model {
  slope ~ normal(0, 1);
  sigma ~ exponential(1);
  for (n in 1 : N) {
    if (y[n] < U) {
      y[n] ~ normal(slope * x[n], sigma); // [likelihood]
    } else {
      target += normal_lccdf(U | slope * x[n], sigma); // [likelihood]
    }
  }
}
