"""Model = Encoder + Similarity: score, matrix, explain, save, load, inspect."""

from likewise.model.folder import FolderSpec
from likewise.model.model import Model
from likewise.model.report import Report, inspect
from likewise.model.sources import DEFAULT, Found, at_hand, find

__all__ = ["DEFAULT", "FolderSpec", "Found", "Model", "Report", "at_hand", "find", "inspect"]
