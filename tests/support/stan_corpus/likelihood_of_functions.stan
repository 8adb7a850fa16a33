functions {
  vector curve(vector x, real a, real b) {
    vector[rows(x)] m;
    for (i in 1 : rows(x)) {
      m[i] = a * exp(-b * x[i]);
    }
    return m;
  }
}
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real<lower=0> a;
  real<lower=0> b;
  real<lower=0> tau;
}
transformed parameters {
  real<lower=0> sigma = 1 / sqrt(tau);
  vector[N] m;
  m = curve(x, a, b);
}
model {
  a ~ normal(0, 5);
  b ~ uniform(0, 3);
  tau ~ gamma(2, 2);
  y ~ normal(m, sigma); // [likelihood]
}
