"""Entry point of the command line: ``bread`` and ``python -m bread``."""

from __future__ import annotations

from bread.cli.commands import app as main

__all__ = ["main"]

if __name__ == "__main__":
    main()
