// Clustering of Grosse, Ancha & Roy (2016), appendix C: a mixture of K round Gaussians in two dimensions.
//
// The paper adds the density of both coordinates in one sum over clusters. Here the same density stands as a product:
// the first coordinate from its mixture, then the second from a mixture whose weights know the first.
data {
  int<lower=1> N;
  int<lower=1> K;
  vector[N] y1;
  vector[N] y2;
}
parameters {
  real<lower=0> scale_sq;
  real<lower=0> sigma_sq;
  vector[K] mu1;
  vector[K] mu2;
  simplex[K] weight;
}
model {
  vector[K] log_weight = log(weight);
  real sigma = sqrt(sigma_sq);
  vector[K] slope1 = mu1 / sigma_sq;
  vector[K] level = log_weight - 0.5 * mu1 .* slope1;
  scale_sq ~ inv_gamma(1, 1);
  sigma_sq ~ inv_gamma(1, 1);
  mu1 ~ normal(0, sqrt(scale_sq));
  mu2 ~ normal(0, sqrt(scale_sq));
  weight ~ dirichlet(rep_vector(1, K));
  for (n in 1:N) {
    vector[K] lp = log_weight;
    for (k in 1:K) {
      lp[k] += normal_lpdf(y1[n] | mu1[k], sigma);
    }
    target += log_sum_exp(lp);
  }
  for (n in 1:N) {
    vector[K] lp = log_softmax(level + slope1 * y1[n]);
    for (k in 1:K) {
      lp[k] += normal_lpdf(y2[n] | mu2[k], sigma);
    }
    target += log_sum_exp(lp);
  }
}
