"""The example of the README: prints its output and writes its plot."""

from __future__ import annotations

import argparse
from pathlib import Path

import pymc as pm

import bread


def build_model() -> pm.Model:
    y = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]  # coaching effects in eight schools (Rubin 1981)
    se = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("y", theta, se, observed=y, dims="school")
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("output"))
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    with build_model():
        report = bread.check(random_seed=1)
    print(bread.verdict(report))
    columns = ["jeffreys", "lower", "upper", "total_variation", "role", "n_gradients"]
    print(bread.summary(report)[columns].to_string())
    with build_model():
        report = bread.check(random_seed=1, path="prior")
    print(bread.verdict(report))
    print(bread.summary(report)[columns].to_string())
    bread.plot_bounds(report).figure.savefig(folder / "eight_schools.png", dpi=110, bbox_inches="tight")
