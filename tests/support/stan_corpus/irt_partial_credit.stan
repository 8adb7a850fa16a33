functions {
  real partial_credit(int y, real theta, vector beta) {
    vector[rows(beta) + 1] steps = append_row(rep_vector(0.0, 1), theta - beta);
    vector[rows(beta) + 1] p = softmax(cumulative_sum(steps));
    return categorical_lpmf(y + 1 | p);
  }
}
data {
  int<lower=1> I;
  int<lower=1> J;
  int<lower=1> N;
  array[N] int<lower=1, upper=I> item;
  array[N] int<lower=1, upper=J> person;
  array[N] int<lower=0> y;
}
transformed data {
  array[I] int m = rep_array(0, I);
  array[I] int first;
  for (n in 1 : N) {
    if (y[n] > m[item[n]]) m[item[n]] = y[n];
  }
  first[1] = 1;
  for (i in 2 : I) first[i] = first[i - 1] + m[i - 1];
}
parameters {
  vector<lower=0>[I] alpha;
  vector[sum(m) - 1] free;
  vector[J] theta;
}
transformed parameters {
  vector[sum(m)] beta;
  beta[1 : (sum(m) - 1)] = free;
  beta[sum(m)] = -sum(free);
}
model {
  alpha ~ lognormal(0.5, 0.5);
  beta ~ normal(0, 2);
  theta ~ normal(0, 1);
  for (n in 1 : N) {
    target += partial_credit(y[n], alpha[item[n]] * theta[person[n]], segment(beta, first[item[n]], m[item[n]])); // [likelihood]
  }
}
