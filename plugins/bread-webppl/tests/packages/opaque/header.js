// A function of JavaScript, which takes a lifted number's value: its derivative is lost.
'use strict';

module.exports = function () {
  const opaque = { twice: (x) => 2 * global.ad.value(x) };
  global.opaque = opaque;
  return { opaque };
};
