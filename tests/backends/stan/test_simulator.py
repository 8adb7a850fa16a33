"""Simulators derived from programs: the corpus by its table, the way out of refusals, and the code itself."""

import re
from importlib.resources import files

import numpy as np
import pytest

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language.distributions import DISTRIBUTIONS, GENERALISED_LINEAR, is_discrete
from bread.backends.stan.language.source import Source
from bread.backends.stan.simulator.helpers import functions_for, helpers
from tests.support.stan_corpus_table import CORPUS, SUPPORTED, analyse_text, analysed, stanc

ANALYSED = [case for case in CORPUS if case.outcome in ("supported", "simulator refused")]


def simulator_of(program):
    """Return the generated quantities of a program."""
    return program.tempered[program.tempered.index("generated quantities {") :]


def program_of(parameters, statements, data="vector[N] y;"):
    text = f"data {{ int<lower=0> N; {data} }}\nparameters {{\n{parameters}\n}}\nmodel {{\n{statements}\n}}\n"
    return analyse_text(text, observed=["y"])


def supported(*arguments, **keywords):
    program = program_of(*arguments, **keywords)
    assert program.is_automatic, (program.split_refusal, program.simulator_refusal)
    return simulator_of(program)


def refused(*arguments, **keywords):
    program = program_of(*arguments, **keywords)
    assert program.simulator_refusal is not None
    return str(program.simulator_refusal)


@pytest.mark.parametrize("case", ANALYSED, ids=lambda case: case.name)
def test_corpus_is_simulated_as_the_table_says(case):
    program = analysed(case.name)
    if case.outcome == "simulator refused":
        assert program.simulator_refusal is not None
        assert case.match in str(program.simulator_refusal)
        assert program.simulator_refusal.line == case.refused_line
        assert f"'{case.name}.stan', line {case.refused_line}" in str(program.simulator_refusal)
        assert "bread_sim_" not in program.tempered and program.fixable == ()
        return
    assert program.simulator_refusal is None, program.simulator_refusal
    code = simulator_of(program)
    for name in (*(p.name for p in program.parameters), *program.observed):
        assert re.search(rf"\bbread_sim_{name}\b", code)
    assert program.fixable == tuple(p.name for p in program.parameters if p.name not in case.drawn_together)
    for name in program.fixable:
        assert f"bread_use_fixed_{name};" in program.tempered and f" bread_fixed_{name};" in program.tempered
    if case.hyperparameters is not None:
        assert set(program.hyperparameters) == case.hyperparameters


def test_most_of_the_corpus_is_supported():
    assert len(SUPPORTED) >= 60


@pytest.mark.parametrize("case", [c for c in CORPUS if "4.improper" in c.rows], ids=lambda case: case.name)
def test_line_that_mends_a_flat_prior_mends_it(case):
    program = analysed(case.name)
    assert program.simulator_refusal is not None
    remedy = re.search(r"`([^`]+;)`", program.simulator_refusal.remedy)
    assert remedy is not None
    mended = case.source.text.replace("model {", "model { " + remedy.group(1))
    assert analyse_text(mended).is_automatic


@pytest.mark.parametrize(
    ("declaration", "data"),
    [
        ("matrix[2, 3] p;", "vector[N] y;"),
        ("array[4] vector[2] p;", "vector[N] y;"),
        ("cov_matrix[2] p;", "vector[N] y;"),
        ("cholesky_factor_corr[3] p;", "vector[N] y;"),
        ("cholesky_factor_cov[2] p;", "vector[N] y;"),
        ("positive_ordered[3] p;", "vector[N] y;"),
        ("array[3] real<lower=1> p;", "vector[N] y;"),
        ("row_vector<upper=0>[3] p;", "vector[N] y;"),
    ],
)
def test_lines_that_mend_every_type(declaration, data):
    message = refused(declaration, "y ~ normal(sum(to_vector([1, 2])), 1);", data)
    assert "'p' has no prior" in message
    line = re.search(r"`([^`]*~[^`]*;)`", message)
    assert line is not None
    supported(declaration, f"y ~ normal(1, 1); {line.group(1)}", data)


