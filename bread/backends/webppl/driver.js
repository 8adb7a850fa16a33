// Runs a WebPPL program for bread: one request a line on stdin, one answer a line on stdout, both JSON.
//
// WebPPL's own: the compiler, the program's execution, distributions (draws and scores), random numbers, traces and the
// Metropolis-Hastings kernel over them (src/inference/mhkernel.js, with its factorCoeff as the inverse temperature).
// This file's own: handlers that draw a program's data with its sites, that run it at given values, and the loops over
// temperatures. Arrays of numbers travel as base64 of little-endian doubles, so that every bit of them arrives.
'use strict';

const fs = require('fs');
const readline = require('readline');
const { inspect } = require('util');

console.log = console.info = console.error; // stdout is for answers alone

class Refusal extends Error {} // the program is not one that can be treated exactly

let webppl, util, env, Trace, Tensor, ad, kernel, runner; // set by `open`
let plainFactor; // WebPPL's env.factor
let model; // the compiled function of the data
let constants, observed; // data that stay, and [{name, shape, kind}] of those that are simulated
let sites = null; // [{address, kind, dims, size}], once they are known
let nData = null; // numbers that a run observes
let draws = null; // the stream of random numbers of the chain that runs

// ---- numbers ------------------------------------------------------------------------------------------------------

const pack = (numbers) => Buffer.from(Float64Array.from(numbers).buffer).toString('base64');

function unpack(text) {
  const bytes = Buffer.from(text, 'base64');
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function kindOf(value) {
  if (typeof value === 'number' || typeof value === 'boolean') return typeof value;
  if (value instanceof Tensor) return 'tensor';
  if (Array.isArray(value) && value.every((one) => typeof one === 'number')) return 'array';
  return 'other';
}

function numbersOf(value) {
  const kind = kindOf(value);
  if (kind === 'number' || kind === 'boolean') return [Number(value)];
  if (kind === 'tensor') return Array.from(value.data);
  if (kind === 'array') return value;
  throw new Refusal(
    `a site or an observation has the value ${JSON.stringify(value)}; values must be numbers, booleans, vectors or ` +
      'matrices. Code other values as whole numbers'
  );
}

function valueFrom(site, numbers) {
  if (site.kind === 'number') return numbers[0];
  if (site.kind === 'boolean') return numbers[0] === 1;
  if (site.kind === 'array') return Array.from(numbers);
  const value = new Tensor(site.dims);
  value.data.set(numbers);
  return value;
}

const nameOf = (dist) => (dist.meta ? dist.meta.name : 'Marginal');

// Ends of the interval that holds a number with a continuous law; [-Infinity, Infinity] for all else.
function boundsOf(dist, value) {
  const support = typeof value === 'number' && dist.isContinuous && dist.support ? dist.support() : {};
  const end = (one, otherwise) => (typeof ad.value(one) === 'number' ? ad.value(one) : otherwise);
  return [end(support.lower, -Infinity), end(support.upper, Infinity)];
}

function nested(numbers, shape, kind, from = { place: 0 }) {
  if (shape.length === 0) {
    const number = numbers[from.place++];
    return kind === 'boolean' && !Number.isNaN(number) ? number === 1 : number;
  }
  return Array.from({ length: shape[0] }, () => nested(numbers, shape.slice(1), kind, from));
}

const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

// The data of a run: `numbers` are those of the observed variables, one after another; null where they are drawn, so
// that a program that uses them elsewhere meets NaN.
function dataWith(numbers, areTags = false) {
  const data = Object.assign({}, constants);
  let low = 0;
  for (const { name, shape, kind } of observed) {
    const size = sizeOf(shape);
    const own = numbers ? numbers.slice(low, low + size) : new Float64Array(size).fill(NaN);
    data[name] = nested(own, shape, areTags ? 'number' : kind);
    low += size;
  }
  return data;
}

// What a program returns, as nested lists: {name: list or number}; what holds no numbers is left out.
function returned(value) {
  const plain = (one) => {
    if (typeof one === 'number' || typeof one === 'boolean') return Number(one);
    if (one instanceof Tensor) {
      const isVector = one.dims.length === 2 && one.dims[1] === 1;
      return nested(one.data, isVector ? one.dims.slice(0, 1) : one.dims, 'number');
    }
    if (Array.isArray(one)) {
      const parts = one.map(plain);
      return parts.includes(null) ? null : parts;
    }
    return null;
  };
  const isNamed = value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Tensor);
  const found = {};
  for (const [name, one] of Object.entries(isNamed ? value : { value })) {
    const list = plain(one);
    if (list !== null) found[name] = list;
  }
  return found;
}

