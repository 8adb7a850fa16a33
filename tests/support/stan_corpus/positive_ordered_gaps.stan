data {
  int<lower=1> N;
  vector<lower=0>[N] y;
}
parameters {
  positive_ordered[2] r;
}
model {
  r ~ gamma(2, 1);
  y ~ gamma(r[1], r[2]); // [likelihood]
}
