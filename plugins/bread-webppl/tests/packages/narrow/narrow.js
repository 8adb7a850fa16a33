// A planted defect: Gaussians are drawn half as wide as their density says.
'use strict';

module.exports = function () {
  const gaussian = global.dists.Gaussian.prototype;
  const draw = gaussian.sample;
  gaussian.sample = function () {
    return this.params.mu + 0.5 * (draw.call(this) - this.params.mu);
  };
  return {};
};