// ---- runs of the program ------------------------------------------------------------------------------------------

// A handler of WebPPL's inference interface that makes one trace. Sites have the values `held` gives (NaN, or no
// `held`: they are drawn); observations are drawn where `isDrawn`, and factors otherwise, unless `isMuted`. Where it
// `isLifted`, WebPPL's automatic differentiation follows the values of continuous sites.
class Run {
  constructor({ held = null, isDrawn = false, isMuted = false, isLifted = false }) {
    Object.assign(this, { held, isDrawn, isMuted, isLifted, place: 0, likelihood: 0, observations: [] });
    this.incrementalize = env.defaultCoroutine.incrementalize;
    if (isDrawn) this.observe = this.drawObservation;
  }

  sample(s, k, a, dist, options) {
    const index = this.trace.length;
    let value;
    if (this.held === null) {
      value = dist.sample();
    } else {
      const site = sites[index];
      if (!site || site.address !== a) throw new Refusal(CHANGED);
      const numbers = this.held.subarray(this.place, this.place + site.size);
      this.place += site.size;
      value = Number.isNaN(numbers[0]) ? dist.sample() : valueFrom(site, numbers);
    }
    if (this.isLifted && dist.isContinuous) value = ad.lift(value);
    this.trace.addChoice(dist, value, a, s, k, options);
    return k(s, value);
  }

  drawObservation(s, k, a, dist, given, options) {
    if (given === undefined) return this.sample(s, k, a, dist, options);
    const value = dist.sample();
    const score = ad.value(dist.score(value));
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
    this.trace.score = ad.scalar.add(this.trace.score, score);
    this.likelihood = ad.scalar.add(this.likelihood, score);
    this.observations.push({ score: ad.value(score) });
    return k(s);
  }

  exit(s, value) {
    this.trace.complete(value);
    return undefined;
  }

  of(data) {
    this.trace = new Trace((s, k, a) => model(s, k, a, data), {}, env.exit, 'bread');
    env.reset();
    env.coroutine = this;
    try {
      runner(() => this.trace.continue());
    } finally {
      env.reset();
    }
    if (!this.trace.isComplete()) throw new Refusal('the model does not come to its end in one run');
    if (sites !== null) checkSites(this.trace);
    return this;
  }

  get logPrior() {
    return ad.value(this.trace.scoreAllChoices());
  }
}

const CHANGED = 'the sites of the program are not the same in two runs (their number, order or place changes)';

function checkSites(trace) {
  const isSame = trace.length === sites.length && sites.every((site, i) => site.address === trace.choices[i].address);
  if (!isSame) throw new Refusal(CHANGED);
}

const stateOf = (trace) => trace.choices.flatMap((choice) => numbersOf(choice.val));

function seed(text) {
  util.seedRNG(text);
  Math.random = util.random; // a program may call it
}

// Log likelihood of a trace with factors, by the sum that WebPPL's kernel uses.
function likelihoodOf(trace) {
  return ad.value(trace.scoreAllFactors());
}

// ---- the kernel ---------------------------------------------------------------------------------------------------

const ROOT = {}; // the coroutine below the kernel's own: tells its factors from those of an inference inside the model
let isMuted = false;

function muffledFactor(s, k, a, score) {
  return isMuted && env.coroutine.oldCoroutine === ROOT ? k(s) : plainFactor(s, k, a, score);
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
    env.coroutine = ROOT;
    try {
      runner(() => kernel((trace) => void (next = trace), this.trace, { factorCoeff }));
    } catch (error) {
      if (error instanceof Refusal) throw error;
      this.failed += 1; // a proposal at which the program raises, or its density is NaN, is rejected
      next = this.trace;
    } finally {
      env.reset();
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
    return ad.value(this.trace.scoreAllChoices());
  }

  get logLikelihood() {
    if (!this.isMuted) return likelihoodOf(this.trace);
    return densities(this.data, Float64Array.from(this.state))[1];
  }
}

// Log prior and log likelihood at one state; NaN where the program raises.
function densities(data, state) {
  try {
    const run = new Run({ held: state }).of(data);
    const prior = run.logPrior;
    return [prior, Number.isFinite(prior) && run.likelihood > -Infinity ? likelihoodOf(run.trace) : run.likelihood];
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return [NaN, NaN];
  }
}

