// Draws from a density of the user's own, by inverting its integral: `forms/own_density.py` writes the name of the
// density for LAW, its arguments for GIVEN, and their declarations for DECLARED.
//
// x is a function of t, which runs over all numbers, and t = m + s * sinh(u), with m the mode of the density of t.
// The integral over u is cut into panels until halving them changes nothing (eight nodes of Gauss and Legendre each).
// It must be one: a density whose mass was not found is refused, and so is one that is not normalised.
functions {
  // stanc --O1 puts functions in the place of their calls, unless they are overloaded: of calls within calls, megabytes.
  real bread_LAW_at(int t) { return t; }
  real bread_LAW_mass(int a) { return a; }
  real bread_LAW_rng(int a) { return a; }
  real bread_LAW_at(real t, real low, real high DECLARED) {
    real x = t;
    real log_slope = 0;
    if (!is_inf(low) && !is_inf(high)) {
      x = low + (high - low) * inv_logit(t);
      log_slope = log(high - low) + log_inv_logit(t) + log1m_inv_logit(t);
    } else if (!is_inf(low)) {
      x = low + exp(t);
      log_slope = t;
    } else if (!is_inf(high)) {
      x = high - exp(t);
      log_slope = t;
    }
    if (is_inf(x) || x <= low || x >= high) return negative_infinity();
    real value = LAW_lpdf(x GIVEN) + log_slope;
    if (value == positive_infinity()) reject("bread: LAW_lpdf is infinite at ", x);
    return is_nan(value) ? negative_infinity() : value;
  }
  real bread_LAW_mass(real a, real b, real m, real s, real low, real high DECLARED) {
    row_vector[4] node = [0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363];
    row_vector[4] weight = [0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763];
    real total = 0;
    for (i in 1:4) for (side in {-1, 1}) {
      real u = 0.5 * (a + b) + 0.5 * side * (b - a) * node[i];
      total += weight[i] * exp(bread_LAW_at(m + s * sinh(u), low, high GIVEN_MORE) + log(s * cosh(u)));
    }
    return 0.5 * (b - a) * total;
  }
  real bread_LAW_rng(real low, real high DECLARED) {
    int most = 4000;
    real m = 0;
    real best = bread_LAW_at(m, low, high GIVEN_MORE);
    for (k in 0:16) for (side in {-1, 1}) {
      real value = bread_LAW_at(side * 0.01 * 3.0 ^ k, low, high GIVEN_MORE);
      if (value > best) { m = side * 0.01 * 3.0 ^ k; best = value; }
    }
    if (is_inf(best)) reject("bread: LAW_lpdf is 0 wherever it was looked at");
    {
      real step = 0.1 + 0.1 * abs(m);
      int tried = 0;
      while (step > 1e-13 * (1 + abs(m)) && tried < 1000) {
        real up = bread_LAW_at(m + step, low, high GIVEN_MORE);
        real down = bread_LAW_at(m - step, low, high GIVEN_MORE);
        tried += 1;
        if (fmax(up, down) > best) { m += up >= down ? step : -step; best = fmax(up, down); step *= 2; }
        else step *= 0.5;
      }
    }
    real s = 0;
    for (side in {-1, 1}) {
      real step = 1;
      while (step > 1e-13 && best - bread_LAW_at(m + side * step, low, high GIVEN_MORE) > 1) step *= 0.5;
      if (step == 1) while (step < 1e12 && best - bread_LAW_at(m + side * step, low, high GIVEN_MORE) <= 1) step *= 2;
      s = fmax(s, step);
    }
    vector[most] first;
    vector[most] last;
    vector[most] mass;
    int waiting = 0;
    for (side in {-1, 1}) {
      int far = 0;
      real reached = 0;
      while (far < 2 && reached < 60) {
        real next = reached < 0.5 ? fmax(1e-6, 8 * reached) : reached + 0.5;
        waiting += 1;
        first[waiting] = side > 0 ? reached : -next;
        last[waiting] = side > 0 ? next : -reached;
        mass[waiting] = bread_LAW_mass(first[waiting], last[waiting], m, s, low, high GIVEN_MORE);
        reached = next;
        real there = bread_LAW_at(m + side * s * sinh(reached), low, high GIVEN_MORE) + log(s * cosh(reached));
        far = reached > 0.5 && there < -35 ? far + 1 : 0;
      }
    }
    vector[most] begins;
    vector[most] ends;
    vector[most] holds;
    int n = 0;
    real total = 0;
    while (waiting > 0) {
      real a = first[waiting];
      real b = last[waiting];
      real c = 0.5 * (a + b);
      real left = bread_LAW_mass(a, c, m, s, low, high GIVEN_MORE);
      real right = bread_LAW_mass(c, b, m, s, low, high GIVEN_MORE);
      if (abs(left + right - mass[waiting]) <= 1e-9 || b - a < 1e-10 || n + waiting + 2 > most) {
        n += 1;
        begins[n] = a;
        ends[n] = b;
        holds[n] = left + right;
        total += left + right;
        waiting -= 1;
      } else {
        last[waiting] = c;
        mass[waiting] = left;
        waiting += 1;
        first[waiting] = c;
        last[waiting] = b;
        mass[waiting] = right;
      }
    }
    if (!(abs(total - 1) <= 1e-6))
      reject("bread: LAW_lpdf integrates to ", total, " between ", low, " and ", high,
             ": a density must integrate to one, and bread finds the mass of one that has a single mode");
    real left_over = uniform_rng(0, 1) * total;
    int k = 1;
    while (k < n && left_over >= holds[k]) {
      left_over -= holds[k];
      k += 1;
    }
    real a = begins[k];
    real b = ends[k];
    for (i in 1:30) {
      real c = 0.5 * (a + b);
      real left = bread_LAW_mass(a, c, m, s, low, high GIVEN_MORE);
      if (left_over < left) b = c;
      else { left_over -= left; a = c; }
    }
    real t = m + s * sinh(uniform_rng(a, b));
    if (!is_inf(low) && !is_inf(high)) return low + (high - low) * inv_logit(t);
    if (!is_inf(low)) return low + exp(t);
    return is_inf(high) ? t : high - exp(t);
  }
}