def test_draws_follow_dependence_not_the_text():
    code = supported(
        "real mu; real<lower=0> tau; vector[N] theta;",
        "y ~ normal(theta, 1); theta ~ normal(mu, tau); tau ~ exponential(1); mu ~ normal(0, 1);",
    )
    places = [code.index(f"bread_sim_{name}{rest}") for name, rest in (("mu", " ="), ("theta", "["), ("y", "["))]
    assert places == sorted(places)
    assert code.index("bread_sim_tau =") < places[1]


def test_joint_rejection_only_where_the_constant_depends_on_parameters():
    """A bound that cuts off a varying probability rejects whole draws; a constant one, only the element."""
    constant = supported("vector<lower=0>[N] a;", "a ~ normal(1, 2); y ~ normal(a, 1);")
    half = supported("real<lower=0> s; vector<lower=0>[N] a;", "s ~ gamma(2, 2); a ~ normal(0, s); y ~ normal(a, 1);")
    shifted = supported(
        "real<lower=0> s; vector<lower=0>[N] a;", "s ~ gamma(2, 2); a ~ normal(1, s); y ~ normal(a, 1);"
    )
    inside = supported("real<lower=0> s; vector<lower=0>[N] a;", "s ~ gamma(2, 2); a ~ gamma(s, 1); y ~ normal(a, 1);")
    assert [") bread_accept = 0;" in code for code in (constant, half, shifted, inside)] == [False, False, True, False]
    assert ["bread_tries" in code for code in (constant, half, shifted, inside)] == [True, True, False, False]


def test_integers_of_the_data_count_with_their_values():
    case = next(case for case in CORPUS if case.name == "sizes_of_one")
    changes = [{}, {"K": 2}, {"J": 4}, {"K": np.array(1)}]
    programs = [analyse(case.source, observed=None, data={**case.data, **change}, stanc=stanc) for change in changes]
    assert [program.is_automatic for program in programs] == [True, False, False, True]
    refusals = [str(program.simulator_refusal) for program in programs[1:3]]
    assert "not every element of 'tau'" in refusals[0] and "not every element of 'shift'" in refusals[1]
    unknown = analyse(case.source, observed=None, stanc=stanc)
    assert unknown.simulator_refusal is not None


def test_an_integer_that_is_simulated_has_no_value():
    text = (
        "data {{ int K; {} }} parameters {{ vector[2] b; real<lower=0> r; }}"
        " model {{ b[1] ~ normal(0, 1); for (k in 2 : {}) b[k] ~ normal(0, 2); r ~ gamma(2, 2); K ~ poisson(r); }}"
    )
    held = analyse(Source.from_text(text.format("int L;", "L")), observed="K", data={"K": 2, "L": 2}, stanc=stanc)
    assert held.is_automatic
    own = analyse(Source.from_text(text.format("", "K")), observed="K", data={"K": 2}, stanc=stanc)
    assert not own.is_automatic


def test_loop_that_ends_before_it_begins_takes_no_element_back():
    statements = "for (k in 1 : 2) b[k] ~ normal(0, 1); for (k in 3 : 1) b[k] ~ normal(0, 1); b[2 : 5] ~ normal(0, 2);"
    assert "several priors" in refused("vector[5] b;", statements + " y ~ normal(b[1], 1);")


def test_ordered_is_sorted_only_where_the_elements_are_alike():
    alike = supported("ordered[3] c; real<lower=0> s;", "s ~ gamma(2, 2); c ~ normal(0, s); y ~ normal(c[1], 1);")
    by_loop = supported("ordered[3] c;", "for (k in 1 : 3) c[k] ~ normal(0, 2); y ~ normal(c[1], 1);")
    different = supported("ordered[3] c;", "for (k in 1 : 3) c[k] ~ normal(k, 2); y ~ normal(c[1], 1);")
    assert ["sort_asc" in code for code in (alike, by_loop, different)] == [True, True, False]
    assert ") bread_accept = 0;" in different


