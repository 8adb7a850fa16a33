// Markov chains of WebPPL's own kernel at inverse temperatures.
'use strict';

const { w, Refusal } = require('./loaded');
const { Run, checkSites, stateOf, likelihoodOf, densities } = require('./runs');

const ROOT = {}; // the coroutine below the kernel's own: tells its factors from those of an inference inside the model
let isMuted = false;

function muffledFactor(s, k, a, score) {
  return isMuted && w.env.coroutine.oldCoroutine === ROOT ? k(s) : w.plainFactor(s, k, a, score);
}

// A Markov chain: `nUpdates` proposals of WebPPL's kernel, each of one site, make a transition.
class Chain {
  constructor(data, state, nUpdates) {
    Object.assign(this, { data, nUpdates, accepted: 0, evaluations: 0, failed: 0 });
    this.begin(state, false);
  }

  begin(state, muted) {
    const run = new Run({ held: state, isMuted: muted }).of(this.data);
    this.evaluations += 1;
    this.isMuted = muted;
    this.trace = run.trace;
  }

  move(beta) {
    const muted = beta === 0; // the likelihood is switched off: WebPPL's kernel would reject where it is zero
    if (muted !== this.isMuted) this.begin(Float64Array.from(this.state), muted);
    isMuted = muted;
    for (let i = 0; i < this.nUpdates; i++) this.update(muted ? 1 : beta);
    isMuted = false;
  }

  update(factorCoeff) {
    let next = this.trace;
    w.env.coroutine = ROOT;
    try {
      w.runner(() => w.kernel((trace) => void (next = trace), this.trace, { factorCoeff }));
    } catch (error) {
      if (error instanceof Refusal) throw error;
      this.failed += 1; // a proposal at which the program raises, or its density is NaN, is rejected
      next = this.trace;
    } finally {
      w.env.reset();
    }
    this.evaluations += 1;
    if (next === this.trace) return;
    checkSites(next);
    this.accepted += 1;
    this.trace = next;
  }

  get state() {
    return stateOf(this.trace);
  }

  get logPrior() {
    return w.ad.value(this.trace.scoreAllChoices());
  }

  get logLikelihood() {
    if (!this.isMuted) return likelihoodOf(this.trace);
    return densities(this.data, Float64Array.from(this.state))[1];
  }
}

module.exports = { Chain, muffledFactor };
