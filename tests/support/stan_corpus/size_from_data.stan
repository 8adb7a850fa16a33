data {
  int<lower=1> I;
  array[I] int<lower=1> y;
}
transformed data {
  int m = max(y);
}
parameters {
  vector[m] beta;
}
model {
  beta ~ normal(0, 3);
  for (i in 1 : I) y[i] ~ categorical_logit(beta); // [likelihood]
}
