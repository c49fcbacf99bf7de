"""What training makes small: a batch's embedded columns and labels to a scalar, over any similarity. Needs torch.

base            the interface                    sides         columns put together, across processes, too
softmax         classes of pairs                 regression    a similarity on gold scores
triplet         nearer by a margin               contrastive   InfoNCE: SimCSE and CLRCMD
matryoshka      at several lengths               distillation  from a teacher
"""

from likewise.objectives.base import MANY, Objective
from likewise.objectives.contrastive import Contrastive
from likewise.objectives.distillation import MarginDistillation, VectorDistillation
from likewise.objectives.matryoshka import Matryoshka
from likewise.objectives.regression import Regression
from likewise.objectives.softmax import CONCATENATIONS, Softmax
from likewise.objectives.triplet import Triplet

__all__ = [
    "CONCATENATIONS",
    "MANY",
    "Contrastive",
    "MarginDistillation",
    "Matryoshka",
    "Objective",
    "Regression",
    "Softmax",
    "Triplet",
    "VectorDistillation",
]
