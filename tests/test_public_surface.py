"""The names that users may rely on. A change here is a change of the promise."""

from __future__ import annotations

import importlib

import pytest

SURFACE = {
    "likewise": (
        "RCMD Cosine CrossEncoder Dot Embeddings Euclidean Explanation LikewiseError Manhattan Model Similarity "
        "Transport inspect"
    ),
    "likewise.errors": (
        "DataError DataNotFoundError EmptyTextWarning InputError InputTypeError LikewiseError LikewiseWarning "
        "MissingExtraError ModelError ModelNotFoundError PlainKernelsWarning DataWarning TrainingError "
        "TruncationError TruncationWarning WorkerError warn"
    ),
    "likewise.types": "Array Embeddings TextTokens Token array_namespace computable",
    "likewise.pooling": "MODES Pooling",
    "likewise.quantise": "MIN_VECTORS Calibration hamming to_binary",
    "likewise.kernels": (
        "Candidates cosines instruction_set limit_threads n_threads rcmd_matrix rcmd_pairs rcmd_plans top_pairs unit"
    ),
    "likewise.similarity": "NAMES RCMD Cosine Decomposition Dot Euclidean Manhattan Similarity Transport by_name",
    "likewise.encoder": (
        "WINDOW Coverage Cuts Dense Encoder Head Normalize SkipTokens Tokenized Tokenizer as_texts "
        "check_on_truncate chunks packed progress_bar told_once with_markers"
    ),
    "likewise.backbone": "Backbone load_backbone read_config serving tokenizer_json",
    "likewise.explain": "Alignment Explanation Side Word WordTable explain_pair roll_up words_of",
    "likewise.objectives": (
        "CONCATENATIONS Contrastive MANY MarginDistillation Matryoshka Objective Regression Softmax Triplet "
        "VectorDistillation"
    ),
    "likewise.training": (
        "Dataset Limits Mined TrainableEncoder TrainingConfig TrainingResult mine_negatives train train_cross_encoder"
    ),
    "likewise.recipes": (
        "SIZES Outcome Plan Preview Recipe Score is_first_process plan preview read_outcome read_recipe run scores "
        "sized table"
    ),
    "likewise.model": "DEFAULT CrossEncoder FolderSpec Found Model Report at_hand find inspect",
    "likewise.model.cross_encoder": "ACTIVATIONS CrossEncoder Ranked",
    "likewise.model.onnx": "Difference Parity export",
    "likewise.data": (
        "ALIGNMENT_KINDS CLASSIFICATION_TASKS FIELD_NAMES ISTS_ROWS NLI_LABELS STS_SOURCES ArgumentPair Article "
        "BinaryPair ChunkAlignment ChunkedPair ChunkedText DuplicateSet LabelledPair LabelledText "
        "RetrievalSet Rows ScoredPair Section TextTriplet drop_overlapping duplicates_among nli_triplets normalised "
        "number_at object_in read_arguments read_articles read_beir read_binary_pairs read_classification read_ists "
        "read_lines read_mrpc read_nli read_nli_triplets read_objects read_qqp read_qqp_duplicates "
        "read_scored_pairs read_section_triplets read_sick read_sick_nli read_sts read_stsb read_triplets "
        "read_wa section_triplets sentences text_at texts_at write_wa"
    ),
    "likewise.evaluation": (
        "Comparison Correlation Embedder Measure align_ists best correlate evaluate_arguments evaluate_binary "
        "evaluate_classification evaluate_ists evaluate_mining evaluate_pairs evaluate_paraphrases evaluate_reranking "
        "evaluate_retrieval evaluate_sts evaluate_triplets score_binary score_sts score_triplets"
    ),
    "likewise.evaluation.baselines": "Flow InferSent PaddedBatches TfIdf Whitening WordVectors words_of",
    "likewise.evaluation.mteb": "MtebModel",
    "likewise.evaluation.papers": "CLRCMD SBERT TABLES PublishedRow PublishedTable",
    "likewise.evaluation.reproduce": "NAMES SIZES OurRow Reproduction Request reproduce",
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
