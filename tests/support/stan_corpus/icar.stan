data {
  int<lower=0> N;
  int<lower=0> E;
  array[E] int<lower=1, upper=N> node1;
  array[E] int<lower=1, upper=N> node2;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  vector[N] phi;
}
model {
  y ~ poisson_log(alpha + phi);
  alpha ~ normal(0, 1);
  target += -0.5 * dot_self(phi[node1] - phi[node2]); // [refused]
}
