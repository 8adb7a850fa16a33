data {
  int<lower=1> J;
  vector<lower=0>[J] y;
}
parameters {
  real<lower=0> tau;
  vector<lower=0>[J] theta;
}
model {
  tau ~ normal(0, 1);
  theta ~ normal(0, tau); // half normal: the constant is 1/2 whatever tau
  y ~ exponential(theta); // [likelihood]
}
