data {
  int<lower=1> N;
  vector<lower=0, upper=1>[N] y;
}
parameters {
  real<lower=0, upper=1> mu;
  real<lower=0> phi;
  real<lower=0, upper=1> zoi;
  real<lower=0, upper=1> coi;
}
model {
  mu ~ beta(3, 2);
  phi ~ gamma(20, 2);
  zoi ~ beta(2, 3);
  coi ~ beta(3, 2);
  for (n in 1 : N) {
    if (y[n] == 0) {
      target += bernoulli_lpmf(1 | zoi) + bernoulli_lpmf(0 | coi); // [likelihood]
    } else if (y[n] == 1) {
      target += log(zoi) + log(coi); // [likelihood]
    } else {
      target += log1m(zoi) + beta_lpdf(y[n] | mu * phi, (1 - mu) * phi); // [likelihood]
    }
  }
}
