data {
  int<lower=1> N;
  vector<lower=0>[N] Y;
  array[N] int<lower=-1, upper=2> cens;
  int prior_only;
}
transformed data {
  int Nevent = 0;
  int Nrcens = 0;
  int Nlcens = 0;
  array[N] int Jevent;
  array[N] int Jrcens;
  array[N] int Jlcens;
  // collect indices of censored data
  for (n in 1 : N) {
    if (cens[n] == 0) {
      Nevent += 1;
      Jevent[Nevent] = n;
    } else if (cens[n] == 1) {
      Nrcens += 1;
      Jrcens[Nrcens] = n;
    } else if (cens[n] == -1) {
      Nlcens += 1;
      Jlcens[Nlcens] = n;
    }
  }
}
parameters {
  real<lower=0> rate;
}
model {
  if (!prior_only) {
    vector[N] mu = rep_vector(0.0, N);
    mu += rate;
    // vectorized log-likelihood contributions of censored data
    target += exponential_lpdf(Y[Jevent[1 : Nevent]] | mu[Jevent[1 : Nevent]]); // [likelihood]
    target += exponential_lccdf(Y[Jrcens[1 : Nrcens]] | mu[Jrcens[1 : Nrcens]]);
    target += exponential_lcdf(Y[Jlcens[1 : Nlcens]] | mu[Jlcens[1 : Nlcens]]);
  }
  target += gamma_lpdf(rate | 3, 2);
}
