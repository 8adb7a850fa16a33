"""Stan code that draws from a distribution truncated to an interval, however little probability the interval has.

Redrawing until a value lies inside is exact but may never end. After a number of failures the value is found by
inverting the distribution function that the truncated density itself is normalised by: bisection in the smaller tail
for continuous distributions, summing the mass function for discrete ones.
"""

from __future__ import annotations

from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.split.rewriting import truncated_probability

TRIES = 1000  # redraws before the distribution function is inverted
_HALVINGS = 200  # more than the 52 bits of a double, so that an interval that begins wide is halved to rounding, too
_UNDERFLOW = 'reject("bread: the probability of the truncation underflows")'


def inverse_code(
    name: str, distribution: Distribution, low: str | None, high: str | None, arguments: list[str], value: str
) -> str:
    """Return statements that assign a draw of ``name(arguments) T[low, high]`` to the variable ``value``.

    Parameters
    ----------
    name : str
        The distribution, a scalar one that has ``_lcdf`` and ``_lccdf``.
    distribution : Distribution
    low, high : str or None
        Limits; one at least.
    arguments : list of str
    value : str
        A declared variable of the distribution's type.
    """
    listed = ", ".join(arguments)
    if distribution.discrete:
        return _sum_code(name, low, high, listed, value)
    start, end = low, high
    if start is None and distribution.support in ("positive", "unit"):
        start = "0.0"
    if end is None and distribution.support == "unit":
        end = "1.0"
    lower, upper = f"{name}_lcdf({{}} | {listed})", f"{name}_lccdf({{}} | {listed})"
    upward = f"if ({upper.format('bread_m')} > bread_t) bread_a = bread_m; else bread_b = bread_m;"
    downward = f"if ({lower.format('bread_m')} < bread_t) bread_a = bread_m; else bread_b = bread_m;"
    before = "real bread_u = uniform_rng(0, 1); real bread_w = 1; "
    if low is None:
        assert high is not None
        target = f"real bread_t = {lower.format(high)} + log(bread_u); real bread_b = {high}; "
        first = _left(start, high, lower)
        step = downward
    elif high is None:
        target = f"real bread_t = {upper.format(low)} + log(bread_u); real bread_a = {low}; "
        first = _right(end, low, upper)
        step = upward
    else:
        target = (
            f"int bread_is_lower = {lower.format(high)} <= {upper.format(low)}; real bread_t = bread_is_lower ? "
            f"log_sum_exp(log(bread_u) + {lower.format(high)}, log1m(bread_u) + {lower.format(low)}) : "
            f"log_sum_exp(log(bread_u) + {upper.format(low)}, log1m(bread_u) + {upper.format(high)}); "
        )
        first = f"real bread_a = {low}; real bread_b = {high}; "
        step = f"if (bread_is_lower) {{ {downward} }} else {{ {upward} }}"
    check = f"if (is_inf(bread_t) || is_nan(bread_t)) {_UNDERFLOW}; "
    return (
        f"{{ {before}{target}{check}{first}for (bread_h in 1:{_HALVINGS}) {{ real bread_m = bread_a + "
        f"(bread_b - bread_a) / 2; {step} }} {value} = bread_a + (bread_b - bread_a) / 2; }}"
    )


def _left(start: str | None, high: str, lower: str) -> str:
    """Declare ``bread_a``, at or left of the value sought: the end of the support, or by doubling."""
    if start is not None:
        return f"real bread_a = {start}; "
    return f"while ({lower.format(f'({high}) - bread_w')} > bread_t) bread_w *= 2; real bread_a = ({high}) - bread_w; "


def _right(end: str | None, low: str, upper: str) -> str:
    """Declare ``bread_b``, at or right of the value sought."""
    if end is not None:
        return f"real bread_b = {end}; "
    return f"while ({upper.format(f'({low}) + bread_w')} > bread_t) bread_w *= 2; real bread_b = ({low}) + bread_w; "


def _sum_code(name: str, low: str | None, high: str | None, arguments: str, value: str) -> str:
    """Add up probabilities from the limit on, until they exceed a uniform number."""
    inside = truncated_probability(name, low, high, arguments, f"{name}_lpmf")
    begin, step, last = (low, 1, high) if low is not None else (high, -1, "0")
    stop = f" && {value} != {last}" if last is not None else ""
    return (
        f"{{ real bread_t = {inside}; if (is_inf(bread_t) || is_nan(bread_t)) {_UNDERFLOW}; "
        f"real bread_u = uniform_rng(0, 1); {value} = {begin}; "
        f"real bread_c = exp({name}_lpmf({value} | {arguments}) - bread_t); "
        f"while (bread_c < bread_u{stop}) {{ {value} += {step}; "
        f"bread_c += exp({name}_lpmf({value} | {arguments}) - bread_t); }} }}"
    )
