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
}
