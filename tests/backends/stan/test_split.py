"""Prior and likelihood told apart: the corpus by its table, each rule on its own, and the rewritten text."""

import re
from collections import Counter

import pytest

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language.source import Source
from bread.errors import BreadError, InvalidArgumentError, UnsupportedModelError
from tests.support.marks import slow_but
from tests.support.stan_corpus_table import CORPUS, analyse_text, analysed, stanc

DATA = "data { int<lower=0> N; vector[N] y; vector[N] x; int<lower=0> k; }\n"
PARAMETERS = "parameters { real mu; real<lower=0> sigma; }\n"
REWRITTEN = [case for case in CORPUS if case.outcome != "observed refused"]
COMPILED = slow_but([case.name for case in REWRITTEN[::4]], REWRITTEN, key=lambda case: case.name)


def model(body, declarations=""):
    return f"{DATA}{declarations}{PARAMETERS}model {{\n{body}\n}}\n"


def parts(text, **arguments):
    program = analyse_text(text, **arguments)
    assert program.split_refusal is None, program.split_refusal
    return [c.part for c in program.contributions]


def test_corpus_shows_every_rule_twice():
    rows = Counter(row for case in CORPUS for row in case.rows)
    assert len(CORPUS) >= 60
    assert {row: n for row, n in rows.items() if n < 2} == {}


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_corpus_is_split_as_the_table_says(case):
    if case.outcome == "observed refused":
        with pytest.raises(UnsupportedModelError, match=re.escape(case.match)):
            analysed(case.name)
        return
    program = analysed(case.name)
    assert program.observed == case.observed
    assert program.observed_inferred == (case.observed_argument is None)
    if case.outcome == "split refused":
        assert program.split_refusal is not None
        assert case.match in str(program.split_refusal)
        assert program.split_refusal.line == case.refused_line
        assert "bread_temper(" not in program.tempered.replace("bread_temper(real x);", "")
        return
    assert program.split_refusal is None
    assert [c.line for c in program.contributions if c.part == "likelihood"] == case.likelihood_lines
    assert [c.line for c in program.contributions if c.part == "both"] == case.both_lines


@pytest.mark.parametrize("case", COMPILED, ids=lambda case: case.name)
def test_rewritten_program_keeps_its_lines_and_compiles(case):
    program = analysed(case.name)
    assert program.tempered.count("\n") == program.source.text.count("\n")
    output = stanc(program.tempered, "--O1", "--allow-undefined")
    assert output.returncode == 0, output.stderr
    tempered = {n for n, row in enumerate(program.tempered.split("\n"), 1) if re.search(r"bread_temper\((?!real)", row)}
    expected = set() if program.split_refusal else {*case.likelihood_lines, *case.both_lines}
    # a statement may go on for lines: its first line, or one of the next two for the terms of a sum
    assert len(tempered) == len(expected)
    assert all(any(first <= row <= first + 2 for row in tempered) for first in expected)


def test_stans_messages_name_the_users_line():
    text = model("mu ~ normal(0, 1);\nsigma ~ exponential(1);\ny ~ normal(mu,\n  sigma);\n")
    program = analyse_text(text)
    broken = program.tempered.replace("sigma ~ exponential", "sigma ~ exponentially")
    message = stanc(broken, "--allow-undefined").stderr
    wanted = text.split("\n").index("sigma ~ exponential(1);") + 1
    assert f"line {wanted}," in message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mu ~ normal(0, 1); y ~ normal(mu, 1);", ["prior", "likelihood"]),
        ("real m; m = mean(y); mu ~ normal(0, 1); sigma ~ normal(m, 1);", ["prior", "likelihood"]),
        ("{ real m = mean(y); y ~ normal(m, 1); } { real m = 0; mu ~ normal(m, 1); }", ["likelihood", "prior"]),
        ("vector[N] z = y; z[1] = 0; z ~ normal(mu, 1);", ["likelihood"]),
        ("for (n in 1 : N) if (y[n] > 0) target += normal_lccdf(0 | mu, 1);", ["likelihood"]),
        ("target += normal_lpdf(mu | 0, 1) + normal_lpdf(y | mu, 1);", ["both"]),
        ("target += normal_lpdf(y | mu, 1) - 0.5 * square(mu);", ["likelihood"]),
        (
            "target += normal_lpdf(sigma | 0, 1) - normal_lccdf(0 | 0, 1); y ~ normal(0, sigma);",
            ["prior", "likelihood"],
        ),
        ("target += log(2.0); y ~ normal(mu, 1);", ["prior", "likelihood"]),
        ('profile("lik") { y ~ normal(mu, 1); } mu ~ std_normal();', ["likelihood", "prior"]),
        ("real lp = 0; for (n in 1 : N) lp += normal_lpdf(y[n] | mu, 1); target += lp;", ["likelihood"]),
    ],
)
def test_rules(body, expected):
    assert parts(model(body), observed=["y"]) == expected


