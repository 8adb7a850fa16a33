"""Tests of a model before its kernel: simulator against density, integrals of priors, transforms, the joint law.

All start from exact joint draws, so that they hold whatever the data are. Each spends its share of the level; tests
without chance spend none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from bread.backends.base import Model, Node
from bread.debugging.finding import BatteryTest, Curves, Finding, LeftOut, certain
from bread.debugging.joint import JointChains, run_joint_chains
from bread.debugging.model_subject import ModelSubject
from bread.debugging.results import TestResult
from bread.debugging.transforms import check_transforms
from bread.errors import UnsupportedModelError
from bread.jobs.task import Task
from bread.running.exactness.joint import draw_joint
from bread.running.exactness.prior_integrals import DRAWS as N_INTEGRAL_DRAWS
from bread.running.exactness.prior_integrals import prior_integrals
from bread.running.exactness.score_tests import score_tests
from bread.running.exactness.scores import MIN_DRAWS
from bread.running.state.exactness_results import DirectTest
from bread.running.state.prior_integral_results import SMALLEST
from bread.seeds import Purpose, chain_seeds
from bread.statistics.agreement.probability_plots import probability_plot
from bread.statistics.exactness.functions import Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS, InvarianceTest, invariance_test, smooth_functions

MODEL = "model"  # the subject's name
N_DRAWS = 1000
BATCH = 50
MOST_CURVES = 100  # P-P plots that a report keeps: 40 kB
N_JOINT = 200  # joint draws that are moved: each costs ten transitions and ten simulations


def _never(sample: Any) -> LeftOut:
    raise NotImplementedError("tests of a model run by themselves")


def _test(
    name: str, checks: str, law: str, culprits: tuple[str, ...], unit: str, is_random: bool = True
) -> BatteryTest:
    return BatteryTest(name, "simulator", checks, law, culprits, unit, _never, is_random)


_SD = "standard deviations of one draw"
PRIOR = _test(
    "prior score",
    "draws from the prior against the gradient of its log density",
    "Stein's identity: t tests of means that are 0",
    ("The random draws of a free variable do not follow its log density.",),
    _SD,
)
LIKELIHOOD = _test(
    "likelihood score",
    "simulated data against the likelihood, by its gradient in the parameters",
    "the mean score is 0 at every parameter: t tests",
    ("Simulated data do not follow the likelihood.",),
    _SD,
)
OUTCOMES = _test(
    "outcome score",
    "simulated data against the likelihood, by its derivative along the outcomes",
    "Stein's identity: t tests of means that are 0",
    ("Simulated data do not follow the likelihood.",),
    _SD,
)
JOINT_SCORE = _test(
    "joint score",
    "joint draws against the gradient of the joint log density",
    "Stein's identity: t tests of means that are 0",
    ("The simulator does not draw from the joint density.",),
    _SD,
)
INTEGRAL = _test(
    "prior's integral",
    "each free variable's density given its parents, integrated by bridge sampling between its own draws and a t law",
    "estimates are normal, with the error that is stated; less than 0.02 nats is not reported",
    ("The density of a free variable does not integrate to one: a normalising constant is wrong or missing.",),
    "nats",
)
DRAWS = _test(
    "draws by the integral",
    "random draws of each free variable against its density, by what its integral evaluates",
    "an identity of two expectations: t tests",
    ("The random draws of a free variable do not follow its log density.",),
    "p-value",
)
TRANSFORMS = _test(
    "transforms",
    "constrain(unconstrain(x)) = x, and Jacobians against numerical determinants",
    "nothing is left to chance",
    ("A map between a variable's own coordinates and unconstrained ones is wrong, or its Jacobian.",),
    "relative difference, or nats",
    is_random=False,
)
JOINT = _test(
    "joint test of Geweke",
    "joint draws of parameters and data before and after kernel and simulator moved them in turn",
    "one law before and after: exact tests of indicators, t tests of bounded functions",
    ("Kernel, density and simulator do not fit together.",),
    "normal scores, or probability",
)
_BY_NAME = {test.name: test for test in (PRIOR, LIKELIHOOD, OUTCOMES, JOINT_SCORE)}
N_RANDOM = 6  # tests with a share of the level: three scores (or one), two of integrals, the joint one


@dataclass
class ModelTests:
    """What these tests found.

    Attributes
    ----------
    results : list of TestResult
    left_out : dict of str to str
        By test, or by part of one.
    spent : int
        Evaluations of gradients and densities, transitions included.
    """

    results: list[TestResult] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    spent: int = 0

    def add(self, test: BatteryTest, finding: Finding, began: float, level: float) -> None:
        """Keep a finding, with its p-value adjusted for the tests beside it."""
        p_value = min(1.0, (N_RANDOM if test.is_random else 1) * finding.p_value) if finding.n_tested else float("nan")
        self.results.append(
            TestResult(MODEL, test, p_value, finding, 1, perf_counter() - began, bool(p_value <= level))
        )


def run_model_tests(
    model: Model,
    kernel: ModelSubject | None,
    *,
    level: float,
    budget: float,
    root: int,
    run: Callable[[Sequence[Task]], list[Any]] | None = None,
) -> ModelTests:
    """Run them.

    Parameters
    ----------
    model : Model
    kernel : ModelSubject or None
        At beta = 1; without one the joint test is left out.
    level : float
        Of all of them together.
    budget : float
        Numbers of draws, times the default.
    root : int
        Root of all random numbers.
    run : callable, optional
        Runs tasks on the model and returns their results in order; by default here, one after another.

    Returns
    -------
    ModelTests
        What cannot be run is left out with the reason.
    """
    found = ModelTests()

    def run_here(tasks: Sequence[Task]) -> list[Any]:
        return [task.run(model) for task in tasks]

    run_tasks = run_here if run is None else run

    def attempt(name: str, test: Callable[[], None]) -> None:
        try:
            test()
        except Exception as error:  # a simulator or a density may raise anything
            found.left_out[name] = f"{type(error).__name__}: {error}"

    n_draws = max(MIN_DRAWS, round(N_DRAWS * budget / BATCH) * BATCH)
    attempt("scores", lambda: _scores(model, n_draws, root, found, level, run_tasks))
    attempt(TRANSFORMS.name, lambda: _transforms(model, root, found, level))
    attempt(INTEGRAL.name, lambda: _integrals(model, root, found, level))
    if kernel is not None:
        n_joint = max(FEWEST_DRAWS, round(N_JOINT * budget))
        attempt(JOINT.name, lambda: _joint(kernel, n_joint, root, found, level))
    return found


def _scores(
    model: Model,
    n_draws: int,
    root: int,
    found: ModelTests,
    level: float,
    run: Callable[[Sequence[Task]], list[Any]],
) -> None:
    began = perf_counter()
    scores = score_tests(model.info, root, n_draws // BATCH, BATCH, run)
    for test in scores.tests:
        found.add(_BY_NAME[test.name], _finding(test), began, level)
    found.left_out |= scores.left_out
    found.spent += scores.n_gradients + scores.n_evaluations


def _finding(test: DirectTest) -> Finding:
    labels = tuple(Label(variable, function) for variable in test.variables for function in test.functions)
    return Finding(labels, test.p_values.ravel(), test.effect.ravel(), test.n_draws)


def _transforms(model: Model, root: int, found: ModelTests, level: float) -> None:
    began = perf_counter()
    seeds = chain_seeds(root, Purpose.DIRECT, 1, 0, range(1))
    drawn = draw_joint(model, BATCH, seeds[0])
    check = check_transforms(model, drawn.states)
    labels = [Label(name, "and back") for name in check.loop] + [Label(name, "Jacobian") for name in check.determinant]
    sizes = [*check.loop.values(), *check.determinant.values()]
    names = [
        *(f"constrain(unconstrain({name}))" for name in check.loop),
        *(f"Jacobian of {n}" for n in check.determinant),
    ]
    failed = [
        (label, size, f"{name} is off by {size:.2g}{' nats' if label.function == 'Jacobian' else ''}.")
        for label, size, name in zip(labels, sizes, names, strict=True)
        if name in check.failed
    ]
    found.add(TRANSFORMS, certain(failed, labels, len(drawn)), began, level)
    found.left_out |= {f"Jacobian of {name}": why for name, why in check.left_out.items()}


def _is_discrete(model: Model, node: Node) -> bool:
    layout = model.info.layout
    return any(bool(layout.discrete[layout.positions[name]].any()) for name in node.shapes)


def _integrals(model: Model, root: int, found: ModelTests, level: float) -> None:
    began = perf_counter()
    free = [node for node in model.nodes() if node.kind in ("latent", "parameter")]
    if not free:
        raise UnsupportedModelError("this backend has no densities of single variables")
    discrete = [node.name for node in free if _is_discrete(model, node)]
    found.left_out |= {
        f"{INTEGRAL.name} of {name}": "discrete: sums over values are not looked at" for name in discrete
    }
    # A constant that a formula says (one of K! orders) is no defect; all others are integrated, however well known.
    nodes = [
        node if node.log_integral else replace(node, log_integral=None) for node in free if node.name not in discrete
    ]
    integrals = prior_integrals(model, nodes, root)
    found.spent += integrals.n_evaluations
    found.left_out |= {f"{INTEGRAL.name} of {name}": why for name, why in integrals.left_out.items()}
    known = [one for one in integrals.integrals if not one.is_known]
    if not known:
        return
    labels = [Label(one.variable, "log integral") for one in known]
    p_values = [one.p_value if abs(one.log_integral) > SMALLEST else 1.0 for one in known]
    effect = [one.log_integral for one in known]
    varying = [one for one in known if len(one.by_parents) > 1]
    labels += [Label(one.variable, "varies with its parents") for one in varying]
    p_values += [one.varies_p_value if one.spread > SMALLEST else 1.0 for one in varying]
    effect += [one.spread for one in varying]
    n = N_INTEGRAL_DRAWS
    found.add(INTEGRAL, Finding(tuple(labels), np.array(p_values), np.array(effect), n), began, level)
    draws = np.array([one.draws_p_value for one in known])
    found.add(DRAWS, Finding(tuple(Label(one.variable, "draws") for one in known), draws, draws, n), began, level)


def _joint(kernel: ModelSubject, n_joint: int, root: int, found: ModelTests, level: float) -> None:
    began = perf_counter()
    chains = run_joint_chains(kernel, chain_seeds(root, Purpose.DIRECT_MOVE, 2, 0, range(n_joint)))
    test = invariance_test(chains.before, chains.after)
    labels = tuple(Label(name, function) for name in chains.names for function in test.functions)
    curves = _curves(chains, test)
    finding = Finding(labels, test.p_values.ravel(), test.effect.ravel(), n_joint, curves=curves)
    found.add(JOINT, finding, began, level)
    found.spent += chains.n_evaluations


def _curves(chains: JointChains, test: InvarianceTest) -> Curves:
    """Return P-P plots of the smooth functions with the smallest p-values, smallest first."""
    before, after = smooth_functions(chains.before, chains.after, test)
    n_kinds = before.shape[2]
    order = np.argsort(test.p_values[:, :n_kinds].ravel(), kind="stable")
    chosen = order[: min(MOST_CURVES, int((~np.isnan(test.p_values[:, :n_kinds])).sum()))]
    columns = [values.reshape(len(values), -1)[:, chosen] for values in (before, after)]
    labels = []
    for i, k in zip(*np.unravel_index(chosen, (len(chains.names), n_kinds)), strict=True):
        name = chains.names[i]
        if k >= 2:
            name = f"{name}, {chains.names[test.partners[i, k - 2]]}"
        labels.append(Label(name, ("x", "x^2")[k] if k < 2 else "x y"))
    return Curves(tuple(labels), probability_plot(*columns))