@pytest.mark.parametrize(
    ("parameters", "statements", "reason"),
    [
        ("real mu;", "y ~ normal(mu, 1);", "no prior"),
        (
            "real a; real b; real<lower=0> c;",
            "b ~ std_normal(); y ~ normal(a, c);",
            "the parameters 'a', 'c' have no prior",
        ),
        ("vector[3] mu;", "for (k in 2 : 3) mu[k] ~ normal(0, 1); y ~ normal(mu[1], 1);", "not every element"),
        ("vector[3] mu;", "mu ~ normal(0, 1); mu ~ normal(1, 1); y ~ normal(mu[1], 1);", "several priors"),
        ("vector[3] mu;", "for (k in 1 : 3) mu ~ normal(k, 1); y ~ normal(mu[1], 1);", "drawn once"),
        ("real<lower=0> s;", "exp(s) ~ gamma(1, 1); y ~ normal(0, s);", "left side"),
        ("real<lower=0> s;", "log(s) ~ normal(0, 1); y ~ normal(0, s);", "left side"),
        ("real mu;", "mu ~ normal(0, 1); y - mean(y) ~ normal(mu, 1);", "left side"),
        (
            "real a; real<lower=0> s;",
            "s ~ gamma(1, 1); a / s ~ normal(0, 1); y ~ normal(a, s);",
            "scaled by a parameter",
        ),
        ("simplex[3] p;", "p ~ normal(0, 1); y ~ normal(p[1], 1);", "no simulator"),
        ("vector[3] p;", "p ~ dirichlet(rep_vector(1, 3)); y ~ normal(p[1], 1);", "parameter of its own type"),
        ("matrix[2, 2] S;", "S ~ wishart(3, identity_matrix(2)); y ~ normal(S[1, 1], 1);", "parameter of its own type"),
        ("real<lower=0> a; real<upper=a> b;", "a ~ gamma(1, 1); y ~ normal(b, 1);", "no prior"),
        ("real mu;", "mu ~ normal(0, 1); while (mu < -100) { print(mu); break; } y ~ normal(mu, 1);", "jumps out"),
        ("real mu;", "mu ~ normal(0, 1); for (n in 1 : N) y ~ normal(mu, 1);", "several densities"),
        ("real mu;", "mu ~ normal(0, 1); y ~ normal(mu, 1); y ~ normal(2 * mu, 1);", "two densities"),
        (
            "real mu;",
            "mu ~ normal(0, 1); if (mu > 0) y ~ normal(mu, 1); else y ~ normal(0, 1);",
            "depends on parameters",
        ),
    ],
)
def test_refusals(parameters, statements, reason):
    assert reason in refused(parameters, statements)


def test_sizes_of_outcomes_are_no_outcomes():
    code = supported(
        "vector[num_elements(y)] p;", "for (i in 1 : size(y)) p[i] ~ normal(0, rows(y)); y ~ normal(p, 1);"
    )
    assert "normal_rng(0, rows(y))" in code


def test_outcome_beyond_its_declared_bounds_loses_them():
    """The density of a normal outcome is positive below a declared 0: the bound must not refuse simulated data."""
    data = "vector<lower=0>[N] y;"
    normal = program_of("real mu;", "mu ~ normal(0, 1); y ~ normal(mu, 1);", data)
    assert data not in normal.tempered and "vector[N] y;" in normal.tempered
    assert any("are not enforced" in note for note in normal.notes)
    gamma = program_of("real<lower=0> a;", "a ~ gamma(1, 1); y ~ gamma(a, 1);", data)
    assert "vector<lower=0>[N] y;" in gamma.tempered and not gamma.notes


