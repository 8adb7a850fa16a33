"""Use an installed wheel: python use_wheel.py EXTRA ROOT, in the environment of that extra, away from the source tree.

The README's example and its refusal are run by the script that compares what the README prints.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

QUICK = {"simulations": 4, "n_temperatures": [4, 8], "draws": 20, "cores": 1, "random_seed": 1, "progressbar": False}


def compare_with_readme(root: Path, block: str) -> None:
    """Run what the README shows, and compare what is printed."""
    subprocess.run([sys.executable, str(root / "examples" / "readme.py"), block], check=True)


def quick_report(path: Path) -> Any:
    """Check a conjugate model, write the report and return it."""
    import numpy as np

    import bread
    from tests.models.reference import NormalMean

    report = bread.check(NormalMean(np.array([0.4, 1.9, 1.1])), **QUICK)
    assert bread.verdict(report).status in ("converged", "inconclusive"), bread.verdict(report)
    assert {4, 8} <= set(bread.summary(report, kind="bounds").index)
    report.to_netcdf(path)
    return report


def use_none(root: Path) -> None:
    """Check a model that needs no extra; what is missing is said in the line that installs it."""
    import bread
    import bread.numpyro
    import bread_webppl
    from bread_webppl import bridge

    assert bridge.DRIVER.with_name("requests.js").is_file()  # WebPPL's driver is in the wheel
    report = quick_report(Path("none.nc"))
    shown = subprocess.run(["bread", "show", "none.nc"], capture_output=True, text=True, check=False)
    assert shown.returncode in (0, 3) and "Bounds" in shown.stdout, shown.stderr
    page = bread.to_html(report, "none.html").read_text(encoding="utf-8")  # its templates are in the wheel
    assert page.startswith("<!doctype html>") and "Versions, seed and data" in page
    missing = {
        "stan": lambda: bread.check("model.stan", progressbar=False),
        "numpyro": lambda: bread.check(bread.numpyro.Model(print), progressbar=False),
    }
    if find_spec("matplotlib") is None:  # ArviZ 0.x brings it
        missing["plots"] = lambda: bread.plot_bounds(report)
    needs = {extra: f"bread-mcmc[{extra}]" for extra in missing}
    missing["webppl"] = lambda: bread.check(bread_webppl.Model("", {"y": 1.0}, "y", node="none"), progressbar=False)
    needs["webppl"] = "Install Node.js"  # said by the plugin, which its entry point leads to
    for extra, use in missing.items():
        try:
            use()
        except ImportError as error:
            assert needs[extra] in str(error), error
        else:
            raise AssertionError(f"{extra} is not installed, and yet it works")


def use_pymc(root: Path) -> None:
    """Run the README's example, but for its plot."""
    compare_with_readme(root, "example")


def use_stan(root: Path) -> None:
    """Run the README's command, and a program that it refuses."""
    example = root / "examples"
    for name in ("eight_schools.stan", "eight_schools.json"):
        (Path.cwd() / name).write_bytes((example / name).read_bytes())
    command = ["bread", "check", "eight_schools.stan", "eight_schools.json", "--observed", "y", "--output", "report.nc"]
    # 3 is "inconclusive", which another version's random numbers may give
    assert subprocess.run([*command, "--seed", "1"], check=False).returncode in (0, 3)
    shown = subprocess.run(["bread", "show", "report.nc"], check=False, capture_output=True, text=True).stdout
    assert "Bounds" in shown, shown
    compare_with_readme(root, "refusal")


def use_plots(root: Path) -> None:
    """Draw every plot."""
    import matplotlib as mpl

    mpl.use("Agg")
    import bread

    report = quick_report(Path("plots.nc"))
    for plot in (bread.plot_bounds, bread.plot_consistency, bread.plot_path, bread.plot_work):
        plot(report)


def main(extra: str, root: Path) -> None:
    """Check what was installed, then use it."""
    import bread

    installed = Path(bread.__file__).parent
    assert "site-packages" in installed.parts, installed
    sys.path.insert(0, str(root))  # for `tests.models`; bread is imported, from the wheel
    assert bread.__version__ == metadata("bread-mcmc")["Version"]
    assert (installed / "py.typed").is_file()
    description = metadata("bread-mcmc").get_payload()
    assert "# bread" in description and "](docs/" not in description, "links that package indexes cannot follow"
    {"none": use_none, "pymc": use_pymc, "stan": use_stan, "plots": use_plots}[extra](root)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
