"""The names that users may rely on. A change here is a change of the promise."""

from __future__ import annotations

import importlib

import pytest

SURFACE = {
    "likewise": (
        "RCMD Cosine Dot Embeddings Euclidean Explanation LikewiseError Manhattan Model Similarity Transport inspect"
    ),
    "likewise.errors": (
        "DataError EmptyTextWarning InputError InputTypeError LikewiseError LikewiseWarning MissingExtraError "
        "ModelError ModelNotFoundError PlainKernelsWarning TruncationError TruncationWarning warn"
    ),
    "likewise.types": "Array Embeddings TextTokens Token computable",
    "likewise.pooling": "MODES Pooling",
    "likewise.quantise": "MIN_VECTORS Calibration hamming to_binary",
    "likewise.kernels": ("Candidates cosines instruction_set rcmd_matrix rcmd_pairs rcmd_plans top_pairs unit"),
    "likewise.similarity": "NAMES RCMD Cosine Decomposition Dot Euclidean Manhattan Similarity Transport by_name",
    "likewise.encoder": (
        "Coverage Dense Encoder Head Normalize SkipTokens Tokenized Tokenizer as_texts packed with_markers"
    ),
    "likewise.backbone": "Backbone load_backbone read_config serving tokenizer_json",
    "likewise.explain": "Alignment Explanation Side Word WordTable explain_pair roll_up words_of",
    "likewise.model": "DEFAULT FolderSpec Found Model Report at_hand find inspect",
    "likewise.model.onnx": "Difference Parity export",
    "likewise.data": "ScoredPair read_lines read_stsb",
    "likewise.evaluation": "Correlation correlate evaluate_pairs",
}


@pytest.mark.parametrize("room", SURFACE)
def test_public_names(room):
    module = importlib.import_module(room)
    assert sorted(module.__all__) == sorted(SURFACE[room].split())
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_the_top_level_has_no_other_names():
    import likewise

    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        likewise.Modle  # noqa: B018
    assert set(dir(likewise)) == {*likewise.__all__, "__version__"}