// log prior + beta * log likelihood at one state, and its gradient by WebPPL's automatic differentiation: NaN for sites
// that are discrete or whose law is not differentiable.
function gradient(data, state, beta) {
  const unknown = new Array(state.length).fill(NaN);
  try {
    const run = new Run({ held: state, isMuted: beta === 0, isLifted: true }).of(data);
    const total = ad.scalar.add(run.trace.scoreAllChoices(), ad.scalar.mul(beta, run.likelihood));
    const value = ad.value(total);
    if (!Number.isFinite(value)) return [value, unknown];
    if (ad.isLifted(total)) total.backprop();
    const slopes = ({ dist, val }) => {
      if (!dist.isContinuous || dist.noHMC) return numbersOf(ad.value(val)).map(() => NaN);
      const slope = ad.derivative(val);
      return typeof slope === 'number' ? [slope] : Array.from(slope.data);
    };
    return [value, run.trace.choices.flatMap(slopes)];
  } catch (error) {
    if (error instanceof Refusal) throw error;
    return [NaN, unknown];
  }
}

// ---- requests -----------------------------------------------------------------------------------------------------

const requests = {
  // Loads WebPPL and compiles the program, whose variable `model` is a function of the data.
  open({ folder, packages, program, filename, data, observed: names }) {
    const paths = [folder || process.cwd()]; // and NODE_PATH, which Node.js looks at by itself
    const at = (file) => require(require.resolve(`webppl/${file}`, { paths }));
    webppl = at('src/main');
    util = at('src/util');
    Trace = at('src/trace');
    Tensor = at('src/tensor');
    ad = at('src/ad');
    const pkg = at('src/pkg');
    webppl.requireHeaderWrapper((its) => ((env = its), {}));
    plainFactor = env.factor;
    env.factor = muffledFactor;
    const loaded = packages.map((path) => pkg.load(pkg.read(path, paths)));
    for (const one of loaded) {
      if (one.js) global[one.js.identifier] = require(one.js.path);
      one.headers.forEach(webppl.requireHeader);
    }
    kernel = at('src/inference/mhkernel')(env)({});
    runner = util.trampolineRunners.cli();
    constants = data;
    observed = names;
    const bundles = webppl.parsePackageCode(loaded, false);
    const { code } = webppl.compile(`${program}\n;model`, { bundles, filename });
    seed('0');
    webppl.runEvaled(eval.call(global, code), runner, { value: undefined }, {}, (s, x) => void (model = x), '');
    if (typeof model !== 'function') throw new Refusal('the program has no function `model` of the data');
    return { version: at('package.json').version, node: process.version };
  },

  // The sites and observations of one joint draw; `data` are numbers in the data's places, or tags, to see where they go.
  look({ seed: text, data, tags }) {
    seed(text);
    const run = new Run({ isDrawn: true }).of(dataWith(data ? unpack(data) : null, tags));
    return {
      sites: run.trace.choices.map(({ address, dist, val, choiceScore }) => ({
        address,
        law: nameOf(dist),
        kind: kindOf(val),
        dims: val instanceof Tensor ? val.dims : [],
        size: numbersOf(val).length,
        discrete: !dist.isContinuous,
        bounds: pack(boundsOf(dist, val)),
        score: pack([ad.value(choiceScore)]),
        value: pack(numbersOf(val)),
      })),
      observations: run.observations.map(({ dist, given, value, score }) => ({
        law: nameOf(dist),
        kind: kindOf(value),
        discrete: !dist.isContinuous,
        given: kindOf(given) === 'other' ? null : pack(numbersOf(given)),
        value: pack(numbersOf(value)),
        score: pack([score]),
      })),
    };
  },

  // CPU time of this process so far.
  time() {
    const { user, system } = process.cpuUsage();
    return { seconds: (user + system) / 1e6 };
  },

  // Draws of each discrete law of one joint draw, counted, with the score of every value that was drawn.
  laws({ seed: text, n, most }) {
    seed(text);
    const run = new Run({ isDrawn: true }).of(dataWith(null));
    const found = new Map();
    for (const { dist } of [...run.trace.choices, ...run.observations]) {
      const parameters = inspect(dist.params || {}, { depth: 6, breakLength: Infinity, maxArrayLength: null });
      const name = nameOf(dist);
      if (!dist.isContinuous && found.size < most) found.set(`${name}${parameters}`, { dist, name, parameters });
    }
    return [...found.values()].map(({ dist, name, parameters }) => {
      const counts = new Map();
      for (let i = 0; i < n; i++) {
        const value = dist.sample();
        const key = numbersOf(value).join();
        counts.set(key, { value, count: (counts.has(key) ? counts.get(key).count : 0) + 1 });
      }
      const values = [...counts.values()];
      const scores = values.map(({ value }) => ad.value(dist.score(value)));
      return { name, parameters, counts: pack(values.map(({ count }) => count)), scores: pack(scores) };
    });
  },

  // Fixes what `look` showed: from here on a run with other sites is refused.
  fix({ sites: known, n_data: size }) {
    sites = known;
    nData = size;
    return {};
  },

  // Joint draws, one per seed; a coordinate of `held` that is no NaN keeps that value.
  simulate({ seeds, held }) {
    const fixed = held ? unpack(held) : null;
    const drawn = seeds.map((text) => {
      seed(text);
      const run = new Run({ held: fixed, isDrawn: true }).of(dataWith(null));
      const data = run.observations.flatMap(({ value }) => numbersOf(value));
      if (data.length !== nData) throw new Refusal('the program does not observe the same data in two runs');
      return [stateOf(run.trace), data];
    });
    return { states: pack(drawn.flatMap(([state]) => state)), data: pack(drawn.flatMap(([, data]) => data)) };
  },

  // What a run at each state is made of: scores of sites and of observations, and what it returns.
  replay({ data, states, seed: text }) {
    const given = dataWith(unpack(data));
    const rows = unpack(states);
    const dim = sites.reduce((sum, site) => sum + site.size, 0);
    return Array.from({ length: rows.length / dim }, (_, i) => {
      seed(text);
      const run = new Run({ held: rows.subarray(i * dim, (i + 1) * dim) }).of(given);
      return {
        scores: pack(run.trace.choices.map((choice) => ad.value(choice.choiceScore))),
        likelihood: pack(run.observations.map(({ score }) => score)),
        returned: returned(run.trace.value),
      };
    });
  },

  densities({ data, states, n }) {
    const given = dataWith(unpack(data));
    const rows = unpack(states);
    const dim = rows.length / n;
    const found = Array.from({ length: n }, (_, i) => densities(given, rows.subarray(i * dim, (i + 1) * dim)));
    return { prior: pack(found.map(([prior]) => prior)), likelihood: pack(found.map(([, ratio]) => ratio)) };
  },

  gradients({ data, states, n, beta }) {
    const given = dataWith(unpack(data));
    const rows = unpack(states);
    const dim = rows.length / n;
    const found = Array.from({ length: n }, (_, i) => gradient(given, rows.subarray(i * dim, (i + 1) * dim), beta));
    return { value: pack(found.map(([value]) => value)), gradient: pack(found.flatMap(([, slopes]) => slopes)) };
  },

  // One chain through `betas`; states after the transitions that `keep` numbers (0: the start), and the log
  // likelihood after every one, the start's first. It ends early where the tempered density is not finite.
  chain({ data, state, betas, updates, seed: text, keep }) {
    seed(text);
    const start = unpack(state);
    const [prior, likelihood] = densities(dataWith(unpack(data)), start);
    const ratios = [likelihood];
    const wanted = new Set(keep);
    const states = wanted.has(0) ? [...start] : [];
    const steps = unpack(betas);
    if (!Number.isFinite(prior) || (!Number.isFinite(likelihood) && steps[0] !== 0)) {
      return { ratios: pack(ratios), states: pack(states), prior: pack([prior, NaN]), end: state, evaluations: 1, accepted: 0 };
    }
    const chain = new Chain(dataWith(unpack(data)), start, updates);
    for (let i = 0; i < steps.length; i++) {
      chain.move(steps[i]);
      ratios.push(chain.logLikelihood);
      if (wanted.has(i + 1)) states.push(...chain.state);
    }
    return {
      ratios: pack(ratios),
      states: pack(states),
      prior: pack([prior, chain.logPrior]),
      end: pack(chain.state),
      evaluations: chain.evaluations + 1,
      accepted: chain.accepted,
      failed: chain.failed,
    };
  },
};

function answer(line) {
  const { request, ...rest } = JSON.parse(line);
  try {
    return { result: requests[request](rest) };
  } catch (error) {
    const isMissing = error && error.code === 'MODULE_NOT_FOUND';
    const kind = error instanceof Refusal ? 'refusal' : isMissing ? 'missing' : 'error';
    return { [kind]: String((error && error.message) || error).split('\n')[0] };
  }
}

readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', (line) => {
  let text = Buffer.from(JSON.stringify(answer(line)) + '\n');
  while (text.length) {
    try {
      text = text.subarray(fs.writeSync(1, text));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
});
