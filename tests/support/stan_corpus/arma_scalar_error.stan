data {
  int<lower=2> T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=-1, upper=1> theta;
  real<lower=0> sigma;
}
model {
  real err;
  mu ~ normal(0, 2);
  sigma ~ cauchy(0, 1);
  err = mu + phi * mu - y[1];
  err ~ normal(0, sigma); // [likelihood]
  for (t in 2 : T) {
    err = mu + phi * y[t - 1] + theta * err - y[t];
    err ~ normal(0, sigma); // [likelihood]
  }
}
