data {
  int<lower=1> C;
  int<lower=1> I;
  array[I, 3] real cut; // -1 where an item has fewer
  array[I] real<lower=0> slope;
  array[I] int<lower=2, upper=4> size;
  array[C, I] int grade; // -1: missing
}
parameters {
  vector[C] theta;
}
model {
  array[C, I, 4] real p;
  array[C, I, 3] real above;
  theta ~ normal(0, 3);
  for (c in 1 : C) {
    for (i in 1 : I) {
      for (k in 1 : (size[i] - 1)) above[c, i, k] = inv_logit(slope[i] * (theta[c] - cut[i, k]));
      p[c, i, 1] = 1 - above[c, i, 1];
      for (k in 2 : (size[i] - 1)) p[c, i, k] = above[c, i, k - 1] - above[c, i, k];
      p[c, i, size[i]] = above[c, i, size[i] - 1];
      if (grade[c, i] != -1) target += log(p[c, i, grade[c, i]]); // [likelihood]
    }
  }
}
