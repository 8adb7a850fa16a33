data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  real lp = normal_lpdf(mu | 0, 1);
  for (i in 1 : 3) target += lp; // [refused]
  y ~ normal(mu, 1); // [likelihood]
}