def test_sizes_do_not_make_a_prior_depend_on_data():
    text = (
        "data { int N; array[N] int y; } transformed data { int m = max(y); } parameters { vector[m] b; }"
        " model { b ~ normal(0, 1); y ~ categorical_logit(b); }"
    )
    assert parts(text) == ["prior", "likelihood"]


@pytest.mark.parametrize(
    "statement", ["mu ~ normal(m, 1);", "target += normal_lpdf(mu | m, 1);"], ids=["tilde", "target"]
)
def test_local_variable_used_for_two_things_is_in_doubt(statement):
    program = analyse_text(model(f"real m = 0; {statement} m = mean(y); y ~ normal(m + mu, 1);"))
    assert program.split_refusal is not None and "assigned several times" in str(program.split_refusal)
    assert parts(model(f"real m = 0; {statement} y ~ normal(m + mu, 1);")) == ["prior", "likelihood"]


def test_what_is_observed_decides():
    """Negative control: the same program with other outcomes is split otherwise."""
    text = model("mu ~ normal(0, 1); y ~ normal(mu * x, 1); x ~ normal(mu, 1);")
    assert parts(text) == ["prior", "likelihood", "likelihood"]
    program = analyse_text(text, observed=["y"])
    assert program.split_refusal is not None and "not observed" in str(program.split_refusal)


def test_unnormalised_densities_are_normalised_inside_the_tempered_term():
    program = analyse_text(model("target += normal_lupdf(y | mu, 1); target += normal_lupdf(mu | 0, 1);"))
    assert "bread_temper(normal_lpdf(y | mu, 1))" in program.tempered
    assert "target += normal_lupdf(mu | 0, 1);" in program.tempered


def test_censoring_is_no_normalising_constant_of_a_prior():
    """The same term belongs to the prior only beside the density that it normalises."""
    alone = analyse_text(model("mu ~ std_normal(); y ~ normal(mu, sigma); target += -normal_lccdf(3 | mu, sigma);"))
    assert alone.split_refusal is not None
    body = "mu ~ std_normal(); target += normal_lpdf(sigma | mu, 1) - normal_lccdf(0 | mu, 1); y ~ normal(mu, sigma);"
    assert parts(model(body)) == ["prior", "prior", "likelihood"]


def test_truncation_is_written_out():
    program = analyse_text(
        model("mu ~ normal(0, 1); for (n in 1 : N) y[n] ~ normal(mu, sigma) T[ , 3]; sigma ~ gamma(2, 2);")
    )
    assert (
        "(y[n] > 3) ? negative_infinity() : normal_lpdf(y[n] | mu, sigma)  - normal_lcdf(3 | mu, sigma)"
        in program.tempered
    )


def test_containers_are_summed():
    program = analyse_text(
        model("vector[N] ll; for (n in 1 : N) ll[n] = normal_lpdf(y[n] | mu, 1); mu ~ normal(0, 1); target += ll;")
    )
    assert program.split_refusal is None
    assert "bread_temper(sum(ll))" in program.tempered


def test_lines_named_by_the_user_are_the_likelihood():
    text = model("mu ~ normal(0, 1);\ntarget += -N * log(sigma);\ntarget += -0.5 * dot_self((y - mu) / sigma);")
    refused = analyse_text(text, observed=["y"])
    assert refused.split_refusal is not None and "likelihood=[...]" in str(refused.split_refusal)
    first = text.split("\n").index("mu ~ normal(0, 1);") + 1
    program = analyse_text(text, observed=["y"], likelihood=[first + 1, first + 2])
    assert [c.part for c in program.contributions] == ["prior", "likelihood", "likelihood"]
    with pytest.raises(
        InvalidArgumentError, match=rf"likelihood=1: .* Lines that do: {first}, {first + 1}, {first + 2}"
    ):
        analyse_text(text, observed=["y"], likelihood=[1])


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (["mu"], r"observed='mu' is a parameter \('program.stan', line 2\)"),
        (["z"], r"observed='z' is not declared .* Choose among: 'N', 'y', 'x', 'k'"),
        ([], "observed= is empty"),
    ],
)
def test_observed_must_be_data(observed, message):
    with pytest.raises(InvalidArgumentError, match=message):
        analyse_text(model("mu ~ normal(0, 1); y ~ normal(mu, 1);"), observed=observed)


