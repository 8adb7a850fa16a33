"""Which prior to suggest where a parameter has none: one that fits its type, and its bounds.

A suggestion is a proper law on the whole support of the declared type, in one line that can be added to the program as
it stands. Its scale cannot be known from a declaration: the messages say that it is the user's to choose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bread.backends.stan.language.refusals import quote
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_number

_BRMS = "generated with brms"  # the comment on the first line of programs that brms makes
_BRMS_CLASSES = {  # of parameters that may be of a response, a distributional or a non-linear parameter; of others
    r"b(s|sp|cs)?": "b", r"Intercept": "Intercept", r"(sigma|shape|nu|phi|kappa|zi|hu|alpha)": r"\1",
    r"sd_\d+": "sd", r"sds_\w+": "sds", r"sdgp_\w+": "sdgp", r"L_\d+": "L", r"Lrescor": "Lrescor", r"simo_\w+": "simo",
}  # fmt: skip
_COUNTERS = ("i", "j", "k", "l", "m", "i1", "i2", "i3", "i4", "i5")
_FLAT, _ORDERED, _SCALE = "normal(0, 2.5)", "student_t(3, 0, 2.5)", "exponential(1)"


def mending_line(variable: Variable, source: Source) -> str:
    """Return a line that gives a parameter a weakly informative proper prior.

    Parameters
    ----------
    variable : Variable
    source : Source
        Of the program that declares it.

    Returns
    -------
    str
        Such as ``theta ~ dirichlet(rep_vector(1, K));`` for a simplex; whole containers in loops where Stan has no
        statement for them.
    """
    n_loops = len(variable.array_sizes) - (1 if variable.plain == "real" and variable.array_sizes else 0)
    code = source.code
    counters = [name for name in _COUNTERS if not re.search(rf"\b{name}\b", code)][:n_loops]
    element = f"{variable.name}[{', '.join(counters)}]" if counters else variable.name
    loops = "".join(
        f"for ({counter} in 1:{_text(size, source)}) "
        for counter, size in zip(counters, variable.array_sizes, strict=False)
    )
    is_plain_matrix = variable.type == "matrix"
    return f"{loops}{f'to_vector({element})' if is_plain_matrix else element} ~ {_law(variable, source)};"


def mending(variables: Sequence[Variable], source: Source) -> str:
    """Return what to do about parameters without a prior: a line for each, and brms's own word for it where it fits."""
    lines = " ".join(mending_line(variable, source) for variable in variables)
    whose = "scale is" if len(variables) == 1 else "scales are"
    brms = in_words_of_brms(variables, source)
    return f"Add to the model block, for example, `{lines}`{brms}; the {whose} yours to choose."


def in_words_of_brms(variables: Sequence[Variable], source: Source) -> str:
    """Return brms's own statements of these priors, in brackets; "" where the program is none of brms's."""
    found = [_brms(variable, source) for variable in variables] if _BRMS in source.text else []
    return f" (brms: {', '.join(filter(None, found))})" if any(found) else ""


def _law(variable: Variable, source: Source) -> str:
    if variable.type in ("corr_matrix", "cholesky_factor_corr"):
        return "lkj_corr(2)" if variable.type == "corr_matrix" else "lkj_corr_cholesky(2)"
    size = _text(variable.sizes[0], source) if variable.sizes else ""
    if variable.type == "simplex":
        return f"dirichlet(rep_vector(1, {size}))"
    if variable.type in ("cov_matrix", "cholesky_factor_cov"):
        name = "inv_wishart" if variable.type == "cov_matrix" else "wishart_cholesky"
        return f"{name}({size} + 2, identity_matrix({size}))"
    if variable.type in ("ordered", "positive_ordered"):
        return _ORDERED if variable.type == "ordered" else _SCALE
    return _law_within_bounds(variable, source)


def _law_within_bounds(variable: Variable, source: Source) -> str:
    """Return a law of a real or a container of reals: a normal law that starts at a single bound is a half-normal."""
    bounds = {name: quote(source, node) for name, node in variable.bounds.items()}
    lower, upper = (None if "infinity" in bounds.get(name, "infinity") else bounds[name] for name in ("lower", "upper"))
    if lower is not None and upper is not None:
        return f"uniform({lower}, {upper})"
    if lower is not None:
        return _SCALE if is_number(variable.bounds["lower"], 0) else f"normal({lower}, 2.5)"
    if upper is not None:
        return f"normal({upper}, 2.5)"
    if "offset" in bounds or "multiplier" in bounds:
        return f"normal({bounds.get('offset', '0')}, {bounds.get('multiplier', '2.5')})"
    return _FLAT


def _brms(variable: Variable, source: Source) -> str:
    """Return brms's own statement of a prior for a parameter of its programs; "" where it has no class for it."""
    for pattern, name in _BRMS_CLASSES.items():
        match = re.fullmatch(rf"{pattern}(?:_(?P<of>\w+))?", variable.name)
        if match is not None:
            parts = match["of"].split("_") if match["of"] else []
            of = "".join(f", {_brms_kind(part, source)} = {part}" for part in parts)
            return f"prior({_law(variable, source)}, class = {match.expand(name)}{of})"
    return ""


def _brms_kind(part: str, source: Source) -> str:
    """Return what a part of a parameter's name names: brms calls outcomes Y_name, non-linear predictors nlp_name."""
    if re.search(rf"\bY_{part}\b", source.code):
        return "resp"
    return "nlpar" if re.search(rf"\bnlp_(\w+_)?{part}\b", source.code) else "dpar"


def _text(node: Node, source: Source) -> str:
    found = quote(source, node)
    return found if re.fullmatch(r"\w+", found) else f"({found})"
