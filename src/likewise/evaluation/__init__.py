"""How well models do what people do: the papers' protocols, each a function from a model and data to measures."""

from likewise.evaluation.arguments import evaluate_arguments
from likewise.evaluation.binary import evaluate_binary, score_binary
from likewise.evaluation.ists import align_ists, evaluate_ists
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.mining import evaluate_mining
from likewise.evaluation.reranking import evaluate_reranking
from likewise.evaluation.retrieval import evaluate_retrieval
from likewise.evaluation.senteval import evaluate_classification, evaluate_paraphrases
from likewise.evaluation.statistics import Comparison, best
from likewise.evaluation.sts import Correlation, correlate, evaluate_pairs, evaluate_sts, score_sts
from likewise.evaluation.triplets import evaluate_triplets, score_triplets

__all__ = [
    "Comparison",
    "Correlation",
    "Embedder",
    "Measure",
    "align_ists",
    "best",
    "correlate",
    "evaluate_arguments",
    "evaluate_binary",
    "evaluate_classification",
    "evaluate_ists",
    "evaluate_mining",
    "evaluate_pairs",
    "evaluate_paraphrases",
    "evaluate_reranking",
    "evaluate_retrieval",
    "evaluate_sts",
    "evaluate_triplets",
    "score_binary",
    "score_sts",
    "score_triplets",
]
