"""Terms without a draw: a constant is left out of a simulator only where every draw has it alike."""

import pytest

from tests.support.stan_corpus_table import analyse_text

PARAMETERS = "real mu; real<lower=0> tau;"
PRIORS = "mu ~ normal(0, 5); tau ~ exponential(1);"
OUTCOMES = "y ~ normal(mu, tau);"


def program_of(statements):
    text = f"data {{ int<lower=0> N; vector[N] y; }}\nparameters {{ {PARAMETERS} }}\nmodel {{\n{statements}\n}}\n"
    return analyse_text(text, observed=["y"])


HOLES = {
    "constant in a branch": f"{PRIORS} {OUTCOMES}\nif (mu < 0) target += -2;",
    "constant in the other branch": f"{PRIORS} {OUTCOMES}\nif (mu < 0) {{ }} else target += 1.5;",
    "density of zero": f"{PRIORS} {OUTCOMES}\nif (mu < 0) target += negative_infinity();",
    "constant beside a density": (
        f"tau ~ exponential(1); {OUTCOMES} if (tau < 1) mu ~ normal(0, 1);\nelse target += normal_lpdf(mu | 0, 5) - 3;"
    ),
    "constant normaliser": (
        f"tau ~ exponential(1); {OUTCOMES} if (tau < 1) mu ~ normal(0, 1);\n"
        "else target += normal_lpdf(mu | 0, 5) - normal_lccdf(0 | 0, 5);"
    ),
    "density of a number": f"{PRIORS} {OUTCOMES}\nif (mu < 0) target += normal_lpdf(1.0 | 0, 1);",
    "statement on a number": f"{PRIORS} {OUTCOMES}\nif (mu < 0) 1.0 ~ normal(0, 1);",
    "loop by a parameter": f"{PRIORS} {OUTCOMES} int k = 0; if (mu > 0) k = 3;\nfor (i in 1 : k) target += -1;",
    "while by a parameter": f"{PRIORS} {OUTCOMES} real x = 0;\nwhile (x < mu) {{ target += -1; x += 1; }}",
    "accumulator": (
        f"tau ~ exponential(1); {OUTCOMES} real lp = 0; lp += normal_lpdf(mu | 0, 5);\n"
        "if (mu < 0) lp += -2;\ntarget += lp;"
    ),
    "by a local of the outcomes": f"{PRIORS} {OUTCOMES} real s = sum(y);\nif (s > 0) target += -2;",
    "by an outcome": f"{PRIORS} {OUTCOMES}\nfor (n in 1 : N) if (y[n] > 0) target += -2;",
    "data in a branch": f"{PRIORS} {OUTCOMES}\nif (mu < 0) target += -N;",
    "nested under data": f"{PRIORS} {OUTCOMES}\nif (N > 2) {{ if (tau > 1) target += 0.5; }}",
}


@pytest.mark.parametrize("name", sorted(HOLES))
def test_a_constant_that_not_every_draw_has_is_refused(name):
    refusal = program_of(HOLES[name]).simulator_refusal
    assert refusal is not None
    assert "is added" in str(refusal) and "depends on" in str(refusal)
    assert refusal.line in (4, 5)


@pytest.mark.parametrize(
    "statements",
    [
        f"{PRIORS} {OUTCOMES} target += -2;",
        f"{PRIORS} {OUTCOMES} if (N > 2) target += -2;",
        f"{PRIORS} {OUTCOMES} for (i in 1 : N) target += 0.1 * i;",
        f"tau ~ exponential(1); {OUTCOMES} target += normal_lpdf(mu | 0, 5) - normal_lccdf(0 | 0, 5);",
        f"tau ~ exponential(1); {OUTCOMES} if (tau < 1) mu ~ normal(0, 1); else target += normal_lpdf(mu | 0, 5);",
    ],
)
def test_a_constant_of_every_draw_is_no_part_of_the_law(statements):
    """Negative control of the refusal: data alone decide, or a branch has nothing but a normalised density."""
    assert program_of(statements).is_automatic


def test_branches_that_bounds_cut_are_drawn_as_a_whole():
    """The probability within the bounds is another one in each branch: it is a part of the law."""
    text = """data { int N; vector[N] y; }
parameters { real mu; real<lower=0> tau; }
model {
  mu ~ normal(0, 1);
  if (mu < 0) tau ~ normal(0, 1);
  else tau ~ normal(1, 5);
  y ~ normal(mu, tau);
}
"""
    code = analyse_text(text, observed=["y"]).tempered
    assert code.count("bread_accept = 0;") == 3  # its start, and one for each branch
    assert "bread_tries" not in code
