// Functions that derived simulators call. The functions of one name (overloads for the types that an argument may have)
// stand together, between empty lines; `helpers.py` puts those that a program uses into it, on one line.
functions {
  // Element i of an argument; a single value, and a container of one element, stand for all of them.
  int bread_at(int x, int i) { return x; }
  real bread_at(real x, int i) { return x; }
  real bread_at(vector x, int i) { return size(x) == 1 ? x[1] : x[i]; }
  real bread_at(row_vector x, int i) { return size(x) == 1 ? x[1] : x[i]; }
  int bread_at(array[] int x, int i) { return size(x) == 1 ? x[1] : x[i]; }
  real bread_at(array[] real x, int i) { return size(x) == 1 ? x[1] : x[i]; }

  // The same where an element is a vector.
  vector bread_vector_at(vector x, int i) { return x; }
  vector bread_vector_at(row_vector x, int i) { return x'; }
  vector bread_vector_at(array[] vector x, int i) { return size(x) == 1 ? x[1] : x[i]; }
  vector bread_vector_at(array[] row_vector x, int i) { return size(x) == 1 ? x[1]' : x[i]'; }

  // An argument as n reals.
  vector bread_reals(real x, int n) { return rep_vector(x, n); }
  vector bread_reals(vector x, int n) {
    if (size(x) != n) reject("bread: an argument has ", size(x), " elements where the outcome has ", n);
    return x;
  }
  vector bread_reals(row_vector x, int n) {
    if (size(x) != n) reject("bread: an argument has ", size(x), " elements where the outcome has ", n);
    return x';
  }
  vector bread_reals(array[] real x, int n) {
    if (size(x) != n) reject("bread: an argument has ", size(x), " elements where the outcome has ", n);
    return to_vector(x);
  }
  vector bread_reals(array[] int x, int n) {
    if (size(x) != n) reject("bread: an argument has ", size(x), " elements where the outcome has ", n);
    return to_vector(x);
  }

  // An argument as n integers.
  array[] int bread_integers(int x, int n) { return rep_array(x, n); }
  array[] int bread_integers(array[] int x, int n) {
    if (size(x) != n) reject("bread: an argument has ", size(x), " elements where the outcome has ", n);
    return x;
  }

  // The limit that censored observations (those with this code) share; infinite, on their side, where there are none.
  real bread_limit(vector y, array[] int flag, int code, int side) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return side > 0 ? positive_infinity() : negative_infinity();
  }
  real bread_limit(array[] real y, array[] int flag, int code, int side) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return side > 0 ? positive_infinity() : negative_infinity();
  }
  real bread_limit(array[] int y, array[] int flag, int code, int side) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return side > 0 ? positive_infinity() : negative_infinity();
  }

  // The same, as it is recorded.
  real bread_recorded(vector y, array[] int flag, int code) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return y[1];
  }
  real bread_recorded(array[] real y, array[] int flag, int code) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return y[1];
  }
  int bread_recorded(array[] int y, array[] int flag, int code) {
    for (n in 1:size(y)) if (flag[n] == code) return y[n];
    return y[1];
  }

  // Probabilities that stand in a table, without the numbers at its end that were never filled in.
  vector bread_probabilities(vector x) {
    int n = size(x);
    while (n > 1) {
      if (!is_nan(x[n])) break;
      n -= 1;
    }
    if (!(min(x[1:n]) >= 0 && abs(sum(x[1:n]) - 1) <= 1e-8))
      reject("bread: the probabilities of a category do not sum to one, or are negative");
    return x[1:n];
  }
  vector bread_probabilities(row_vector x) { return bread_probabilities(x'); }
  vector bread_probabilities(array[] real x) { return bread_probabilities(to_vector(x)); }

  // How many of a are among n that are taken from a and b, without putting back.
  int bread_hypergeometric_rng(int n, int a, int b) {
    int found = 0;
    for (i in 1:min(n, a)) found += uniform_rng(0, 1) * (a + b - i + 1) < max(n, a) - found;
    return found;
  }

  // Cutpoints under the law that probabilities ~ dirichlet(alpha) of their categories induce, with the logistic link (1)
  // or the normal one (2). Logs of gamma variates: those of a small alpha are too small for a number.
  vector bread_cutpoints_rng(vector alpha, real phi, int link) {
    int K = size(alpha);
    vector[K] weight;
    vector[K - 1] c;
    for (k in 1:K) weight[k] = log(gamma_rng(alpha[k] + 1, 1)) + log(uniform_rng(0, 1)) / alpha[k];
    for (k in 1:(K - 1)) {
      real below = log_sum_exp(weight[1:k]);
      real above = log_sum_exp(weight[(k + 1):K]);
      real total = log_sum_exp(below, above);
      if (link == 1) c[k] = phi + below - above;
      else c[k] = phi + (below < above ? std_normal_log_qf(below - total) : -std_normal_log_qf(above - total));
    }
    return c;
  }

  // Its log density: Dirichlet, times the slope of the link at each cutpoint.
  real bread_cutpoints_lpdf(vector c, vector alpha, real phi, int link) {
    int n = size(c);
    vector[n] below;
    vector[n] above;
    real total = lgamma(sum(alpha)) - sum(lgamma(alpha));
    for (k in 1:n) {
      real x = c[k] - phi;
      below[k] = link == 1 ? log_inv_logit(x) : normal_lcdf(x | 0, 1);
      above[k] = link == 1 ? log_inv_logit(-x) : normal_lcdf(-x | 0, 1);
      total += link == 1 ? below[k] + above[k] : normal_lpdf(x | 0, 1);
    }
    total += (alpha[1] - 1) * below[1] + (alpha[n + 1] - 1) * above[n];
    for (k in 2:n) {
      real between = c[k - 1] > phi ? log_diff_exp(above[k - 1], above[k]) : log_diff_exp(below[k], below[k - 1]);
      total += (alpha[k] - 1) * between;
    }
    return total;
  }
}
