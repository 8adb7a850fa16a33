"""Densities of a vector that a program writes itself, where they are normal: a CAR prior by its sparse matrix, say.

Neither the name of such a density counts nor how it is computed. With every draw, differences of its logs at the origin
and next to it give the precision and the mean that it has if it is normal; the vector is drawn from that normal law.
That the program's log density is the law's, but for one constant, is compared at every start, as for every simulator:
one that is not normal differs, and so does one whose determinant is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.syntax import distribution_of, nodes, strip
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.forms.induced import densities_of
from bread.backends.stan.simulator.forms.own import type_of, with_arguments

# {law} is the program's density, {own} the normal law with its precision and mean; steps are about a standard deviation
_FUNCTIONS = """
matrix {own}_terms(int n{declared}) {{
  matrix[n, n + 1] found;
  vector[n] zero = rep_vector(0, n);
  vector[n] step = rep_vector(1, n);
  vector[n] one;
  real origin = {law}_lpdf(zero{given});
  for (turn in 1:2) for (i in 1:n) {{
    vector[n] x = zero;
    x[i] = step[i];
    one[i] = {law}_lpdf(x{given}) - origin;
    x[i] = -step[i];
    real other = {law}_lpdf(x{given}) - origin;
    found[i, i] = -(one[i] + other) / square(step[i]);
    found[i, n + 1] = (one[i] - other) / (2 * step[i]);
    if (turn == 1 && found[i, i] > 0) step[i] = inv_sqrt(found[i, i]);
  }}
  for (i in 2:n) for (j in 1:(i - 1)) {{
    vector[n] x = zero;
    x[i] = step[i];
    x[j] = step[j];
    found[i, j] = -({law}_lpdf(x{given}) - origin - one[i] - one[j]) / (step[i] * step[j]);
    found[j, i] = found[i, j];
  }}
  found[, 1:n] = cholesky_decompose(found[, 1:n]);
  found[, n + 1] = mdivide_right_tri_low(mdivide_left_tri_low(found[, 1:n], found[, n + 1])', found[, 1:n])';
  return found;
}}
vector {own}_rng(int n{declared}) {{
  matrix[n, n + 1] found = {own}_terms(n{more});
  vector[n] z;
  for (i in 1:n) z[i] = std_normal_rng();
  return found[, n + 1] + mdivide_right_tri_low(z', found[, 1:n])';
}}
real {own}_lpdf(vector x{declared}) {{
  int n = size(x);
  matrix[n, n + 1] found = {own}_terms(n{more});
  vector[n] z = found[, 1:n]' * (x - found[, n + 1]);
  return std_normal_lpdf(z) + sum(log(diagonal(found[, 1:n])));
}}
"""


def gaussian_law(
    flow: Dataflow, name: str, n_arguments: int, variate: Variate, declared: Sequence[str]
) -> tuple[str, Distribution, str] | None:
    """Return how a density of the program's own is drawn that may be a normal law of a vector; None for any other.

    Returns
    -------
    name : str
        Of the law that is added up.
    law : Distribution
    functions : str
        Its Stan functions.
    """
    variable = variate.variable
    if variable.type != "vector" or variable.array_sizes or variable.bounds or not variate.is_whole or variate.wrappers:
        return None
    versions = with_arguments(flow.scopes.functions[f"{name}_lpdf"], n_arguments + 1)
    if len(versions) != 1 or type_of(versions[0][0]) != "vector":
        return None
    own, listed = f"bread_normal_{name}", "".join(f", bread_given{i}" for i in range(n_arguments))
    functions = _FUNCTIONS.format(
        law=name, own=own, given=listed.replace(",", " |", 1), more=listed, declared="".join(declared)
    )
    places = "".join(f", {{{i}}}" for i in range(n_arguments))
    law = Distribution("vector", f"{own}_rng(size({{variate}}){places})", support="real")
    return own, law, " ".join(functions.split())


def laws_of_vectors(flow: Dataflow) -> tuple[str, ...]:
    """Return the program's own densities that are given a whole vector: they may be normal."""
    found: dict[str, None] = {}
    for contribution in flow.contributions:
        for density in densities_of(contribution.node):
            left, name = strip(nodes(density)[0]), f"{distribution_of(density)}_lpdf"
            variable = flow.scopes.variable(left) if left.data == "variable" else None
            if variable is not None and variable.type == "vector" and name in flow.scopes.functions:
                found[name] = None
    return tuple(found)
