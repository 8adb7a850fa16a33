#!/usr/bin/env bash
# Expected: hypergeometric_rng(N, a, b) draws by hypergeometric_lpmf(n | N, a, b): how many of a are among N taken from a + b.
# Happens: it draws another law: with N = 4, a = 3, b = 9 the value 0, whose probability is 0.25, never comes, and 3,
#   whose probability is 0.02, comes most often: it inverts the distribution of how many of b are taken, from 1 up. For
#   the valid (30, 200, 300) it throws a "random variable out of range" of Boost's distribution function.
# Versions: Stan Math of httpstan 4.17.0 (Stan 2.39), Python 3.13; 4.13.0 (2.35) has the same header.
# Source: run here; stan/math/prim/prob/hypergeometric_rng.hpp.
# Why it matters: posterior predictive checks and simulation-based calibration of capture-recapture models call a right model
#   wrong, or stop with an error that names Boost.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.13}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet httpstan==4.17.0
cat > "$work/draws.cpp" <<'CPP'
#include <stan/math/prim/prob/hypergeometric_lpmf.hpp>
#include <stan/math/prim/prob/hypergeometric_rng.hpp>
#include <boost/random/additive_combine.hpp>
#include <iostream>

int main() {
  boost::ecuyer1988 rng(1);
  const int n = 20000, N = 4, a = 3, b = 9;
  double counts[5] = {0, 0, 0, 0, 0};
  for (int i = 0; i < n; ++i) counts[stan::math::hypergeometric_rng(N, a, b, rng)] += 1.0 / n;
  for (int k = 0; k <= 4; ++k)
    std::cout << k << " " << counts[k] << " " << (k <= a ? std::exp(stan::math::hypergeometric_lpmf(k, N, a, b)) : 0) << "\n";
  try {
    for (int i = 0; i < n; ++i) stan::math::hypergeometric_rng(30, 200, 300, rng);
    std::cout << "drawn\n";
  } catch (const std::exception& error) {
    std::cout << "throws: " << error.what() << "\n";
  }
}
CPP
include=$("$work/venv/bin/python" -c "import httpstan, pathlib; print(pathlib.Path(httpstan.__file__).parent / 'include')")
lib=$(dirname "$include")/lib
tbb=$(ls "$lib"/libtbb.so* | head -1)
g++ -std=c++17 -O0 -w -D_REENTRANT -I"$include" "$work/draws.cpp" -o "$work/draws" "$tbb" -Wl,-rpath,"$lib"
"$work/draws" > "$work/out"
"$work/venv/bin/python" - "$work/out" <<'PYTHON'
import sys

*rows, last = open(sys.argv[1]).read().splitlines()
print("httpstan 4.17.0 (Stan 2.39); N = 4, a = 3, b = 9: value, share of draws, probability")
print(*rows, sep="\n")
print("N = 30, a = 200, b = 300:", last)
drawn, mass = zip(*((float(row.split()[1]), float(row.split()[2])) for row in rows), strict=True)
assert abs(sum(mass) - 1.0) < 1e-4
assert max(abs(one - other) for one, other in zip(drawn, mass, strict=True)) > 0.1, "changed: the draws have the mass"
assert last.startswith("throws"), "changed: (30, 200, 300) is drawn"
PYTHON
