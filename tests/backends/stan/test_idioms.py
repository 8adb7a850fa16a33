"""Idioms of published programs: exact simulators, and no simulator of another law for programs with one mistake.

Programs run in an interpreter in Python with densities by SciPy: log prior and log likelihood of the program are those
of its simulator, but for one constant, at the simulator's own draws. That is what opening compares, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.backends.stan.analysis import changes
from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.jacobians import jacobian_edits
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.dataflow import analyse_dataflow
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.source import Source, StancOutput
from bread.backends.stan.language.syntax import parse
from bread.backends.stan.simulator.forms import own
from bread.backends.stan.split.rewriting import apply_edits
from bread.errors import BreadError
from tests.support.stan_corpus_table import analyse_text, stanc
from tests.support.stan_interpreter import RejectedError
from tests.support.stan_mutants import drawn, interpreter, is_constant

pytestmark = pytest.mark.stan

N_DRAWS = 5
Y = [0.3, -1.0, 2.0, 0.1, 0.5, 1.5]
X = [[0.1, 0.2, 0.3], [0.4, -0.5, 0.1], [1.0, 0.0, 2.0], [0.1, 0.2, 0.3], [0.4, -0.5, 0.1], [1.0, 0.0, 2.0]]


@dataclass(frozen=True)
class Idiom:
    """A program, its outcome, and changes of its text after which it has no simulator, or the comparison tells."""

    name: str
    data: str
    parameters: str
    model: str
    values: dict[str, Any]
    mutants: tuple[tuple[str, str], ...]
    observed: str = "y"
    before: str = ""
    transformed: str = ""

    @property
    def text(self) -> str:
        middle = f"transformed parameters {{ {self.transformed} }}\n" if self.transformed else ""
        return (
            f"{self.before}\ndata {{ {self.data} }}\nparameters {{ {self.parameters} }}\n"
            f"{middle}model {{ {self.model} }}\n"
        )


_GROUPS = "int N; int J; vector[N] y; array[J] int n; array[J] int s; array[J] int e; array[N] int g;"
_OF_GROUPS = {"N": 6, "J": 3, "y": Y, "n": [2, 1, 3], "s": [1, 3, 4], "e": [2, 3, 6], "g": [1, 2, 1, 2, 2, 1]}
_PRIORS = "mu ~ normal(0, 1); sigma ~ exponential(1); "
_MEANS = "vector[J] mu; real<lower=0> sigma;"
_CHOICES = "int N; int K; array[N] int<lower=1> c; matrix[N, K] x;"
_OF_CHOICES = {"N": 6, "K": 3, "c": [1, 2, 3, 1, 2, 3], "x": X}
_LINES = "int N; int K; matrix[N, K] x; vector[N] y;"
_OF_LINES = {"N": 6, "K": 3, "x": X, "y": Y}

IDIOMS = (
    Idiom(
        "ragged loop", _GROUPS, _MEANS,
        _PRIORS + "for (j in 1:J) for (i in s[j]:e[j]) y[i] ~ normal(mu[j], sigma);", _OF_GROUPS,
        (("s[j]:e[j]", "s[j]:(e[j] + 1)"), ("s[j]:e[j]", "1:e[j]"), ("y[i]", "y[j]"), ("y[i]", "y[s[j]]")),
    ),
    Idiom(
        "ragged slices", _GROUPS, _MEANS, _PRIORS + "for (j in 1:J) y[s[j]:e[j]] ~ normal(mu[j], sigma);", _OF_GROUPS,
        (("s[j]:e[j]", "s[j]:(e[j] + 1)"), ("s[j]:e[j]", "1:e[j]"), ("s[j]:e[j]", "s[1]:e[1]")),
    ),
    Idiom(
        "segments", _GROUPS, _MEANS,
        _PRIORS + "int at = 1; for (j in 1:J) { segment(y, at, n[j]) ~ normal(mu[j], sigma); at = at + n[j]; }",
        _OF_GROUPS,
        (
            ("y, at, n[j]", "y, 1, n[j]"), ("at + n[j]", "at + n[j] - 1"), ("int at = 1", "int at = 2"),
            ("segment(y, at, n[j])", "head(y, n[j])"), ("segment(y, at, n[j])", "tail(y, n[j])"),
        ),
    ),
    Idiom(
        "running position", _GROUPS, _MEANS,
        _PRIORS + "int at = 1; for (j in 1:J) for (k in 1:n[j]) { y[at] ~ normal(mu[j], sigma); at += 1; }", _OF_GROUPS,
        (("at += 1", "at += 0"), ("at += 1", "at -= 1"), ("int at = 1", "int at = 2"), ("1:n[j]", "0:n[j]")),
    ),
    Idiom(
        "ragged prior", _GROUPS, f"{_MEANS} vector[N] theta;",
        _PRIORS + "int at = 1; for (j in 1:J) { theta[at:(at + n[j] - 1)] ~ normal(mu[j], 1); at += n[j]; } "
        "y ~ normal(theta, sigma);", _OF_GROUPS,
        (
            ("at + n[j] - 1", "at + n[j]"), ("at + n[j] - 1", "at + n[j] - 2"), ("at += n[j]", "at += 1"),
            ("int at = 1", "int at = 2"), ("1:J", "1:(J - 1)"), ("theta[at:", "theta[1:"),
        ),
    ),
    Idiom(
        "groups by conditions", _GROUPS, _MEANS,
        _PRIORS + "for (i in 1:N) { if (g[i] == 1) y[i] ~ normal(mu[1], sigma); "
        "if (g[i] == 2) y[i] ~ normal(mu[2], 1); }", _OF_GROUPS,
        (("g[i] == 2", "g[i] == 1"), ("g[i] == 2", "g[i] >= 1"), ("if (g[i] == 2) y[i]", "if (g[i] == 2) y[1]")),
    ),
    Idiom(
        "lists of indices", "int N; int A; int B; array[A] int ia; array[B] int ib; vector[N] y;",
        "vector[2] mu; real<lower=0> sigma;", _PRIORS + "y[ia] ~ normal(mu[1], sigma); y[ib] ~ normal(mu[2], 1);",
        {"N": 6, "A": 3, "B": 2, "ia": [1, 3, 6], "ib": [2, 5], "y": Y},
        (("y[ib]", "y[ia]"), ("y[ib]", "y[1:2]"), ("y[ib]", "y")),
    ),
    Idiom(
        "partial sums over indices", "int N; vector[N] y; array[N] int index;", "real mu; real<lower=0> sigma;",
        _PRIORS + "target += reduce_sum(part, index, 1, y, mu, sigma);",
        {"N": 6, "index": [6, 5, 4, 3, 2, 1], "y": Y},
        (("y[index[k]]", "y[index[1]]"), ("y[index[k]]", "y[index[k] %/% 2 + 1]"), ("1:size(index)", "0:size(index)")),
        before="functions { real part(array[] int index, int first, int last, vector y, real mu, real sigma) { "
        "real total = 0; for (k in 1:size(index)) total += normal_lpdf(y[index[k]] | mu, sigma); return total; } }",
    ),
    Idiom(
        "log_softmax of a choice", _CHOICES, "real b;",
        "b ~ normal(0, 1); for (i in 1:N) target += log_softmax(b * x[i]')[c[i]];", _OF_CHOICES,
        (
            ("log_softmax(", "softmax("), ("log_softmax(b * x[i]')", "(b * x[i]')"), ("[c[i]]", "[c[1]]"),
            ("log_softmax(b * x[i]')", "(0.5 * log_softmax(b * x[i]'))"), ("[c[i]]", "[c[i] % 3 + 1]"),
        ),
        observed="c",
    ),
    Idiom(
        "table of log probabilities", _CHOICES, "real b;",
        "b ~ normal(0, 1); for (i in 1:N) { vector[K] lp = log_softmax(b * x[i]'); target += lp[c[i]]; }", _OF_CHOICES,
        (
            ("log_softmax(", "("), ("+= lp", "+= lp[1] + lp"), ("target +=", "lp[1] = 0; target +="),
            ("lp[c[i]]", "2 * lp[c[i]]"), ("lp[c[i]]", "log(lp[c[i]])"),
        ),
        observed="c",
    ),
    Idiom(
        "a local outcome, shifted", "int N; array[N] int a;", "real b;",
        "b ~ normal(0, 1); for (i in 1:N) { int r = a[i] - 1; r ~ bernoulli_logit(b); }", {"N": 4, "a": [1, 2, 1, 1]},
        (
            ("a[i] - 1", "a[1] - 1"), ("a[i] - 1", "2 * a[i]"),
            ("int r = a[i] - 1;", "int r = 1; if (i > 2) r = a[i];"),
            ("int r = a[i] - 1;", "int k = 1; int r = a[k] - 1; k = i;"),
        ),
        observed="a",
    ),
    Idiom(
        "outcome less its mean", _LINES, "vector[K] b; real<lower=0> sigma;",
        "b ~ normal(0, 1); sigma ~ exponential(1); y - x * b ~ normal(0, sigma);", _OF_LINES,
        (
            ("y - x * b", "(y - x * b) / sigma"), ("y - x * b", "y .* (x * b)"), ("y - x * b", "y - mean(y) * b[1]"),
            ("y - x * b", "y - 0.1 * reverse(y)"),
        ),
    ),
    Idiom(
        "effects less their mean", "int N; vector[N] x; vector[N] y;", "real a; vector[N] m; real<lower=0> sigma;",
        "a ~ normal(0, 1); sigma ~ exponential(1); a * x - m ~ normal(0, sigma); y ~ normal(m, 1);",
        {"N": 6, "x": [1.0, 2.0, 0.5, 0.3, 0.2, 0.7], "y": Y},
        (("a * x - m", "a * m"), ("a * x - m", "m - m[1]"), ("a * x - m", "m - m .* x"), ("a * x - m", "a * x")),
    ),
    Idiom(
        "codes of missing counts", "int N; array[N] int y;", "real<lower=0> a;",
        "a ~ gamma(9, 3); for (n in 1:N) if (y[n] >= 0 && n > 1) y[n] ~ poisson(a);", {"N": 5, "y": [0, 1, -1, 3, -1]},
        (
            (">= 0", ">= 1"), (">= 0", "> 0"), ("y[n] >= 0", "y[1] >= 0"), (">= 0", "<= 3"), (">= 0", "!= 2"),
            ("&&", "||"), ("n > 1", "y[1] > 0"), ("y[n] >= 0", "y[n] - 1 >= 0"),
        ),
    ),
    Idiom(
        "codes of missing reals", "int N; vector[N] y;", "real a;",
        "a ~ normal(0, 1); for (n in 1:N) if (y[n] != -99) y[n] ~ normal(a, 1);", {"N": 3, "y": [0.1, -99, 2.0]},
        (("!= -99", "> -99"), ("!= -99", "== -99"), ("y[n] != -99", "y[1] != -99"), ("y[n] ~", "y[1] ~")),
    ),
    Idiom(
        "hmm_marginal by rows", "int N; vector[N] y;", "array[2] simplex[2] G; simplex[2] rho; vector[2] mu;",
        "mu ~ normal(0, 1); target += hmm_marginal(lo, Gamma, rho);", {"N": 4, "y": Y[:4]},
        (
            ("lo[2, n]", "lo[1, n]"), ("mu[2], 2", "mu[2] + 1, 2"), ("= G[k]'", "= 2 * G[k]'"),
            ("lo[2, n] = normal_lpdf(y[n]", "lo[2, n] = normal_lpdf(y[1]"), ("lo[2, n]", "lo[2, N - n + 1]"),
            ("Gamma[k] = G[k]'", "Gamma[, k] = G[k]"),
        ),
        transformed="matrix[2, N] lo; matrix[2, 2] Gamma; for (k in 1:2) Gamma[k] = G[k]'; for (n in 1:N) { "
        "lo[1, n] = normal_lpdf(y[n] | mu[1], 1); lo[2, n] = normal_lpdf(y[n] | mu[2], 2); }",
    ),
    Idiom(
        "log of a scale", "int N; vector[N] y;", "real ls; real mu;",
        "mu ~ normal(0, 1); s ~ gamma(2, 2); target += ls; y ~ normal(mu, s);", {"N": 6, "y": Y},
        (
            ("target += ls", "target += 2 * ls"), ("target += ls", "target += -ls"), ("target += ls;", ""),
            ("exp(ls)", "exp(2 * ls)"), ("exp(ls)", "exp(ls) + 1"), ("exp(ls)", "square(ls)"),
            ("target += ls", "target += N * ls"), ("target += ls", "if (mu < 0) target += ls"),
            ("target += ls", "for (i in 1:2) target += ls"), ("target += ls", "target += mu + ls"),
            ("real ls", "real<lower=0> ls"), ("gamma(2, 2)", "gamma(ls + 3, 2)"),
            ("s ~ gamma", "ls ~ normal(0, 1); s ~ gamma"),
        ),
        transformed="real<lower=0> s = exp(ls);",
    ),
    Idiom(
        "half-normal of an exponential", "int N; vector[N] y;", "vector[2] ls; real mu;",
        "mu ~ normal(0, 1); s ~ normal(mu, 1); target += sum(log(s)); y ~ normal(mu, sum(s));", {"N": 6, "y": Y},
        (
            ("sum(log(s))", "log(sum(s))"), ("sum(log(s))", "square(sum(ls))"), ("sum(log(s))", "ls[1]"),
            ("target += sum(log(s))", "for (k in 1:1) target += ls[k]"), ("s[k] = exp(ls[k])", "s[k] = exp(ls[3 - k])"),
            ("sum(log(s))", "sum(log1p(s))"), ("sum(log(s))", "ls[1] + ls[1]"),
        ),
        transformed="vector[2] s; for (k in 1:2) s[k] = exp(ls[k]);",
    ),
    Idiom(
        "log-normal by hand", "int N; vector[N] y;", "real<lower=0> v; real mu;",
        "mu ~ normal(0, 1); log(v) - mu ~ normal(0, 1); target += -log(v); y ~ normal(mu, v);", {"N": 6, "y": Y},
        (
            ("-log(v)", "log(v)"), ("-log(v)", "-2 * log(v)"), ("log(v) - mu", "mu * log(v)"),
            ("<lower=0>", "<lower=0.5>"),
            ("<lower=0>", "<lower=0, upper=1>"), ("log(v) - mu", "log(v - mu)"), ("log(v) - mu", "log(2 * v + 1)"),
        ),
    ),
    Idiom(
        "variance of a precision", "int N; vector[N] y;", "real<lower=0> tau; real mu;",
        "mu ~ normal(0, 1); 1 / tau ~ cauchy(1, exp(mu)); target += -2 * log(tau); y ~ normal(mu, inv_sqrt(tau));",
        {"N": 6, "y": Y},
        (
            ("-2 *", "-1 *"), ("-2 *", "2 *"), ("1 / tau", "1 / tau^2"), ("1 / tau", "2 / (1 + tau)"),
            ("1 / tau", "1 / sqrt(tau)"),
        ),
    ),
    Idiom(
        "probability of a logit", "int N; array[N] int y;", "real x;",
        "p ~ beta(2, 3); target += log(p) + log1m(p); y ~ bernoulli(p);", {"N": 6, "y": [0, 1, 1, 0, 1, 1]},
        (("log1m(p)", "log(p)"), ("log(p) + ", ""), ("log(p) + log1m(p)", "x"), ("log1m(p)", "log1m(x)")),
        transformed="real p = inv_logit(x);",
    ),
    Idiom(
        "CAR by an own density", "int n; int W_n; array[W_n, 2] int W; vector[n] D; vector[n] lambda; array[n] int y;",
        "real b; vector[n] phi; real<lower=0> tau; real<lower=0, upper=1> alpha;",
        "phi ~ sparse_car(tau, alpha, W, D, lambda, n, W_n); b ~ normal(0, 1); tau ~ gamma(4, 2); "
        "y ~ poisson_log(b + phi);",
        {
            "n": 2, "W_n": 1, "W": [[1, 2]], "D": [1.0, 1.0], "lambda": [1.0, -1.0],
            "y": [1, 0],
        },
        (
            ("n * log(tau)", "(n - 1) * log(tau)"), ("log1m(alpha * lambda[i])", "log1m(alpha * lambda[1])"),
            ("D_phi * phi", "D_phi * exp(phi)"), ("return 0.5", "return 0.1 * sin(sum(phi)) + 0.5"),
            ("phi ~ sparse", "phi ~ normal(0, 1); phi ~ sparse"), ("tau * (", "-tau * ("),
        ),
        before="functions { real sparse_car_lpdf(vector phi, real tau, real alpha, array[,] int W, vector D, "
        "vector lambda, int n, int W_n) { row_vector[n] D_phi = (phi .* D)'; "
        "row_vector[n] W_phi = rep_row_vector(0, n); "
        "vector[n] terms; for (i in 1:W_n) { W_phi[W[i, 1]] = W_phi[W[i, 1]] + phi[W[i, 2]]; "
        "W_phi[W[i, 2]] = W_phi[W[i, 2]] + phi[W[i, 1]]; } for (i in 1:n) terms[i] = log1m(alpha * lambda[i]); "
        "return 0.5 * (n * log(tau) + sum(terms) - tau * (D_phi * phi - alpha * (W_phi * phi))); } }",
    ),
    Idiom(
        "Skellam", "int N; array[N] int y;", "real<lower=0> a; real<lower=0> b;",
        "a ~ gamma(9, 3); b ~ gamma(9, 3); for (n in 1:N) y[n] ~ skellam(a, b);", {"N": 4, "y": [1, 0, -2, 3]},
        (("-(a + b)", "-(a + 0.9 * b)"), ("0.5 * k", "0.6 * k"), ("abs(k), 2", "abs(k), 2.1")),
        before="functions { real skellam_lpmf(int k, real a, real b) { return -(a + b) + 0.5 * k * (log(a) - log(b)) "
        "+ log_modified_bessel_first_kind(abs(k), 2 * sqrt(a * b)); } }",
    ),
)  # fmt: skip


def end(idiom: Idiom, text: str) -> str:
    """Return what becomes of a program: "exact", or by what it is not accepted."""
    try:
        program = analyse(Source.from_text(text), observed=[idiom.observed], data=idiom.values, stanc=stanc)
    except BreadError:
        return "refused"
    if not program.is_automatic:
        return "refused"
    run, rng, draws = interpreter(program, idiom.values), default_rng(3), []
    for _ in range(2 * N_DRAWS):
        try:
            draws.append(drawn(program, run.simulate(rng)))
        except (RejectedError, ValueError, IndexError) as error:
            if "bread" in str(error):  # no draw is made again that bread's own code refuses
                return "no draw"
    if not draws:
        return "no draw"
    try:
        difference = [np.subtract(run.log_density(one.values), one.own) for one in draws[:N_DRAWS]]
    except (RejectedError, ValueError, IndexError):
        return "told"
    return "exact" if is_constant(np.array(difference), draws[:N_DRAWS]) else "told"


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda one: one.name)
def test_draws_have_the_density_of_the_program(idiom: Idiom) -> None:
    assert analyse_text(idiom.text).observed == (idiom.observed,)
    assert end(idiom, idiom.text) == "exact"


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda one: one.name)
def test_programs_with_a_mistake_have_no_simulator_of_another_law(idiom: Idiom) -> None:
    assert all(idiom.text.count(old) == 1 for old, _ in idiom.mutants)
    ends = {change: end(idiom, idiom.text.replace(*change)) for change in idiom.mutants}
    assert "exact" not in ends.values(), ends


@pytest.mark.parametrize("index", [[2, 3], [2, 2]])
def test_data_that_name_an_element_twice_are_refused(index: list[int]) -> None:
    idiom = next(one for one in IDIOMS if one.name == "lists of indices")
    run = interpreter(analyse_text(idiom.text), {**idiom.values, "ib": index})
    with pytest.raises(RejectedError, match=r"bread: the element y\["):
        run.simulate(default_rng(1))


def test_the_comparison_alone_tells_a_wrong_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_is_jacobian", lambda *arguments: True)
    idiom = next(one for one in IDIOMS if one.name == "log of a scale")
    assert end(idiom, idiom.text) == "exact"
    for term in ("2 * ls", "-ls", "square(ls)"):
        assert end(idiom, idiom.text.replace("+= ls", f"+= {term}")) == "told"


def test_tuples_of_functions_are_declared_and_computed_again() -> None:
    text = (
        "functions { tuple(vector, real) f(vector x, real a) { return (a * x, exp(a)); } }\n"
        "data { int N; vector[N] x; vector[N] y; } parameters { real a; }\n"
        "transformed parameters { tuple(vector[N], real<lower=0>) r = f(x, a); }\n"
        "model { tuple(vector[N], real) l = f(x, a); a ~ normal(0, 1); y ~ normal(r.1 + l.1, r.2); }"
    )
    program = analyse_text(text)
    assert program.is_automatic
    for code in ("tuple(vector[N], real) bread_now_r = f(x, bread_sim_a);", "tuple(vector[N], real) l = f("):
        assert code in program.tempered


@pytest.mark.parametrize("loop", ["", "for (k in 1:2) "])
def test_jacobian_statements_move_to_the_model(loop: str) -> None:
    text = (
        "data { int N; vector[N] y; } parameters { vector[2] ls; }\n"
        f"transformed parameters {{ vector[2] s = exp(ls); {loop}jacobian += {'ls[k]' if loop else 'sum(ls)'};\n }}\n"
        "model { s ~ gamma(2, 2); y ~ normal(0, s[1]); }"
    )
    source = Source.from_text(text)
    blocks = parse(source)
    moved = apply_edits(text, jacobian_edits(analyse_dataflow(blocks, resolve(blocks)), source, blocks))
    assert moved.count("\n") == text.count("\n") and "jacobian" not in moved
    assert analyse_text(moved).is_automatic
    assert not analyse_text(moved.replace("target +=", "target += 2 *")).is_automatic


def test_numbers_that_a_heavy_tail_makes_too_large_are_told_from_masses_that_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own, "_MOST", 200)
    monkeypatch.setattr(own, "_TAIL", "0.02")  # of 200 masses in place of a million
    text = (
        "functions { real yule_lpmf(int k, real r) { return log(r) + lbeta(k, r + 1) + log(1); } }\n"
        "data { int N; array[N] int<lower=1> y; } parameters { real<lower=0> r; }\n"
        "model { r ~ uniform(0.2, 0.3); for (n in 1:N) y[n] ~ yule(r); }"
    )
    values = {"N": 2, "y": [1, 3]}
    reasons = []
    for share in ("1", "0.97"):
        run = interpreter(analyse_text(text.replace("log(1)", f"log({share})")), values)
        found = []
        for seed in range(5):
            try:
                run.simulate(default_rng(seed))
            except RejectedError as error:
                found.append(str(error))
        reasons.append(found)
    assert reasons[0] and all("too large to draw" in one and "bread" not in one for one in reasons[0])
    assert reasons[1] and all("bread: yule_lpmf adds up to" in one for one in reasons[1])


SUM_TO_ZERO = (
    "data { int J; vector[J] y; } parameters { sum_to_zero_vector[J] a; }"
    " model { a ~ normal(0.5, 2); y ~ normal(a, 1); }"
)


def newer(text: str) -> Program:
    """Analyse a program of a newer Stan than the one that may be there."""
    return analyse(Source.from_text(text), observed=None, stanc=lambda *arguments: StancOutput(0, "{}", ""))


def test_vectors_that_sum_to_zero_are_normals_less_their_mean() -> None:
    program = newer(SUM_TO_ZERO)
    assert program.is_automatic, program.simulator_refusal
    run, rng = interpreter(program, {"J": 3, "y": [0.1, 1.0, -0.4]}), default_rng(5)
    made = [run.simulate(rng) for _ in range(1500)]
    draws = np.array([one["bread_sim_a"] for one in made])
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-12)
    own = np.array([one["bread_sim_log_prior"] for one in made])
    np.testing.assert_allclose(own, stats.norm(0.5, 2).logpdf(draws).sum(axis=1))
    # the integral over an orthonormal basis of the plane, by quadrature
    basis, grid = np.linalg.qr(np.array([[1.0, 0], [-1, 1], [0, -1]]))[0], np.linspace(-25, 25, 401)
    points = np.stack(np.meshgrid(grid, grid), axis=-1) @ basis.T
    integral = np.exp(stats.norm(0.5, 2).logpdf(points).sum(axis=-1)).sum() * (grid[1] - grid[0]) ** 2
    np.testing.assert_allclose([np.sum(one["bread_cut"]) for one in made], np.log(integral), rtol=1e-8)
    # each element has variance 4 (1 - 1/3): at level 1e-3, and the law without the sum as a negative control
    assert stats.kstest(draws[:, 0], stats.norm(0, 2 * np.sqrt(2 / 3)).cdf).pvalue > 1e-3
    assert stats.kstest(draws[:, 0], stats.norm(0, 2).cdf).pvalue < 1e-3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("normal(0.5, 2)", "cauchy(0, 2)"), ("normal(0.5, 2)", "normal(0, exp(a[1]))"), ("a ~ normal(0.5, 2);", ""),
        ("normal(0.5, 2)", "normal(0, [1, 2, 3]')"), ("a ~ normal(0.5, 2)", "a[1:2] ~ normal(0.5, 2)"),
        ("a ~ normal(0.5, 2)", "2 * a ~ normal(0.5, 2)"),
        ("sum_to_zero_vector[J] a", "array[2] sum_to_zero_vector[J] a"),
    ],
)  # fmt: skip
def test_other_laws_of_vectors_that_sum_to_zero_are_refused(old: str, new: str) -> None:
    assert not newer(SUM_TO_ZERO.replace(old, new)).is_automatic
