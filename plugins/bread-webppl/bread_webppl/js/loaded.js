// What is loaded, shared by all files: WebPPL's modules, and the program.
'use strict';

class Refusal extends Error {} // the program is not one that can be treated exactly

class Outside extends Error {} // a state whose density is zero, whatever WebPPL's score says

const w = {
  util: null, // these five: WebPPL's modules
  env: null,
  Trace: null,
  Tensor: null,
  ad: null,
  kernel: null, // WebPPL's Metropolis-Hastings over traces
  plainFactor: null, // WebPPL's env.factor
  runner: null, // runs a continuation to its end
  model: null, // the compiled function of the data
  store: null, // WebPPL's globalStore as the program leaves it
  constants: null, // data that stay
  observed: null, // [{name, shape, kind}] of those that are simulated
  sites: null, // [{address, kind, dims, size}], once they are known
  slots: null, // the place in the data of each number that a run observes
};

module.exports = { w, Refusal, Outside };
