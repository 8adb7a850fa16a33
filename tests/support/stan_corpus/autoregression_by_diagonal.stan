data {
  int<lower=1> m;
  int<lower=1> p;
  int<lower=1> N;
  array[N] vector[m] y;
}
parameters {
  array[p] matrix[m, m] phi;
  array[2] vector[p] centre;
  array[2] vector<lower=0>[p] precision;
  real<lower=0> sigma;
}
model {
  for (t in (p + 1) : N) {
    vector[m] mu = rep_vector(0, m);
    for (k in 1 : p) {
      mu += phi[k] * y[t - k];
    }
    y[t] ~ normal(mu, sigma); // [likelihood]
  }
  for (k in 1 : p) {
    diagonal(phi[k]) ~ normal(centre[1, k],
                              1 / sqrt(precision[1, k]));
    for (i in 1 : m) {
      for (j in 1 : m) {
        if (i != j) // all other elements
          phi[k, i, j] ~ normal(centre[2, k], 1 / sqrt(precision[2, k]));
      }
    }
  }
  for (i in 1 : 2) {
    centre[i] ~ normal(0, 0.3);
    precision[i] ~ gamma(8, 0.5);
  }
  sigma ~ gamma(4, 4);
}
