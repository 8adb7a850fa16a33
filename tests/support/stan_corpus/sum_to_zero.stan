data {
  int<lower=2> I;
  int<lower=1> J;
  array[I, J] int<lower=0, upper=1> y;
}
parameters {
  vector[I - 1] free;
  vector[J] theta;
}
transformed parameters {
  vector[I] beta;
  beta[1 : (I - 1)] = free;
  beta[I] = -1 * sum(free);
}
model {
  target += normal_lpdf(beta | 0, 3);
  theta ~ normal(0, 1);
  for (i in 1 : I) {
    y[i] ~ bernoulli_logit(theta - beta[i]); // [likelihood]
  }
}
