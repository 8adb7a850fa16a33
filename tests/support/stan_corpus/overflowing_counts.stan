data {
  int<lower=1> N;
  vector[N] year;
  array[N] int<lower=0> C;
}
parameters {
  real<lower=-20, upper=20> alpha;
  real<lower=-10, upper=10> slope;
}
model {
  C ~ poisson_log(alpha + slope * year); // rates of e^30 that no integer can hold [likelihood]
}
