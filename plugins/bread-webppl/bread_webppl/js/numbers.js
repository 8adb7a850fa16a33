// Values of WebPPL as numbers, and back; arrays of numbers travel as base64 of little-endian doubles, bit by bit.
'use strict';

const { w, Refusal } = require('./loaded');

const pack = (numbers) => Buffer.from(Float64Array.from(numbers).buffer).toString('base64');

function unpack(text) {
  const bytes = Buffer.from(text, 'base64');
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function kindOf(value) {
  if (typeof value === 'number' || typeof value === 'boolean') return typeof value;
  if (value instanceof w.Tensor) return 'tensor';
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
  const value = new w.Tensor(site.dims);
  value.data.set(numbers);
  return value;
}

const nameOf = (dist) => (dist.meta ? dist.meta.name : 'Marginal');

// Whether numbers are no value of a site with this law where its score does not say so: WebPPL's Poisson and Multinomial
// have finite scores at negative numbers, its MultivariateBernoulli beside 0 and 1, and booleans are 0 or 1.
const COUNTS = ['Poisson', 'Multinomial'];

function areOutside(site, dist, numbers) {
  const isBinary = site.kind === 'boolean' || nameOf(dist) === 'MultivariateBernoulli';
  if (isBinary) return !Array.from(numbers).every((one) => one === 0 || one === 1);
  return COUNTS.includes(nameOf(dist)) && !numbers.every((one) => one >= 0 && Number.isInteger(one));
}

// Ends of the interval that holds a number with a continuous law; [-Infinity, Infinity] for all else.
function boundsOf(dist, value) {
  const support = typeof value === 'number' && dist.isContinuous && dist.support ? dist.support() : {};
  const end = (one, otherwise) => (typeof w.ad.value(one) === 'number' ? w.ad.value(one) : otherwise);
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
  const data = Object.assign({}, w.constants);
  let low = 0;
  for (const { name, shape, kind } of w.observed) {
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
    if (one instanceof w.Tensor) {
      const isVector = one.dims.length === 2 && one.dims[1] === 1;
      return nested(one.data, isVector ? one.dims.slice(0, 1) : one.dims, 'number');
    }
    if (Array.isArray(one)) {
      const parts = one.map(plain);
      return parts.includes(null) ? null : parts;
    }
    return null;
  };
  const isNamed = value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof w.Tensor);
  const found = {};
  for (const [name, one] of Object.entries(isNamed ? value : { value })) {
    const list = plain(one);
    if (list !== null) found[name] = list;
  }
  return found;
}

module.exports = { pack, unpack, kindOf, numbersOf, valueFrom, nameOf, areOutside, boundsOf, dataWith, returned };
