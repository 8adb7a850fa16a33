"""Entry point of the command line: ``bread`` and ``python -m bread``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from bread.cli import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("The command line needs the package 'typer': pip install \"bread-mcmc[stan]\".")
    app()


if __name__ == "__main__":
    main()
