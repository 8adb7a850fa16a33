// The smooth laws of `bread.debugging.targets`, by number.
data {
  int which;
}
transformed data {
  vector[3] shapes = [0.5, 1, 3]';
  vector[3] mean = [1, -2, 0.5]';
  vector[3] sd = [1, 2, 0.5]';
  matrix[3, 3] covariance = quad_form_diag(add_diag(rep_matrix(0.9, 3, 3), 0.1), sd);
  vector[4] concentration = [1, 2, 4, 1.5]';
}
parameters {
  vector[which == 4 ? 4 : 3] x;
}
model {
  if (which == 1) {  // log-gamma
    target += dot_product(shapes, x) - sum(exp(x));
  } else if (which == 2) {  // correlated normal
    x ~ multi_normal(mean, covariance);
  } else if (which == 3) {  // student t
    x ~ multi_student_t(4, mean, covariance);
  } else if (which == 4) {  // curved
    x[1] ~ std_normal();
    x[2] ~ normal(square(x[1]) - 1, 0.5);
    target += x[3] - x[1] - exp(x[3] - x[1]);
    x[4] ~ normal(0.5 * x[2] - x[3], 1);
  } else if (which == 5) {  // funnel
    x[1] ~ normal(0, 1.5);
    x[2:3] ~ normal(0, exp(x[1] / 2));
  } else if (which == 6) {  // mixture
    target += log_mix(0.3, normal_lpdf(x | [-2, -1, 0.5]', 0.7), normal_lpdf(x | [1.5, 1, -0.5]', 1.2));
  } else {  // stick-breaking
    for (k in 1 : 3) {
      real share = x[k] - log(4 - k);
      real rest = sum(concentration[k + 1 : 4]);
      target += concentration[k] * log_inv_logit(share) + rest * log1m_inv_logit(share);
    }
  }
}
