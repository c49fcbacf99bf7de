"""Training: an encoder, an objective and data to a model folder, on transformers' Trainer. Needs torch.

config       what a run is told and gives back   head, encoder   what is trained, as torch modules
batches      texts to packed batches             samplers        which rows are together
gradcache    batches larger than memory          checkpoints     a run's state in safetensors and JSON
trainer      the engine                          run             `train`
"""

from likewise.errors import MissingExtraError

try:
    import accelerate  # noqa: F401

    from likewise.training.config import Dataset, TrainingConfig, TrainingResult
    from likewise.training.encoder import TrainableEncoder
    from likewise.training.run import train
except ModuleNotFoundError as error:
    if error.name not in ("accelerate", "torch", "transformers"):
        raise
    raise MissingExtraError(error.name, "train", "training") from error

__all__ = ["Dataset", "TrainableEncoder", "TrainingConfig", "TrainingResult", "train"]
