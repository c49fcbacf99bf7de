"""From token ids to token states. Nothing above this room knows which library computes them."""

from likewise.backbone.base import Backbone
from likewise.backbone.pretrained import load_backbone, tokenizer_json

__all__ = ["Backbone", "load_backbone", "tokenizer_json"]
