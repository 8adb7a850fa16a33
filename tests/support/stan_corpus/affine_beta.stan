data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real<lower=-1, upper=1> rho;
}
model {
  (rho + 1) / 2 ~ beta(2, 3);
  y ~ normal(rho, 1); // [likelihood]
}