def test_two_outcomes_of_one_declaration_lose_their_bounds_once():
    text = (
        "data { int<lower=0> N; vector<lower=0>[N] y, z; } parameters { real mu; }"
        " model { mu ~ normal(0, 1); y ~ normal(mu, 1); z ~ normal(mu, 2); }"
    )
    assert analyse_text(text).is_automatic


def test_parameter_whose_size_is_computed_in_a_loop_cannot_be_fixed():
    text = (
        "data { int<lower=0> N; vector[N] y; } transformed data { int K = 0; for (n in 1 : N) K += n; }"
        " parameters { vector[K] b; real mu; }"
        " model { b ~ normal(0, 1); mu ~ normal(0, 1); y ~ normal(mu + sum(b), 1); }"
    )
    program = analyse_text(text)
    assert program.is_automatic and program.fixable == ("mu",)
    assert program.hyperparameters == ("mu",)  # what simulate_from="fitted" can hold
    assert "bread_use_fixed_b" not in program.tempered
    assert any("'b'" in note for note in program.notes)


@pytest.mark.parametrize(
    ("copied", "reason"),
    [
        ("for (n in 1 : N) z[n] = log10(y[n]);", None),
        ("for (n in 1 : N) z[n] = 2 * y[n] - 1;", None),
        ("for (n in 2 : N) z[n] = y[n]; z[1] = 0;", "computed from"),
        ("for (n in 1 : N) z[n] = y[N - n + 1];", "computed from"),
        ("for (n in 1 : N) z[n] = y[n] - n;", "computed from"),
        ("for (n in 1 : N) z[n] = y[1];", "computed from"),
        ("for (n in 1 : N) z[n] += y[n];", "computed from"),
        ("for (n in 1 : N) z[n] = square(y[n]);", "computed from"),
    ],
)
def test_outcome_copied_in_a_loop(copied, reason):
    text = f"""data {{ int N; vector[N] y; }} transformed data {{ vector[N] z; {copied} }} parameters {{ real mu; }}
    model {{ mu ~ normal(0, 1); z ~ normal(mu, 1); }}"""
    program = analyse_text(text)
    assert program.observed == ("y",)
    assert program.is_automatic if reason is None else reason in str(program.simulator_refusal)


@pytest.mark.parametrize(
    ("density", "automatic"),
    [
        ("binomial_lpmf(s[i] | T, p)", True),
        ("binomial_lpmf(s[i] | 3, p)", False),  # not as many trials as elements
        ("binomial_lpmf(s[i] | T, [p, p]')", False),
        ("binomial_lpmf(s[i] | T, p / (1 + y[i, 1]))", False),
        ("beta_binomial_lpmf(s[i] | T, p, 2)", False),  # the trials of a row are not independent
        ("poisson_lpmf(s[i] | p)", False),
    ],
)
def test_row_of_trials_under_the_density_of_its_total(density, automatic):
    text = f"""data {{ int M; int T; array[M, T] int y; }}
    transformed data {{ array[M] int s; for (i in 1 : M) s[i] = sum(y[i]); }}
    parameters {{ real<lower=0, upper=1> p; }}
    model {{ for (i in 1 : M) {{
      if (s[i] > 0) target += log(p) + {density};
      else target += log_sum_exp(log(p) + {density.replace("s[i]", "0")}, log1m(p));
    }} }}"""
    assert analyse_text(text).is_automatic == automatic


def test_what_cannot_be_drawn_is_named_by_its_outcome():
    text = """data { int M; int T; array[M, T] int y; }
    transformed data { array[M] int s; for (i in 1 : M) s[i] = sum(y[i]); }
    parameters { real<lower=0, upper=1> p; }
    model { for (i in 1 : M) target += bernoulli_lpmf(1 | p) + binomial_lpmf(s[i] | T, p); }"""
    assert "computed from 'y'" in str(analyse_text(text).simulator_refusal)


def test_outcomes_without_a_density_are_held_and_noted():
    program = analysed("ar_k")
    assert "Elements of 'y' that have no density are held at their observed values." in program.notes
    assert "array[T] real bread_sim_y = y;" in simulator_of(program)


