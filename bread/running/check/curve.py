"""Other numbers of temperatures around a small one, so that plots show how the bound falls; they decide nothing."""

from __future__ import annotations

TEMPERATURES = (2, 4, 8, 16)
SIMULATIONS = 10  # of those that confirmed
SHARE = 0.1  # of the gradients spent before


def curve_temperatures(
    n_temperatures: int, most: int, per_transition: float, n_chains: int, n_spent: float
) -> list[int]:
    """Return the numbers of temperatures that can be shown too for a tenth of what the check has cost.

    Parameters
    ----------
    n_temperatures : int
        The number that was confirmed. A search that went beyond `TEMPERATURES` has shown a curve of its own.
    most : int
        The largest number that the user allows.
    per_transition : float
        Gradient evaluations of a transition there.
    n_chains : int
        Chains of a data set, both directions.
    n_spent : float
        Gradient evaluations so far.

    Returns
    -------
    list of int
        Without ``n_temperatures``, from the smallest up.
    """
    if n_temperatures > TEMPERATURES[-1]:
        return []
    left, chosen = SHARE * n_spent, []
    for number in TEMPERATURES:
        cost = (number - 1) * per_transition * n_chains * SIMULATIONS
        if number != n_temperatures and number <= most and cost <= left:
            left -= cost
            chosen.append(number)
    return chosen
