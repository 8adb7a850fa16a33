data {
  int<lower=1> J;
  vector[J] y;
}
parameters {
  real<lower=0> tau;
  vector<lower=0>[J] lambda;
  vector[J] z;
}
transformed parameters {
  vector[J] beta = z .* lambda * tau;
}
model {
  tau ~ student_t(3, 0, 2 * 0.5);
  lambda ~ cauchy(0, 1);
  z ~ std_normal();
  y ~ normal(beta, 1); // [likelihood]
}