def test_outcome_that_enters_its_own_law_is_checked_after_the_draw():
    for name, stepwise in (("ar_k", False), ("dogs", True), ("garch11", True), ("ar1_vectorised", False)):
        code = simulator_of(analysed(name))
        assert "or later elements of it" in code
        assert ("bread_step" in code) == stepwise
    assert "bread_again" not in simulator_of(analysed("blr"))


def test_generated_quantities_of_the_user_are_left_out():
    program = analysed("eight_schools_noncentered")
    assert "y_rep" not in program.tempered
    assert "The program's generated quantities are not computed." in program.notes


def test_every_generator_exists_in_stan():
    """Each distribution that bread draws from has its density and its generator in the stanc at hand."""
    signatures = stanc("model {}", "--dump-stan-math-signatures").stdout
    known = set(re.findall(r"^(\w+)\(", signatures, re.MULTILINE))
    newer = {"beta_neg_binomial", "yule_simon"}  # since 2.37
    for name, distribution in DISTRIBUTIONS.items():
        if name in newer and f"{name}_lpmf" not in known:
            continue
        assert f"{name}_{'lpmf' if distribution.discrete else 'lpdf'}" in known
        assert set(re.findall(r"\w+_rng", distribution.generator)) <= known | set(helpers())
    for name in GENERALISED_LINEAR:
        assert f"{name}_{'lpmf' if is_discrete(name) else 'lpdf'}" in known
    for name in re.findall(r"^(\w+)_lpmf\(", signatures, re.MULTILINE):
        assert is_discrete(name), name


def test_what_stanc_does_not_accept_is_told_in_its_words():
    program = analyse_text(
        "functions { vector twice(vector s) { return 2 * s; } }\n"
        "data { vector[2] s; vector[3] y; }\nparameters { real mu; }\n"
        "model { mu ~ normal(0, twice(s)); y ~ normal(mu, 1); }\n"
    )
    assert program.simulator_refusal is not None
    # Stan 2.35 and 2.39 word it differently; both end with the type that was found.
    assert "array[] real. Pass" in str(program.simulator_refusal)


@pytest.mark.parametrize("spread", ["[5, 5]'", "s", "{5.0, 5.0}", "rep_vector(5, 2)", "2 * s", "-(s')'"])
def test_a_single_value_with_several_densities_is_refused_by_name(spread):
    data = "vector[N] y; vector[2] s;"
    message = refused("real mu;", f"mu ~ normal(0, {spread}); y ~ normal(mu, 1);", data)
    assert "`mu ~ normal(0," in message and "single value" in message and f"({spread})" in message
    outcome = refused("real mu;", f"mu ~ normal(0, 1); for (n in 1:N) y[n] ~ normal(mu, {spread});", data)
    assert "`y[n] ~ normal(mu," in outcome and "single value" in outcome
    supported("vector[2] mu;", f"mu ~ normal(0, {spread}); y ~ normal(mu[1], 1);", data)


def test_the_functions_of_derived_simulators_are_a_stan_program() -> None:
    """stanc accepts the file by itself; each name has its own overloads, and no other's."""
    text = (files("bread.backends.stan.simulator") / "helpers.stan").read_text(encoding="utf-8")
    assert stanc(text).returncode == 0
    found = helpers()
    assert set(found) == {
        "bread_at", "bread_vector_at", "bread_reals", "bread_integers", "bread_limit", "bread_probabilities",
        "bread_recorded", "bread_cutpoints_rng", "bread_cutpoints_lpdf", "bread_hypergeometric_rng",
    }  # fmt: skip
    for name, functions in found.items():
        assert "\n" not in functions
        assert set(re.findall(r"\b(bread_\w+)\(", functions)) == {name}
    assert functions_for("x = bread_at(y, 1);") == found["bread_at"]
    assert functions_for("x = y;") == ""
