data {
  int<lower=3> T;
  vector[T] y;
}
parameters {
  real phi;
}
model {
  vector[T] err;
  phi ~ normal(0, 1);
  err[1] = 0; // no outcome in it
  for (t in 2 : T) {
    err[t] = y[t] - phi * y[t - 1];
  }
  err ~ normal(0, 1); // [likelihood] [refused]
}
