"""What refused programs are told: priors that fit type and bounds, the right part of the model, the Stan at hand."""

import re

import pytest

from bread.backends.stan.language.messages import StanProgramError
from tests.support.stan_corpus_table import analyse_text, stanc

DATA = "data { int<lower=0> N; vector[N] y; array[N] int<lower=0, upper=1> cens; array[N] int<lower=0> k; real U; }\n"
PARAMETERS = "real mu; real<lower=0> sigma;"
PRIORS = "mu ~ normal(0, 1); sigma ~ exponential(1);"
OUTCOMES = "y ~ normal(mu, sigma);"
BRMS = "// generated with brms 2.22.0\n"


def program(declaration="", statements=OUTCOMES, observed=("y",), before="", priors=PRIORS):
    text = f"{before}{DATA}parameters {{ {PARAMETERS} {declaration} }}\nmodel {{ {priors}\n{statements} }}\n"
    return analyse_text(text, observed=list(observed))


# ---- priors --------------------------------------------------------------------------------------------------

# Parameters without a prior, and the line that mends each.
WITHOUT = [
    ("real a;", "a ~ normal(0, 2.5);"),
    ("real<lower=0> b;", "b ~ exponential(1);"),
    ("real<lower=1.5> c;", "c ~ normal(1.5, 2.5);"),
    ("real<lower=mu> d;", "d ~ normal(mu, 2.5);"),
    ("real<upper=3> e;", "e ~ normal(3, 2.5);"),
    ("real<offset=mu, multiplier=sigma> f;", "f ~ normal(mu, sigma);"),
    ("vector<lower=0>[N] g;", "g ~ exponential(1);"),
    ("matrix[N, 2] h;", "to_vector(h) ~ normal(0, 2.5);"),
    ("array[N] real o;", "o ~ normal(0, 2.5);"),
    ("array[N, 3] real<lower=0> p;", "for (i in 1:N) p[i] ~ exponential(1);"),
    ("array[N, 2] vector[3] q;", "for (i in 1:N) for (j in 1:2) q[i, j] ~ normal(0, 2.5);"),
    ("array[2] matrix[2, 2] r;", "for (i in 1:2) to_vector(r[i]) ~ normal(0, 2.5);"),
    ("ordered[N + 1] s;", "s ~ student_t(3, 0, 2.5);"),
    ("positive_ordered[4] t;", "t ~ exponential(1);"),
    ("cholesky_factor_corr[3] u;", "u ~ lkj_corr_cholesky(2);"),
    ("array[N] cholesky_factor_corr[3] v;", "for (i in 1:N) v[i] ~ lkj_corr_cholesky(2);"),
    ("cov_matrix[3] w;", "w ~ inv_wishart(3 + 2, identity_matrix(3));"),
    ("cholesky_factor_cov[3] z;", "z ~ wishart_cholesky(3 + 2, identity_matrix(3));"),
]
# Parameters whose elements have a prior in part.
IN_PART = [
    ("array[2] simplex[N] x;", "x[1] ~ dirichlet(rep_vector(2, N));",
     "for (i in 1:2) x[i] ~ dirichlet(rep_vector(1, N));"),
    ("array[2] simplex[N + 1] x;", "x[1] ~ dirichlet(rep_vector(2, N + 1));",
     "for (i in 1:2) x[i] ~ dirichlet(rep_vector(1, (N + 1)));"),
    ("array[2] corr_matrix[3] x;", "x[1] ~ lkj_corr(3);", "for (i in 1:2) x[i] ~ lkj_corr(2);"),
    ("vector<lower=0, upper=1>[N] x;", "x[1] ~ beta(2, 2);", "x ~ uniform(0, 1);"),
]  # fmt: skip


def test_a_suggested_prior_fits_type_and_bounds_and_mends():
    declared = " ".join(declaration for declaration, _ in WITHOUT)
    refusal = program(declared).simulator_refusal
    assert refusal is not None
    (found,) = re.findall(r"`([^`]+;)`", refusal.remedy)
    for _, line in WITHOUT:
        assert line in found
    assert found == " ".join(line for _, line in WITHOUT)
    assert "scales are yours to choose" in refusal.remedy and "brms" not in refusal.remedy
    mended = program(declared, f"{found} {OUTCOMES}")
    assert mended.is_automatic, (mended.split_refusal, mended.simulator_refusal)
    lacking = program(declared, f"{found.replace(WITHOUT[-1][1], '')} {OUTCOMES}").simulator_refusal
    assert lacking is not None and f"`{WITHOUT[-1][1]}`; the scale is yours" in lacking.remedy


@pytest.mark.parametrize(("declaration", "given", "line"), IN_PART)
def test_a_prior_for_every_element_fits_the_type(declaration, given, line):
    refusal = program(declaration, f"{given} {OUTCOMES}").simulator_refusal
    assert refusal is not None and f"`{line}`; the scale is yours" in refusal.remedy and "normal" not in refusal.remedy
    assert program(declaration, f"{line} {OUTCOMES}").is_automatic


