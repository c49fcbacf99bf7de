"""Data files to examples. No tensors, no network; every bad row is named by file and line."""

from likewise.data.lines import read_lines
from likewise.data.sts import ScoredPair, read_stsb

__all__ = ["ScoredPair", "read_lines", "read_stsb"]
