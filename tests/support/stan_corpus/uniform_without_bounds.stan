data {
  int<lower=1> N;
  int<lower=2> T;
  array[N, T] int<lower=0, upper=1> y;
}
parameters {
  vector[2] beta; // declared without the bounds of its prior
}
transformed parameters {
  matrix[N, T] p;
  for (i in 1 : N) {
    real before = 0;
    for (t in 1 : T) {
      p[i, t] = inv_logit(beta[1] * before + beta[2] * (t - 1 - before));
      before = before + 1 - y[i, t];
    }
  }
}
model {
  beta[1] ~ uniform(-3, 0);
  beta[2] ~ uniform(0, 3);
  for (i in 1 : N) {
    for (t in 1 : T) {
      y[i, t] ~ bernoulli(p[i, t]); // [likelihood]
    }
  }
}
