"""The inner product of two vectors, in C."""

# In eight sums: the compiler may not reorder one, and an addition takes four cycles where eight fit into two.
DOT = """
static inline double bread_dot(const double* a, const double* b, Py_ssize_t n) {
    double s[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    Py_ssize_t j = 0;
    for (; j + 8 <= n; j += 8) for (int k = 0; k < 8; ++k) s[k] += a[j + k] * b[j + k];
    for (; j < n; ++j) s[0] += a[j] * b[j];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}
"""
