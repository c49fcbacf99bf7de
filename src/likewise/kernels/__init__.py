"""Packed RCMD, forward and backward and scoring: each compiled form beside its slow, plain twin.

plain       numpy and torch, any precision: the oracle, and the fallback
native      the C++ extension behind numpy arrays     scoring, gradients   what is built on it
blocked     pure torch, with gradient                 triton_gpu           GPUs
choice      which of them runs
"""

from likewise.kernels.choice import rcmd_matrix
from likewise.kernels.native import instruction_set, limit_threads, n_threads
from likewise.kernels.plain import cosines, unit
from likewise.kernels.rows import rcmd_pairs, rcmd_plans
from likewise.kernels.scoring import Candidates, top_pairs

__all__ = [
    "Candidates",
    "cosines",
    "instruction_set",
    "limit_threads",
    "n_threads",
    "rcmd_matrix",
    "rcmd_pairs",
    "rcmd_plans",
    "top_pairs",
    "unit",
]