def test_outcome_is_inferred_from_the_error_that_has_the_density():
    body = (
        "vector[N] err; for (n in 1 : N) err[n] = {}; mu ~ normal(0, 1); sigma ~ gamma(2, 2); err ~ normal(0, sigma);"
    )
    assert analyse_text(model(body.format("y[n] - mu * x[n]"))).observed == ("y",)
    with pytest.raises(UnsupportedModelError, match="'y', 'x'; which of them is the outcome is in doubt"):
        analyse_text(model(body.format("y[n] - x[n] - mu")))
    with pytest.raises(UnsupportedModelError, match="cannot tell which data are outcomes"):
        analyse_text(model(body.format("mu * x[n]")))
    beside = model(body.format("x[n] - mu").replace("err ~ normal", "err ~ normal(0, 1); y ~ normal"))
    assert analyse_text(beside).observed == ("y",)


def test_outcome_is_inferred_through_a_function_of_the_users():
    function = "functions { real grade(int n, real p) { return bernoulli_lpmf(n - 1 | p); } }\n"
    text = (
        "data { int N; array[N] int<lower=1, upper=2> y; array[N] int x; } parameters { real<lower=0, upper=1> p; }"
        " model { for (n in 1 : N) target += grade(y[n], p); }"
    )
    assert analyse_text(function + text).observed == ("y",)
    for other in ("return log(p) * n;", "return bernoulli_lpmf(1 | p^n);"):
        with pytest.raises(UnsupportedModelError, match="cannot tell which data are outcomes"):
            analyse_text("functions { real grade(int n, real p) { OTHER } }\n".replace("OTHER", other) + text)
    with pytest.raises(UnsupportedModelError, match="in doubt"):
        analyse_text(function + text.replace("y[n], p", "y[n] + x[n], p"))


def test_one_name_may_be_given_as_a_string():
    source = Source.from_text(model("mu ~ normal(0, 1); y ~ normal(mu, 1); sigma ~ exponential(1);"))
    assert analyse(source, observed="y", stanc=stanc).observed == ("y",)


def test_missing_data_are_named():
    source = Source.from_text(model("mu ~ normal(0, 1); y ~ normal(mu, 1);"))
    with pytest.raises(InvalidArgumentError, match=r"The data lack 'x', which 'program.stan', line 1 declares"):
        analyse(source, observed=None, data_names=["N", "y", "k"], stanc=stanc)


@pytest.mark.parametrize(
    ("statement", "observed"),
    [
        ("target += log(p[k[n]]);", ("k",)),
        ("array[2] real d; for (j in 1 : 2) d[j] = log(q[j]) + log(p[k[n]]); target += log_sum_exp(d);", ("k",)),
        ("target += log_mix(q[1], log(p[k[n]]), log(p[k[n]]));", ("k",)),
        ("real mu = log(p[k[n]]); y[n] ~ normal(mu, 1);", ("y",)),
        ("target += normal_lpdf(y[n] | log(p[k[n]]), 1);", ("y",)),
        ("target += normal_lpdf(y[n] | 0, 1) - log(p[k[n]]);", ("y",)),
        ("target += normal_lpdf(y[n] | 0, 1) + log(exp(p)[k[n]]);", ("y",)),
    ],
)
def test_category_looked_up_in_a_simplex_is_inferred_as_a_term_alone(statement, observed):
    text = f"""data {{ int N; vector[N] y; array[N] int k; }} parameters {{ simplex[3] p; simplex[2] q; }}
    model {{ for (n in 1 : N) {{ {statement} }} }}"""
    assert analyse_text(text).observed == observed


def test_nothing_observed_in_the_density():
    program = analyse_text(model("mu ~ normal(0, 1); y ~ normal(mu, 1);"), observed=["x"])
    assert program.split_refusal is not None


@pytest.mark.parametrize("text", ["model { target += 1; }", model("real bread_x = 1; y ~ normal(mu, bread_x);")])
def test_programs_without_parameters_or_with_reserved_names_are_refused(text):
    with pytest.raises(BreadError):
        analyse_text(text, observed=["y"])


def test_prior_only_flag_is_fixed_to_zero():
    program = analysed("brms_lprior")
    assert program.fixed_data == {"prior_only": 0}
    assert analysed("blr").fixed_data == {}
    assert not any("held at their observed values" in note for note in program.notes)
