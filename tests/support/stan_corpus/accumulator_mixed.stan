data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  real lp = 0;
  lp += normal_lpdf(mu | 0, 1);
  lp += normal_lpdf(y | mu, 1);
  target += lp; // [refused]
}
