"""The report as Markdown: tables that hold, and names that stay text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import InvalidArgumentError
from bread.reading.page.data_digest import data_digest
from bread.reading.page.markdown import escaped
from bread.report import container as report
from bread.report.compat import read_attributes
from tests.support.fake_results import constrain, fake_result, model_info

NASTY = "a|b `c` <img src=x> [x](http://y.z) *d* _e_\n# f @user #12 ~g~ $h$ www.x.y"


def reported(**options: Any) -> Any:
    return report.to_container(fake_result(**options), constrain)


def test_markdown_holds_what_the_page_does() -> None:
    made = reported(gap=0.01, posterior_shift=0.0)
    text = bread.to_markdown(made)
    verdict = bread.verdict(made)
    assert text.startswith("# Converged: schools\n")
    for title in ("Numbers", "Temperatures", "Draws on your data", "Tests", "Settings", "Provenance", "Notes"):
        assert f"\n## {title}\n" in text
    lines = text[: text.index("\n## Numbers")].split("\n")[2:]
    assert [re.sub(r"[*\\ ]", "", line) for line in lines if line] == [
        re.sub("[* ]", "", escaped(line)).replace("\\", "") for line in verdict.split("\n")
    ]
    assert f"## Details\n\n{escaped(verdict.details)}\n" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
    assert f"| Seed | {read_attributes(made)['seed']} |" in text and data_digest(made) in text


def test_names_stay_text() -> None:
    text = bread.to_markdown(reported(info=model_info(name=NASTY, notes=(NASTY,), kernel=NASTY)))
    assert "<img" not in text and "\n# f" not in text and re.search(r"(?<!\\)[`\[(|]x", text) is None
    assert re.search(r"(?<!\\)://|www(?!\\)|@user", text) is None and r"\`c\`" in text
    assert escaped("V = 0.1") == "V = 0.1"


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="report of bread.check"):
        bread.to_markdown(3)


def test_the_digest_is_of_the_data(tmp_path: Any) -> None:
    observed = {"y": np.arange(6.0).reshape(3, 2)}
    made = reported(info=model_info(observed=observed))
    digest = data_digest(made)
    assert re.fullmatch("[0-9a-f]{64}", digest)
    made.to_netcdf(tmp_path / "report.nc")
    with bread_opened(tmp_path / "report.nc") as again:
        assert data_digest(again) == digest
    assert data_digest(reported(seed=7, info=model_info(observed=observed))) == digest  # other draws, the same data
    changed = {"y": observed["y"] + np.eye(3, 2) * 1e-12}
    assert data_digest(reported(info=model_info(observed=changed))) != digest
    assert data_digest(reported(info=model_info(observed={"z": observed["y"]}))) != digest
    assert data_digest(reported(info=model_info(observed={}, constants={}))) == ""


def bread_opened(path: Any) -> Any:
    from bread.report.opening import opened_report

    return opened_report(path)
