// Runs of the program by handlers of WebPPL's inference interface: joint draws, and densities at given values.
'use strict';

const { w, Refusal, Outside } = require('./loaded');
const { numbersOf, valueFrom, areOutside, dataWith } = require('./numbers');

// A handler of WebPPL's inference interface that makes one trace. Sites have the values `held` gives (NaN, or no
// `held`: they are drawn); observations are drawn where `isDrawn`, and factors otherwise, unless `isMuted`. Where it
// `isLifted`, WebPPL's automatic differentiation follows the values of continuous sites.
class Run {
  constructor({ held = null, isDrawn = false, isMuted = false, isLifted = false }) {
    Object.assign(this, { held, isDrawn, isMuted, isLifted, place: 0, likelihood: 0, observations: [] });
    this.incrementalize = w.env.defaultCoroutine.incrementalize;
    if (isDrawn) this.observe = this.drawObservation;
  }

  sample(s, k, a, dist, options) {
    const index = this.trace.length;
    let value;
    if (this.held === null) {
      value = dist.sample();
    } else {
      const site = w.sites[index];
      if (!site || site.address !== a) throw new Refusal(CHANGED);
      const numbers = this.held.subarray(this.place, this.place + site.size);
      this.place += site.size;
      const isFree = Number.isNaN(numbers[0]);
      if (!isFree && areOutside(site, dist, numbers)) throw new Outside(`${numbers} is no value of site ${index + 1}`);
      value = isFree ? dist.sample() : valueFrom(site, numbers);
    }
    if (this.isLifted && dist.isContinuous) value = w.ad.lift(value);
    this.trace.addChoice(dist, value, a, s, k, options);
    return k(s, value);
  }

  drawObservation(s, k, a, dist, given, options) {
    if (given === undefined) return this.sample(s, k, a, dist, options);
    const value = dist.sample();
    const score = w.ad.value(dist.score(value));
    this.observations.push({ dist, given, value, score });
    this.likelihood += score;
    return k(s, value);
  }

  factor(s, k, a, score) {
    if (this.isDrawn) {
      throw new Refusal(
        'factor, condition and what is built on them change the density but not the draws, so that data cannot be ' +
          'simulated. Write the term as a distribution: observe(dist, value) with a value of the data'
      );
    }
    if (this.isMuted) return k(s);
    this.trace.numFactors += 1;
    this.trace.score = w.ad.scalar.add(this.trace.score, score);
    this.likelihood = w.ad.scalar.add(this.likelihood, score);
    this.observations.push({ score: w.ad.value(score) });
    return k(s);
  }

  exit(s, value) {
    this.trace.complete(value);
    return undefined;
  }

  of(data) {
    this.trace = new w.Trace((s, k, a) => w.model(s, k, a, data), w.store, w.env.exit, 'bread');
    w.env.reset();
    w.env.coroutine = this;
    try {
      w.runner(() => this.trace.continue());
    } finally {
      w.env.reset();
    }
    if (!this.trace.isComplete()) throw new Refusal('the model does not come to its end in one run');
    if (w.sites !== null) checkSites(this.trace);
    return this;
  }

  get logPrior() {
    return w.ad.value(this.trace.scoreAllChoices());
  }
}

const CHANGED = 'the sites of the program are not the same in two runs (their number, order or place changes)';

function checkSites(trace) {
  const isSame = trace.length === w.sites.length && w.sites.every((site, i) => site.address === trace.choices[i].address);
  if (!isSame) throw new Refusal(CHANGED);
}

// A joint draw has the same scores, to the last bit, where its numbers are given.
function checkDraw(drawn, numbers) {
  const data = new Float64Array(numbers.length);
  w.slots.forEach((slot, i) => (data[slot] = numbers[i]));
  const scoresOf = ({ trace, observations }) =>
    [...trace.choices.map((one) => w.ad.value(one.choiceScore)), ...observations.map(({ score }) => score)];
  const again = scoresOf(new Run({ held: Float64Array.from(stateOf(drawn.trace)) }).of(dataWith(data)));
  if (!scoresOf(drawn).every((score, i) => Object.is(score, again[i]))) {
    throw new Refusal(
      'it has another density at a simulated data set than where that was drawn: it uses observed data elsewhere than ' +
        'in observe (a branch that few data take), or random numbers outside of sample. Use what observe returns'
    );
  }
}

const stateOf = (trace) => trace.choices.flatMap((choice) => numbersOf(choice.val));

function seed(text) {
  w.util.seedRNG(text);
  Math.random = w.util.random; // a program may call it
}

// Log likelihood of a trace with factors, by the sum that WebPPL's kernel uses.
function likelihoodOf(trace) {
  return w.ad.value(trace.scoreAllFactors());
}

// Log prior and log likelihood at one state; NaN where the program raises.
function densities(data, state) {
  try {
    const run = new Run({ held: state }).of(data);
    const prior = run.logPrior;
    return [prior, Number.isFinite(prior) && run.likelihood > -Infinity ? likelihoodOf(run.trace) : run.likelihood];
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return error instanceof Outside ? [-Infinity, -Infinity] : [NaN, NaN];
  }
}

// log prior + beta * log likelihood at one state, and its gradient by WebPPL's automatic differentiation: NaN for sites
// that are discrete or whose law is not differentiable.
function gradient(data, state, beta) {
  const unknown = new Array(state.length).fill(NaN);
  try {
    const run = new Run({ held: state, isMuted: beta === 0, isLifted: true }).of(data);
    const total = w.ad.scalar.add(run.trace.scoreAllChoices(), w.ad.scalar.mul(beta, run.likelihood));
    const value = w.ad.value(total);
    if (!Number.isFinite(value)) return [value, unknown];
    if (w.ad.isLifted(total)) total.backprop();
    const slopes = ({ dist, val }) => {
      if (!dist.isContinuous || dist.noHMC) return numbersOf(w.ad.value(val)).map(() => NaN);
      const slope = w.ad.derivative(val);
      return typeof slope === 'number' ? [slope] : Array.from(slope.data);
    };
    return [value, run.trace.choices.flatMap(slopes)];
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return [error instanceof Outside ? -Infinity : NaN, unknown];
  }
}

module.exports = { Run, checkDraw, checkSites, stateOf, seed, likelihoodOf, densities, gradient };
