data {
  int<lower=1> N;
  vector[N] y;
  vector[N] w;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 3);
  for (n in 1 : N) {
    target += w[n] * normal_lpdf(y[n] | mu, 1); // [likelihood] [refused]
  }
}
