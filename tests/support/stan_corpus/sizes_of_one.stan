data {
  int<lower=1> N;
  int<lower=1> J;
  int<lower=1> K; // 1 in the data
  array[N] int<lower=1, upper=J> group;
  vector[N] y;
}
parameters {
  array[K] vector<lower=0>[1] tau;
  matrix[K, J] effect;
  vector[J] shift;
}
model {
  tau[1] ~ exponential(1);
  effect[1] ~ normal(0, tau[1, 1]);
  shift[1] ~ std_normal();
  for (j in 2 : 3) {
    shift[j] ~ normal(0, 2);
  }
  y ~ normal(effect[1, group]' + shift[group], 1); // [likelihood]
}