def test_a_counter_of_a_suggested_loop_is_no_name_of_the_program():
    refusal = program("array[N] vector[2] i;").simulator_refusal
    assert refusal is not None and "for (j in 1:N) i[j] ~ normal(0, 2.5);" in refusal.remedy


BRMS_PRIORS = {
    "vector[N] b;": "prior(normal(0, 2.5), class = b)",
    "vector[N] b_sigma;": "prior(normal(0, 2.5), class = b, dpar = sigma)",
    "vector[N] b_asym;": "prior(normal(0, 2.5), class = b, nlpar = asym)",
    "vector[N] b_weight;": "prior(normal(0, 2.5), class = b, resp = weight)",
    "vector[N] b_sigma_weight;": "prior(normal(0, 2.5), class = b, dpar = sigma, resp = weight)",
    "vector[N] b_weight_asym;": "prior(normal(0, 2.5), class = b, resp = weight, nlpar = asym)",
    "vector[N] bsp;": "prior(normal(0, 2.5), class = b)",
    "vector[N] bs_sigma;": "prior(normal(0, 2.5), class = b, dpar = sigma)",
    "matrix[N, 2] bcs;": "prior(normal(0, 2.5), class = b)",
    "real Intercept_phi;": "prior(normal(0, 2.5), class = Intercept, dpar = phi)",
    "real<lower=0> shape_weight;": "prior(exponential(1), class = shape, resp = weight)",
    "vector<lower=0>[N] sd_1;": "prior(exponential(1), class = sd)",
}


@pytest.mark.parametrize("declared", BRMS_PRIORS)
def test_words_of_brms_are_for_its_own_programs(declared):
    """brms 2.22: outcomes of several responses are Y_name, predictors of non-linear parameters nlp_name."""
    model = f"{{ vector[N] nlp_asym; vector[N] Y_weight; }} {OUTCOMES}"
    made, by_hand = (program(declared, model, before=before).simulator_refusal for before in (BRMS, ""))
    assert made is not None and by_hand is not None
    assert f"(brms: {BRMS_PRIORS[declared]});" in made.remedy
    assert "class" not in by_hand.remedy and "brms" not in by_hand.remedy


def test_brms_has_a_word_for_each_of_several_and_none_for_others():
    made = program("vector[N] b; real<lower=0> sd_1; real other;", before=BRMS).simulator_refusal
    assert made is not None
    assert "(brms: prior(normal(0, 2.5), class = b), prior(exponential(1), class = sd));" in made.remedy
    in_part = program("vector[N] b;", f"b[1] ~ normal(0, 1); {OUTCOMES}", before=BRMS).simulator_refusal
    assert in_part is not None and "` (brms: prior(normal(0, 2.5), class = b)); the scale is yours" in in_part.remedy
    nameless = program("real other;", before=BRMS).simulator_refusal  # brms has no class for it
    assert nameless is not None and "brms" not in nameless.remedy


# ---- parts of the model --------------------------------------------------------------------------------------

CENSORED = "adds the probability of a range, as of a censored observation"
TRUNCATED = "normalises a truncation in a way that bread does not know"
PARTS = [  # statements, outcomes, what is said, what is not
    ("for (n in 1:N) if (cens[n]) target += normal_lccdf(y[n] | mu, sigma); else y[n] ~ normal(mu, sigma);", ["y"],
     CENSORED, "truncat"),
    ("for (n in 1:N) if (cens[n]) target += normal_lcdf(U | mu, 2 * sigma); else y[n] ~ normal(mu, sigma);",
     ["y", "cens"], CENSORED, "truncat"),
    ("y ~ normal(mu, sigma); target += k[1] * normal_lccdf(U | mu, sigma);", ["y", "k"], CENSORED, "truncat"),
    ("for (n in 1:N) target += log_diff_exp(normal_lcdf(y[n] + 1 | mu, sigma), normal_lcdf(y[n] | mu, sigma));",
     ["y"], CENSORED, "truncat"),
    ("for (n in 1:N) target += normal_lpdf(y[n] | mu, sigma) - normal_lccdf(U | 0, sigma);", ["y"],
     TRUNCATED, "censored"),
    ("for (n in 1:N) if (k[n] == 0) target += -exp(mu); else k[n] ~ poisson_log(mu);", ["k"],
     "a term of the likelihood that is no density", "prior"),
    ("for (n in 1:N) if (k[n] == 0) target += log1m_inv_logit(mu); else target += log_inv_logit(mu);", ["k"],
     "a term of the likelihood that is no density", "prior"),
    ("y ~ normal(mu, sigma); if (N == 3) target += -square(mu);", ["y"], "a term of the prior that is no density",
     "of the likelihood that"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "observed", "said", "unsaid"), PARTS)
def test_a_refused_term_is_called_what_it_is(statements, observed, said, unsaid):
    refusal = program("", statements, observed).simulator_refusal
    assert refusal is not None and said in refusal.reason and unsaid not in refusal.reason


