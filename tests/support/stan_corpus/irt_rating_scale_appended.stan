functions {
  real rating(int y, real theta, real beta, vector kappa) {
    vector[rows(kappa) + 1] p;
    p = softmax(cumulative_sum(append_row(rep_vector(0.0, 1), theta - beta - kappa)));
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
  int m;
  m = max(y);
}
parameters {
  vector[I - 1] free_items;
  vector[m - 1] free_steps;
  vector[J] theta;
}
transformed parameters {
  vector[I] beta;
  vector[m] kappa = append_row(free_steps, -sum(free_steps));
  beta = append_row(free_items,
                    rep_vector(-1 * sum(free_items), 1));
}
model {
  beta ~ normal(0, 2);
  kappa ~ normal(0, 1);
  theta ~ normal(0, 1);
  for (n in 1 : N) {
    target += rating(y[n], theta[person[n]], beta[item[n]], kappa); // [likelihood]
  }
}
