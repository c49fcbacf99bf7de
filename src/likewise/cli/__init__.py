"""The command line: one file a verb. Data goes to standard output, everything else to standard error."""

from likewise.cli.main import main

__all__ = ["main"]
