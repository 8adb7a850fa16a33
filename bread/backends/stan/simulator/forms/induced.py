"""Induced Dirichlet priors: cutpoints whose categories have probabilities with a Dirichlet law (Betancourt 2019).

``c ~ induced_dirichlet(alpha, phi)`` is a density that a program writes itself, of any name, order of arguments and
way to compute it. Its values tell what it is: with every draw it is compared with the law itself, under the logistic
and the normal link, and refused where it is neither, but for a constant (the case study's own function is the number
of categories times the density). Cutpoints are drawn from that law: probabilities from the Dirichlet law, and their
running sums through the link, about the anchor ``phi`` (0 where there is none).
"""

from __future__ import annotations

from collections.abc import Iterator

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.syntax import Node, distribution_of, is_density, nodes, terms, walk
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.forms.own import type_of, with_arguments

_ALPHA, _PHI = "bread_alpha", "bread_phi"
# {law} is the program's density, {own} the law that it is compared with. No function returns early: stanc --O1, which
# puts functions in the place of their calls, runs what follows a return inside of a loop.
_FUNCTIONS = """
int {own}_link({declared}) {{ {no_phi}
  int n = size(bread_alpha) - 1;
  int found = 0;
  vector[n] c;
  array[2, 4] real excess;
  for (link in 1:2) {{
    int same = 1;
    for (power in 1:4) {{
      for (k in 1:n) {{
        real share = (k * 1.0 / (n + 1)) ^ (0.5 * power);
        c[k] = bread_phi + (link == 1 ? logit(share) : inv_Phi(share));
      }}
      excess[link, power] = {law}_lpdf(c | {given}) - bread_cutpoints_lpdf(c | bread_alpha, bread_phi, link);
      if (!(abs(excess[link, power] - excess[link, 1]) <= 1e-8 * (1 + abs(excess[link, 1]) + sum(abs(bread_alpha)))))
        same = 0;
    }}
    if (same == 1 && found == 0) found = link;
  }}
  if (found == 0)
    reject("bread: {law}_lpdf, a density of cutpoints, is not the one that a Dirichlet law of the categories' ",
           "probabilities induces: their logs differ by ", excess[1], " at four places under the logistic link, by ",
           excess[2], " under the normal one, and must differ by one constant (alpha = ", bread_alpha, ", phi = ",
           bread_phi, "). Check signs and Jacobian");
  return found;
}}
real {own}_lpdf(vector c, {declared}) {{ {no_phi}
  return bread_cutpoints_lpdf(c | bread_alpha, bread_phi, {own}_link({given}));
}}
vector {own}_rng({declared}) {{ {no_phi}
  return bread_cutpoints_rng(bread_alpha, bread_phi, {own}_link({given}));
}}
"""


def induced_law(flow: Dataflow, name: str, n_arguments: int, variate: Variate) -> tuple[str, Distribution, str] | None:
    """Return name, law and Stan functions of what a program's own density of cutpoints must be.

    None where what it is given says that it is something else.
    """
    variable = variate.variable
    if variable.kind != "parameter" or variable.type != "ordered" or variate.wrappers:
        return None
    given = _arguments(flow, name, n_arguments)
    if given is None:
        return None
    own = f"bread_cutpoints_{name}"
    functions = _FUNCTIONS.format(
        law=name,
        own=own,
        given=", ".join(given),
        declared=", ".join(f"{'vector' if one == _ALPHA else 'real'} {one}" for one in given),
        no_phi="" if _PHI in given else f"real {_PHI} = 0;",
    )
    places = ", ".join(f"{{{i}}}" for i in range(len(given)))
    law = Distribution("vector", f"{own}_rng({places})", (given.index(_ALPHA),), support="real")
    return own, law, " ".join(functions.split())


def _arguments(flow: Dataflow, name: str, n: int) -> list[str] | None:
    """Return which argument is which: a vector, and perhaps a number; None for other arguments."""
    versions = with_arguments(flow.scopes.functions.get(f"{name}_lpdf", ()), n + 1)
    types = [[type_of(one) for one in version] for version in versions]
    if len(types) != 1 or types[0][0] != "vector" or sorted(types[0][1:]) not in (["vector"], ["real", "vector"]):
        return None
    return [_ALPHA if one == "vector" else _PHI for one in types[0][1:]]


def laws_of_cutpoints(flow: Dataflow) -> tuple[str, ...]:
    """Return the program's own densities that may be induced Dirichlet laws of what they are given to."""
    found: dict[str, None] = {}
    for contribution in flow.contributions:
        for density in densities_of(contribution.node):
            variate, *arguments = nodes(density)
            name = distribution_of(density)
            base = next((flow.scopes.variable(one) for one in walk(variate) if one.data == "variable"), None)
            if base is not None and base.type == "ordered" and _arguments(flow, name, len(arguments)) is not None:
                found[f"{name}_lpdf"] = None
    return tuple(found)


def densities_of(statement: Node) -> Iterator[Node]:
    """Yield the densities that a statement adds."""
    if statement.data == "tilde":
        yield statement
    elif statement.data == "assignment":
        yield from (one for _, one in terms(nodes(statement)[1]) if is_density(one) and nodes(one))
