// A planted defect: booleans are true with a probability that is 0.05 too large.
'use strict';

module.exports = function () {
  global.dists.Bernoulli.prototype.sample = function () {
    return global.util.random() < global.ad.value(this.params.p) + 0.05;
  };
  return {};
};
