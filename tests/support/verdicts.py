"""Verdicts of reports that are made up, and reports whose fit is doubtful."""

from dataclasses import replace

import bread
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result


def judge(result):
    return bread.verdict(report.to_container(result, constrain))


def fitted(simulate_from, *, shift=0.0, n_divergences=None, **changes):
    """A check whose fit has one chain that is shifted."""
    result = fake_result(simulate_from=simulate_from, posterior_shift=0.0, **changes)
    draws = {name: values.copy() for name, values in result.fit.draws.items()}
    draws["tau"][0] += shift
    result.fit = replace(result.fit, draws=draws, source="pm.sample", n_divergences=n_divergences)
    result.settings["posterior"] = False
    return result
