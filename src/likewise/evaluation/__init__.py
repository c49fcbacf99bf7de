"""How well scores agree with people."""

from likewise.evaluation.sts import Correlation, correlate, evaluate_pairs

__all__ = ["Correlation", "correlate", "evaluate_pairs"]
