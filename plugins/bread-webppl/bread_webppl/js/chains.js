// Markov chains of WebPPL's own kernel at inverse temperatures.
'use strict';

const { w, Refusal } = require('./loaded');
const { numbersOf, areOutside } = require('./numbers');
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
    if (isOutside(next)) return; // a drift kernel went where WebPPL's score is finite and no draw is
    this.accepted += 1;
    this.trace = next;
  }

  // Compares the scores that the kernel left with those of a run from the beginning.
  confirm() {
    const [prior, likelihood] = densities(this.data, Float64Array.from(this.state));
    this.evaluations += 1;
    if (!isClose(prior, this.logPrior) || (!this.isMuted && !isClose(likelihood, this.logLikelihood))) {
      throw new Refusal(
        'its density at the end of a chain is not that of a run from the beginning. Where the program changes an ' +
          'object in place (list.push(x), a function of a package), proposals see what earlier ones left: return new ' +
          'values instead (map, append)'
      );
    }
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

const isOutside = (trace) =>
  trace.choices.some(({ dist, val }, i) => areOutside(w.sites[i], dist, numbersOf(w.ad.value(val))));

const isClose = (one, other) => one === other || Math.abs(one - other) <= 1e-8 * (1 + Math.abs(one));

module.exports = { Chain, muffledFactor };
