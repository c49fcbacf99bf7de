"""Plain array formulas on packed tokens; compiled twins will stand beside them."""

from likewise.kernels.plain import cosines, nearest, rcmd_matrix, segment_max, segment_mean, unit

__all__ = ["cosines", "nearest", "rcmd_matrix", "segment_max", "segment_mean", "unit"]
