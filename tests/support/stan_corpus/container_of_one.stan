data {
  int<lower=1> N;
  int<lower=1> K; // groups: 1 in the data
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real<lower=0> scale;
  real<lower=0> pace;
}
transformed parameters {
  vector<lower=0>[K] scales;
  array[K] vector<lower=0>[1] paces;
  scales[1] = scale;
  paces[1, 1] = pace;
}
model {
  target += normal_lpdf(a | 0, 2);
  target += student_t_lpdf(scales | 3, 0, 1)
            - 1 * student_t_lccdf(0 | 3, 0, 1);
  target += inv_gamma_lpdf(paces[1] | 3, 2);
  target += normal_lpdf(y | a * exp(-x / paces[1, 1]), scales[1]); // [likelihood]
}
