"""Data files to examples. No tensors, no network; every bad row is named by file and line.

A reader checks the published number of rows, so that a copy which is cut or doubled does not pass for the data set.
Rows that nobody labelled are skipped and counted: lists are `Rows`, whose `n_skipped` says how many.
"""

from likewise.data.arguments import read_arguments
from likewise.data.chunks import ALIGNMENT_KINDS, ChunkAlignment, ChunkedPair, ChunkedText
from likewise.data.classification import CLASSIFICATION_TASKS, read_classification
from likewise.data.duplicates import duplicates_among, read_mrpc, read_qqp, read_qqp_duplicates
from likewise.data.examples import (
    NLI_LABELS,
    ArgumentPair,
    Article,
    BinaryPair,
    DuplicateSet,
    LabelledPair,
    LabelledText,
    RetrievalSet,
    ScoredPair,
    Section,
    TextTriplet,
)
from likewise.data.ists import ISTS_ROWS, read_ists
from likewise.data.json_lines import number_at, object_in, read_objects, text_at, texts_at
from likewise.data.leaks import drop_overlapping, normalised, sentences
from likewise.data.lines import read_lines
from likewise.data.nli import nli_triplets, read_nli, read_nli_triplets
from likewise.data.own import FIELD_NAMES, read_binary_pairs, read_scored_pairs, read_triplets
from likewise.data.retrieval import read_beir
from likewise.data.rows import Rows
from likewise.data.sections import read_articles, read_section_triplets, section_triplets
from likewise.data.sick import read_sick, read_sick_nli
from likewise.data.sts import STS_SOURCES, read_sts, read_stsb
from likewise.data.wa import read_wa, write_wa

__all__ = [
    "ALIGNMENT_KINDS",
    "CLASSIFICATION_TASKS",
    "FIELD_NAMES",
    "ISTS_ROWS",
    "NLI_LABELS",
    "STS_SOURCES",
    "ArgumentPair",
    "Article",
    "BinaryPair",
    "ChunkAlignment",
    "ChunkedPair",
    "ChunkedText",
    "DuplicateSet",
    "LabelledPair",
    "LabelledText",
    "RetrievalSet",
    "Rows",
    "ScoredPair",
    "Section",
    "TextTriplet",
    "drop_overlapping",
    "duplicates_among",
    "nli_triplets",
    "normalised",
    "number_at",
    "object_in",
    "read_arguments",
    "read_articles",
    "read_beir",
    "read_binary_pairs",
    "read_classification",
    "read_ists",
    "read_lines",
    "read_mrpc",
    "read_nli",
    "read_nli_triplets",
    "read_objects",
    "read_qqp",
    "read_qqp_duplicates",
    "read_scored_pairs",
    "read_section_triplets",
    "read_sick",
    "read_sick_nli",
    "read_sts",
    "read_stsb",
    "read_triplets",
    "read_wa",
    "section_triplets",
    "sentences",
    "text_at",
    "texts_at",
    "write_wa",
]
