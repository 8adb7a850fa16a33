// What the Python side may ask for.
'use strict';

const { inspect } = require('util');
const { w, Refusal } = require('./loaded');
const { pack, unpack, kindOf, numbersOf, nameOf, boundsOf, dataWith, returned } = require('./numbers');
const { Run, checkDraw, stateOf, seed, densities, gradient } = require('./runs');
const { Chain, muffledFactor } = require('./chains');

const requests = {
  // Loads WebPPL and compiles the program, whose variable `model` is a function of the data.
  open({ folder, packages, program, filename, data, observed: names }) {
    const paths = [folder || process.cwd()]; // and NODE_PATH, which Node.js looks at by itself
    const at = (file) => require(require.resolve(`webppl/${file}`, { paths }));
    const webppl = at('src/main');
    w.util = at('src/util');
    w.Trace = at('src/trace');
    w.Tensor = at('src/tensor');
    w.ad = at('src/ad');
    const pkg = at('src/pkg');
    webppl.requireHeaderWrapper((its) => ((w.env = its), {}));
    w.plainFactor = w.env.factor;
    w.env.factor = muffledFactor;
    const loaded = packages.map((path) => pkg.load(pkg.read(path, paths)));
    for (const one of loaded) {
      if (one.js) global[one.js.identifier] = require(one.js.path);
      one.headers.forEach(webppl.requireHeader);
    }
    global.param = () => {
      throw new Refusal('param is a number to be optimised, which has no law. Draw it by sample, or pass it with the data');
    };
    w.kernel = at('src/inference/mhkernel')(w.env)({});
    w.runner = w.util.trampolineRunners.cli();
    w.constants = data;
    w.observed = names;
    const bundles = webppl.parsePackageCode(loaded, false);
    const { code } = webppl.compile(`${program}\n;model`, { bundles, filename });
    seed('0');
    const keep = (store, value) => void Object.assign(w, { store, model: value });
    webppl.runEvaled(eval.call(global, code), w.runner, { value: undefined }, {}, keep, '');
    if (typeof w.model !== 'function') throw new Refusal('the program has no function `model` of the data');
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
        dims: val instanceof w.Tensor ? val.dims : [],
        size: numbersOf(val).length,
        discrete: !dist.isContinuous,
        smooth: Boolean(dist.isContinuous && !dist.noHMC),
        bounds: pack(boundsOf(dist, val)),
        score: pack([w.ad.value(choiceScore)]),
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
      const scores = values.map(({ value }) => w.ad.value(dist.score(value)));
      return { name, parameters, counts: pack(values.map(({ count }) => count)), scores: pack(scores) };
    });
  },

  // Fixes what `look` showed: from here on a run with other sites is refused.
  fix({ sites: known, slots }) {
    w.sites = known;
    w.slots = slots;
    return {};
  },

  // Joint draws, one per seed; a coordinate of `held` that is no NaN keeps that value.
  simulate({ seeds, held }) {
    const fixed = held ? unpack(held) : null;
    const drawn = seeds.map((text) => {
      seed(text);
      const run = new Run({ held: fixed, isDrawn: true }).of(dataWith(null));
      const data = run.observations.flatMap(({ value }) => numbersOf(value));
      if (data.length !== w.slots.length) throw new Refusal('the program does not observe the same data in two runs');
      checkDraw(run, data);
      return [stateOf(run.trace), data];
    });
    return { states: pack(drawn.flatMap(([state]) => state)), data: pack(drawn.flatMap(([, data]) => data)) };
  },

  // What a run at each state is made of: scores of sites and of observations, and what it returns.
  replay({ data, states, seed: text }) {
    const given = dataWith(unpack(data));
    const rows = unpack(states);
    const dim = w.sites.reduce((sum, site) => sum + site.size, 0);
    return Array.from({ length: rows.length / dim }, (_, i) => {
      seed(text);
      const run = new Run({ held: rows.subarray(i * dim, (i + 1) * dim) }).of(given);
      return {
        scores: pack(run.trace.choices.map((choice) => w.ad.value(choice.choiceScore))),
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
    if (chain.accepted) chain.confirm();
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

module.exports = requests;
