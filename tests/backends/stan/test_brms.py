"""A program of brms's shape: its flat coefficients are refused in brms's words, its draws are read and completed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bread
from bread.errors import UnsupportedModelError
from tests.support.brms_programs import PRIOR_ON_B, PROGRAM, data
from tests.support.stan_conjugate import opened, toolchain

pytestmark = pytest.mark.stan
ROOT = Path(__file__).resolve().parents[3]


def test_flat_coefficients_are_refused_before_anything_is_compiled_in_words_of_brms() -> None:
    toolchain()
    flat = PROGRAM.replace(PRIOR_ON_B, "")
    with pytest.raises(
        UnsupportedModelError, match=r"'b' has no prior.*\(brms: prior\(normal\(0, 2\.5\), class = b\)\)"
    ):
        bread.check(flat, data=data(), observed="Y", simulate_from="prior", progressbar=False)


def test_the_page_shows_this_program() -> None:
    page = (ROOT / "docs" / "how_to" / "brms.md").read_text()
    assert PROGRAM.replace(PRIOR_ON_B, "").replace("functions {\n}\n", "") in page


@pytest.mark.slow
def test_draws_as_cmdstan_wrote_them_are_read_and_effects_of_groups_determine_their_offsets(tmp_path: Path) -> None:
    model = opened(PROGRAM, data(), observed="Y")
    draws = model.fit(seed=1, cores=1, progressbar=False).draws
    n_chains, n_draws = draws["sigma"].shape
    columns = {
        "b.1": draws["b"][..., 0], "Intercept": draws["Intercept"], "sigma": draws["sigma"],
        "sd_1.1": draws["sd_1"][..., 0],
        **{f"z_1.1.{g + 1}": draws["z_1"][..., 0, g] for g in range(6)},
        **{f"r_1_1.{g + 1}": draws["sd_1"][..., 0] * draws["z_1"][..., 0, g] for g in range(6)},
    }  # fmt: skip
    columns["b_Intercept"] = draws["Intercept"] - draws["b"][..., 0] * data()["X"][:, 1].mean()
    for without in ("none", "z_1", "Intercept"):
        kept = {name: values for name, values in columns.items() if not name.startswith(without)}
        files = [tmp_path / f"{without}-{chain}.csv" for chain in range(n_chains)]
        for chain, file in enumerate(files):
            rows = [",".join(f"{values[chain, row]:.8g}" for values in kept.values()) for row in range(n_draws)]
            file.write_text("\n".join(["# method = sample (Default)", ",".join(kept), *rows]))
        fit = model.read_posterior(files)
        assert not fit.missing and len(fit.notes) == (without != "none")
        np.testing.assert_allclose(fit.draws["z_1"], draws["z_1"], atol=1e-2)
        np.testing.assert_allclose(fit.draws["Intercept"], draws["Intercept"], rtol=1e-6, atol=1e-6)
        report = bread.look(PROGRAM, data=data(), observed="Y", posterior=files, progressbar=False)
        assert bread.verdict(report).status == "no difference seen"
    changed = data() | {"Y": data()["Y"] + np.r_[3.0, np.zeros(23)]}
    report = bread.look(PROGRAM, data=changed, observed="Y", posterior=files, progressbar=False)
    assert bread.verdict(report).status == "disagreement"  # the draws are of other data: a control
