data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  vector[J] eta;
  real mu;
  real<lower=0> tau;
}
transformed parameters {
  vector[J] theta;
  theta = eta * tau + mu;
}
model {
  eta ~ std_normal();
  y ~ normal(theta, /* known scales */ sigma); // [likelihood]
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
}
generated quantities {
  array[J] real y_rep = normal_rng(theta, sigma);
  vector[J] log_lik;
  for (j in 1:J) {
    log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
  }
}
