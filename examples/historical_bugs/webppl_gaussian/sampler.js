// WebPPL's sampler of multivariate Gaussians as it was until June 2016: eigenvectors V of the covariance, transposed
// where they should not be, so that draws have the covariance V' S V in place of V S V'. Its density was right.
'use strict';

// Eigenvalues and eigenvectors (columns) of a symmetric matrix, by Jacobi's rotations. In order of falling eigenvalues, as
// a singular value decomposition has them.
function eigen(matrix) {
  const n = matrix.length;
  const a = matrix.map((row) => row.slice());
  const v = a.map((_, i) => a.map((_, j) => Number(i === j)));
  for (let sweep = 0; sweep < 100; sweep++) {
    let off = 0;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        off += a[p][q] ** 2;
        if (Math.abs(a[p][q]) < 1e-300) continue;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let k = 0; k < n; k++) [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
        for (let k = 0; k < n; k++) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
        for (let k = 0; k < n; k++) [v[k][p], v[k][q]] = [c * v[k][p] - s * v[k][q], s * v[k][p] + c * v[k][q]];
      }
    }
    if (off < 1e-24) break;
  }
  const order = a.map((_, i) => i).sort((i, j) => a[j][j] - a[i][i]);
  return { values: order.map((i) => a[i][i]), vectors: v.map((row) => order.map((i) => row[i])) };
}

module.exports = function () {
  const law = global.dists.MultivariateGaussian.prototype;
  const gaussian = new global.dists.Gaussian({ mu: 0, sigma: 1 });
  law.sample = function () {
    const mu = global.ad.value(this.params.mu);
    const cov = global.ad.value(this.params.cov).toArray();
    const { values, vectors } = eigen(cov);
    const z = values.map((value) => Math.sqrt(Math.max(value, 0)) * gaussian.sample());
    const draw = mu.clone();
    for (let i = 0; i < z.length; i++) {
      for (let j = 0; j < z.length; j++) draw.data[i] += vectors[j][i] * z[j]; // should be vectors[i][j]
    }
    return draw;
  };
  return {};
};
