"""From token ids to token states. Nothing above this room knows which library computes them."""

from likewise.backbone.base import Backbone
from likewise.backbone.choice import load_backbone, read_config, serving
from likewise.backbone.pretrained import tokenizer_json

__all__ = ["Backbone", "load_backbone", "read_config", "serving", "tokenizer_json"]
