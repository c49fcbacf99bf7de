"""Training: an encoder, an objective and data to a model folder, on transformers' Trainer. Needs torch.

config       what a run is told and gives back   head, encoder   what is trained, as torch modules
batches      texts to packed batches             samplers        which rows are together
gradcache    batches larger than memory          checkpoints     a run's state in safetensors and JSON
trained      what the engine asks of a model     cross_encoder   `train_cross_encoder`
trainer      the engine                          run             `train`
negatives    hard negatives from a corpus
"""

from likewise.errors import MissingExtraError

try:
    import accelerate  # noqa: F401

    from likewise.training.config import Dataset, TrainingConfig, TrainingResult
    from likewise.training.cross_encoder import train_cross_encoder
    from likewise.training.encoder import TrainableEncoder
    from likewise.training.negatives import Limits, Mined, mine_negatives
    from likewise.training.run import train
except ModuleNotFoundError as error:
    if error.name not in ("accelerate", "torch", "transformers"):
        raise
    raise MissingExtraError(error.name, "train", "training") from error

__all__ = [
    "Dataset",
    "Limits",
    "Mined",
    "TrainableEncoder",
    "TrainingConfig",
    "TrainingResult",
    "mine_negatives",
    "train",
    "train_cross_encoder",
]
