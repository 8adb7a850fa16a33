data {
  int<lower=0> N;
  int<lower=0, upper=1> heavy;
  array[N] int<lower=0, upper=1> seen;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  if (heavy == 1) {
    mu ~ student_t(3, 0, 1);
  } else {
    mu ~ normal(0, 1);
  }
  for (n in 1 : N) {
    if (seen[n] == 1) y[n] ~ normal(mu, s); // [likelihood]
  }
}
