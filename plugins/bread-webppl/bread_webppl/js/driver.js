// Runs a WebPPL program for bread: one request a line on stdin, one answer a line on stdout, both JSON.
//
// WebPPL's own: the compiler, the program's execution, distributions (draws and scores), random numbers, traces,
// automatic differentiation and the Metropolis-Hastings kernel over traces (src/inference/mhkernel.js, with its factorCoeff
// as the inverse temperature). These files' own: handlers that draw a program's data with its sites and run it at given
// values (runs.js), and the loops over temperatures (chains.js).
'use strict';

const fs = require('fs');
const readline = require('readline');
const { Worker } = require('worker_threads');

console.log = console.info = console.error; // stdout is for answers alone

// Ends this process in the midst of a chain, or of a loop without end, where Python was killed and cannot do it.
const watch = `const parent = ${process.ppid};
  setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 500);`;
new Worker(watch, { eval: true }).unref();

const { Refusal } = require('./loaded');
const requests = require('./requests');

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
