data {
  int<lower=1> N;
  vector<lower=0>[N] Y;
  array[N] int<lower=-1, upper=2> cens;
  int prior_only;
}
parameters {
  real<lower=0> rate;
}
model {
  if (!prior_only) {
    for (n in 1 : N) {
      // special treatment of censored data
      if (cens[n] == 0) {
        target += exponential_lpdf(Y[n] | rate); // [likelihood]
      } else if (cens[n] == 1) {
        target += exponential_lccdf(Y[n] | rate); // [likelihood]
      } else if (cens[n] == -1) {
        target += exponential_lcdf(Y[n] | rate); // [likelihood]
      }
    }
  }
  target += gamma_lpdf(rate | 3, 2);
}