WEIGHTED = "multiplies a log density by the weight"
LOOP = "vector[N] ll; for (n in 1:N) ll[n] = normal_lpdf(y[n] | mu, sigma);"
WEIGHTS = [  # statements, and the weight that is named; brms 2.22 writes weights() as the first
    ("for (n in 1:N) target += w[n] * (normal_lpdf(y[n] | mu, sigma));", "w[n]"),
    ("for (n in 1:N) target += normal_lpdf(y[n] | mu, sigma) / w[n];", "w[n]"),
    ("for (n in 1:N) target += k[n] * normal_lpdf(y[n] | mu, sigma);", "k[n]"),
    (f"{LOOP} target += sum(w .* ll);", "w"),
    (f"{LOOP} target += dot_product(ll, w);", "w"),
    (f"{LOOP} target += w' * ll;", "w'"),
    ("vector[N] ll; for (n in 1:N) ll[n] = w[n] * normal_lpdf(y[n] | mu, sigma); target += sum(ll);", "w[n]"),
    ("vector[N] ll; for (n in 1:N) ll[n] = w[n] * normal_lpdf(y[n] | mu, sigma); target += ll;", "w[n]"),
    ("for (n in 1:N) target += 0.5 * w[n] * log_mix(0.3, normal_lpdf(y[n] | mu, 1), normal_lpdf(y[n] | 0, 1));",
     "0.5 * w[n]"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "weight"), WEIGHTS)
def test_weights_of_observations_are_refused_by_name(statements, weight):
    text = f"{DATA.replace('real U;', 'vector[N] w;')} parameters {{ {PARAMETERS} }} model {{ {PRIORS} {statements} }}"
    found = analyse_text(text, observed=["y"])
    assert found.split_refusal is None and found.simulator_refusal is not None
    assert f"{WEIGHTED} `{weight}`" in found.simulator_refusal.reason
    assert "simulator=" not in found.simulator_refusal.remedy  # none is right


def test_what_is_no_weight_is_not_called_one():
    """The law that the message suggests is drawn; a likelihood by hand is no weighted density."""
    text = f"{DATA.replace('real U;', 'vector[N] w;')} parameters {{ {PARAMETERS} }} model {{ {PRIORS} "
    assert analyse_text(text + "y ~ normal(mu, sigma ./ sqrt(w)); }", observed=["y"]).is_automatic
    by_hand = analyse_text(text + "target += -N * log(sigma) - 0.5 * sum(square((y - mu) / sigma)); }", observed=["y"])
    assert by_hand.simulator_refusal is not None and "weight" not in by_hand.simulator_refusal.reason
    mass = "for (n in 1:N) target += k[n] * log(sigma);"  # counts of a category, with no density of Stan's
    counted = analyse_text(text + mass + "}", observed=["k"])
    assert counted.simulator_refusal is not None and "weight" not in counted.simulator_refusal.reason


def test_a_probability_whose_part_is_in_doubt():
    """Censored at a limit that is data, or a prior's normaliser: both depend on parameters alone."""
    statements = "for (n in 1:N) if (cens[n]) target += normal_lccdf(U | mu, sigma); else y[n] ~ normal(mu, sigma);"
    refusal = program("", statements).split_refusal
    assert refusal is not None and "of censored observations" in refusal.reason
    assert "likelihood=[...]" in refusal.remedy and "density" not in refusal.remedy
    other = program("", "y ~ normal(mu, sigma); target += -square(mu);").split_refusal
    assert other is not None and "censored" not in other.reason and "Write it as a density" in other.remedy


# ---- types that this Stan lacks ------------------------------------------------------------------------------

HERE = re.search(r"v([\d.]+)", stanc("", "--version").stdout)


def unknown(word):
    return stanc(f"data {{ {word}[2] x; }}").returncode and stanc(f"data {{ {word}[2, 2] x; }}").returncode


@pytest.mark.parametrize(
    ("word", "block"),
    [
        ("sum_to_zero_vector", "parameters {{ {} x; }}"),
        ("row_stochastic_matrix", "transformed parameters {{ array[2] {} x; }}"),
        ("made_up_vector", "parameters {{ real z; {} x; }}"),
        ("made_up_vector", "data {{ array[2] {} x; }}"),
    ],
)
def test_an_unknown_type_says_which_stan_is_here(word, block):
    if not unknown(word):
        pytest.skip(f"this stanc has {word}")
    sized = f"{word}[2, 2]" if "matrix" in word else f"{word}[2]"
    with pytest.raises(StanProgramError) as caught:
        analyse_text(block.format(sized))
    assert f"'{word}' is {'not a type' if 'made' in word else 'a type of newer versions'} of Stan" in str(caught.value)
    assert HERE is not None and f"found here is {HERE.group(1)}." in str(caught.value)
    assert "install_cmdstan" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "parameters { real x; } model { x ~ normal(z, 1); }",
        "parameters { real x } model { }",
        "data { y ~ normal(0, 1); }",
        "parameters { vector[2 x; }",
        "model { int x = 1.5; }",
    ],
)
def test_other_errors_say_nothing_of_versions(text):
    with pytest.raises(StanProgramError) as caught:
        analyse_text(text)
    assert "install_cmdstan" not in str(caught.value) and "not a type" not in str(caught.value)
