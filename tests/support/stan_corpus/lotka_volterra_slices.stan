functions {
  vector rate(real t, vector z, array[] real theta) {
    real u = z[1];
    real v = z[2];
    return [(theta[1] - theta[2] * v) * u, (-theta[3] + theta[4] * u) * v]';
  }
}
data {
  int<lower=0> N;
  array[N] real ts;
  array[2] real y_init;
  array[N, 2] real<lower=0> y;
}
parameters {
  array[4] real<lower=0> theta;
  vector<lower=0>[2] z_init;
  array[2] real<lower=0> sigma;
}
transformed parameters {
  array[N] vector[2] z = ode_rk45(rate, z_init, 0, ts, theta);
}
model {
  theta[{1, 3}] ~ normal(1, 0.5);
  theta[{2, 4}] ~ normal(0.5, 0.1);
  sigma ~ lognormal(-1, 1);
  z_init ~ lognormal(0, 0.5);
  for (k in 1 : 2) {
    y_init[k] ~ lognormal(log(z_init[k]), sigma[k]); // [likelihood]
    y[ : , k] ~ lognormal(log(to_vector(z[ : , k])), sigma[k]); // [likelihood]
  }
}
