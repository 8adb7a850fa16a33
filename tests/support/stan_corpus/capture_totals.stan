data {
  int<lower=1> M;
  int<lower=1> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int<lower=0> total;
  for (i in 1 : M) {
    total[i] = sum(y[i]);
  }
}
parameters {
  real<lower=0, upper=1> omega;
  vector[M] ability;
}
model {
  ability ~ normal(-1, 1);
  for (i in 1 : M) {
    if (total[i] == 0) {
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(0 | T, ability[i]), // [likelihood]
                            bernoulli_lpmf(0 | omega));
    } else {
      target += bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(total[i] | T, ability[i]); // [likelihood]
    }
  }
}
