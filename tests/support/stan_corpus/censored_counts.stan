data {
  int<lower=1> N;
  array[N] int<lower=0> y;
  array[N] int<lower=0, upper=1> many;
}
parameters {
  real<lower=0> rate;
}
model {
  rate ~ gamma(3, 0.5);
  for (n in 1 : N) {
    if (many[n]) {
      target += poisson_lccdf(y[n] | rate); // [likelihood]
    } else {
      target += poisson_lpmf(y[n] | rate); // [likelihood]
    }
  }
}
