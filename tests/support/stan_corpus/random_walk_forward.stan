data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  vector[T] mu;
}
model {
  mu[T] ~ normal(0, 3);
  for (t in 1 : (T - 1)) mu[t] ~ normal(mu[t + 1], 1); // [refused]
  y ~ normal(mu, 1); // [likelihood]
}
