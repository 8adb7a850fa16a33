data {
  int<lower=1> I;
  int<lower=1> T;
  array[I, T] int<lower=0, upper=1> y;
}
transformed data {
  array[I] int last;
  for (i in 1 : I) {
    last[i] = 0;
    for (t in 1 : T) if (y[i, t] == 1) last[i] = t;
  }
}
parameters {
  real<lower=0, upper=1> phi;
  real<lower=0, upper=1> p;
}
model {
  for (i in 1 : I) {
    for (t in 1 : last[i]) {
      1 ~ bernoulli(phi); // [likelihood] [refused]
      y[i, t] ~ bernoulli(p); // [likelihood]
    }
  }
}
