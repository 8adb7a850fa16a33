"""The whole comparison of a user's draws with annealed ones, as the report will make it."""

import numpy as np

from bread.statistics.agreement.agreement import agreement_test, effective_sample_size, quantile_effective_size
from bread.statistics.agreement.content import QUANTILES, interval_contents
from bread.statistics.agreement.disagreement import compare_draws


def sizes_of(user):
    """Return effective sizes for contents, (d, 3): the smaller of each quantile's and the whole's."""
    whole = effective_sample_size(user)
    return np.array([np.minimum(whole, quantile_effective_size(user, q)) for q in QUANTILES]).T


def compare(user, annealed, *, log_density=None, most_pairs=45, error=0.0):
    """Return the comparison, with contents and test, of draws (chain, draw, d) and (n, d)."""
    sizes = sizes_of(user)
    contents = interval_contents(user, annealed, sizes, error=error)
    test = agreement_test({"x": user}, {"x": annealed}, log_density=log_density, most_pairs=most_pairs, error=error)
    return (
        compare_draws(
            contents.p_value,
            contents.p_value_beyond_error,
            test.p_value_combined,
            test.p_value_beyond_error_combined,
            sizes,
        ),
        contents,
        test,
    )
