"""The published tables of Sentence-BERT and CLRCMD as data, each with the setting that it was measured in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["CLRCMD", "SBERT", "TABLES", "PublishedRow", "PublishedTable"]

SBERT = "Reimers & Gurevych 2019 (Sentence-BERT)"
"""The paper of the tables `sbert-…`."""
CLRCMD = "Lee et al. 2022 (CLRCMD)"
"""The paper of the tables `clrcmd-…`."""


@dataclass(frozen=True)
class PublishedRow:
    """One system's numbers."""

    system: str
    """Its name, as printed."""
    values: tuple[float | None, ...]
    """One number a column; None where the paper has none."""
    group: str = ""
    """The part of the table that the row stands in."""
    spread: float | None = None
    """Standard deviation over seeds, where it is given."""


@dataclass(frozen=True)
class PublishedTable:
    """One table or figure of a paper."""

    name: str
    """What `likewise reproduce` calls it."""
    title: str
    """What is measured."""
    source: str
    """Paper and section."""
    columns: tuple[str, ...]
    """What the numbers of a row stand for."""
    unit: str
    """Of every number."""
    rows: tuple[PublishedRow, ...]
    """The systems in the paper's order; none where a figure gives no numbers."""
    setting: tuple[str, ...]
    """How the authors measured: data, training, machine."""
    digits: int = 2
    """Decimals that the paper prints."""

    def row(self, system: str, group: str = "") -> PublishedRow:
        """The row of a system.

        Raises:
            KeyError: There is none.
        """
        for row in self.rows:
            if row.system == system and row.group == group:
                return row
        raise KeyError(f"no row {system!r} in {self.name}")


_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-b", "SICK-R", "avg")
_SENTEVAL = ("MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "avg")


def _rows(text: str, group: str = "") -> tuple[PublishedRow, ...]:
    """Lines of `system | number number …`; a dash is no number, `±number` the spread of the one before."""
    rows = []
    for line in text.strip().split("\n"):
        system, _, numbers = line.rpartition("|")
        words = numbers.split()
        spread = [float(word[1:]) for word in words if word.startswith("±")]
        values = tuple(None if word == "-" else float(word) for word in words if not word.startswith("±"))
        rows.append(PublishedRow(system.strip(), values, group, spread[0] if spread else None))
    return tuple(rows)


_NLI_TRAINING = (
    "SNLI and MultiNLI (942,000 pairs), 3-way softmax of (u, v, |u - v|), one epoch, batch 16, Adam 2e-5, mean pooling"
)

_SBERT: Sequence[PublishedTable] = (
    PublishedTable(
        "sbert-table1",
        "STS without STS training: Spearman correlation of cosine and gold",
        f"{SBERT}, section 4.1",
        _STS,
        "Spearman x 100",
        _rows(
            """
            Avg. GloVe                 | 55.14 70.66 59.73 68.25 63.66 58.02 53.76 61.32
            Avg. BERT                  | 38.78 57.98 57.98 63.15 61.06 46.35 58.40 54.81
            BERT CLS                   | 20.16 30.01 20.09 36.88 38.08 16.50 42.63 29.19
            InferSent-GloVe            | 52.86 66.75 62.15 72.77 66.87 68.03 65.65 65.01
            Universal Sentence Encoder | 64.49 67.80 64.61 76.83 73.18 74.92 76.69 71.22
            SBERT-NLI-base             | 70.97 76.53 73.19 79.09 74.30 77.03 72.91 74.89
            SBERT-NLI-large            | 72.27 78.46 74.90 80.99 76.25 79.23 73.75 76.55
            SRoBERTa-NLI-base          | 71.54 72.49 70.80 78.74 73.69 77.77 74.46 74.21
            SRoBERTa-NLI-large         | 74.53 77.00 73.18 81.85 76.82 79.10 74.29 76.68
            """
        ),
        (
            f"SBERT rows trained on {_NLI_TRAINING}",
            "the average of the row SBERT-NLI-base is printed as 74.89; the mean of its numbers is 74.86",
        ),
    ),
    PublishedTable(
        "sbert-table2",
        "STS benchmark, test, trained on it",
        f"{SBERT}, section 4.2",
        ("STS-b test",),
        "Spearman x 100",
        _rows(
            """
            BERT-base      | 84.30 ±0.76
            SBERT-base     | 84.67 ±0.19
            SRoBERTa-base  | 84.92 ±0.34
            BERT-large     | 85.64 ±0.81
            SBERT-large    | 84.45 ±0.43
            SRoBERTa-large | 85.02 ±0.76
            """,
            "trained on STS-b",
        )
        + _rows(
            """
            BERT-base      | 88.33 ±0.19
            SBERT-base     | 85.35 ±0.17
            SRoBERTa-base  | 84.79 ±0.38
            BERT-large     | 88.77 ±0.46
            SBERT-large    | 86.10 ±0.13
            SRoBERTa-large | 86.15 ±0.35
            """,
            "NLI, then STS-b",
        ),
        (
            "regression of the cosine, 4 epochs on STS-b train, 10 seeds; BERT rows are cross-encoders (both sentences "
            "in one input)",
        ),
    ),
    PublishedTable(
        "sbert-table3",
        "Argument facet similarity",
        f"{SBERT}, section 4.3",
        ("Pearson", "Spearman"),
        "correlation x 100",
        _rows(
            """
            tf-idf              | 46.77 42.95
            Avg. GloVe          | 32.40 34.00
            InferSent-GloVe     | 27.08 26.63
            """,
            "unsupervised",
        )
        + _rows(
            """
            SVR (Misra et al.)  | 63.33 -
            BERT-base           | 77.20 74.84
            SBERT-base          | 76.57 74.13
            BERT-large          | 78.68 76.38
            SBERT-large         | 77.85 75.93
            """,
            "10-fold",
        )
        + _rows(
            """
            BERT-base           | 58.49 57.23
            SBERT-base          | 52.34 50.65
            BERT-large          | 62.02 60.34
            SBERT-large         | 53.82 53.10
            """,
            "cross-topic",
        ),
        (
            "6,000 pairs on gun control, gay marriage and death penalty, gold 0 to 5; regression of the cosine; "
            "cross-topic: trained on two topics, tested on the third, average of three",
        ),
    ),
    PublishedTable(
        "sbert-table4",
        "Sections of Wikipedia: the sentence of the same section is nearer than that of another",
        f"{SBERT}, section 4.4",
        ("accuracy",),
        "share",
        _rows(
            """
            mean-vectors     | 0.65
            skip-thoughts-CS | 0.62
            Dor et al.       | 0.74
            SBERT-base       | 0.8042
            SBERT-large      | 0.8078
            SRoBERTa-base    | 0.7945
            SRoBERTa-large   | 0.7973
            """
        ),
        ("222,957 test triplets of Dor et al. 2018; SBERT trained on about 1.8 million triplets, one epoch, margin 1",),
        digits=4,
    ),
    PublishedTable(
        "sbert-table5",
        "SentEval: logistic regression on sentence vectors",
        f"{SBERT}, section 5",
        _SENTEVAL,
        "accuracy x 100",
        _rows(
            """
            Avg. GloVe                 | 77.25 78.30 91.17 87.85 80.18 83.0 72.87 81.52
            Avg. fastText              | 77.96 79.23 91.68 87.81 82.15 83.6 74.49 82.42
            Avg. BERT                  | 78.66 86.25 94.37 88.66 84.40 92.8 69.45 84.94
            BERT CLS                   | 78.68 84.85 94.21 88.23 84.13 91.4 71.13 84.66
            InferSent-GloVe            | 81.57 86.54 92.50 90.38 84.18 88.2 75.77 85.59
            Universal Sentence Encoder | 80.09 85.19 93.98 86.70 86.38 93.2 70.14 85.10
            SBERT-NLI-base             | 83.64 89.43 94.39 89.86 88.96 89.6 76.00 87.41
            SBERT-NLI-large            | 84.88 90.07 94.52 90.33 90.66 87.4 75.94 87.69
            """
        ),
        ("10-fold cross-validation on frozen vectors", f"SBERT rows trained on {_NLI_TRAINING}"),
    ),
    PublishedTable(
        "sbert-table6",
        "What matters in training: pooling and concatenation, STS benchmark, dev",
        f"{SBERT}, section 6",
        ("NLI", "STS-b"),
        "Spearman x 100",
        _rows(
            """
            MEAN | 80.78 87.44
            MAX  | 79.07 69.92
            CLS  | 79.80 86.62
            """,
            "pooling",
        )
        + _rows(
            """
            (u, v)                | 66.04 -
            (|u - v|)             | 69.78 -
            (u * v)               | 70.54 -
            (|u - v|, u * v)      | 78.37 -
            (u, v, u * v)         | 77.44 -
            (u, v, |u - v|)       | 80.78 -
            (u, v, |u - v|, u * v)| 80.44 -
            """,
            "concatenation",
        ),
        ("BERT-base, trained on NLI (softmax) or on STS-b (regression of the cosine), 10 seeds",),
    ),
    PublishedTable(
        "sbert-table7",
        "Sentences a second",
        f"{SBERT}, section 7",
        ("CPU", "GPU"),
        "sentences a second",
        _rows(
            """
            Avg. GloVe                 | 6469 -
            InferSent                  | 137 1876
            Universal Sentence Encoder | 67 1318
            SBERT-base                 | 44 1378
            SBERT-base, smart batching | 83 2042
            """
        ),
        ("CPU: Intel i7-5820K; GPU: NVIDIA V100", "smart batching: +89 % on the CPU, +48 % on the GPU"),
        digits=0,
    ),
)

_SIMCSE_DATA = "SNLI and MultiNLI with hard negatives (275,601 triplets)"

_CLRCMD: Sequence[PublishedTable] = (
    PublishedTable(
        "clrcmd-table1",
        "STS without STS training: Spearman correlation of the score and gold",
        f"{CLRCMD}, section 4.2",
        _STS,
        "Spearman x 100",
        _rows(
            """
            BERT-base avg         | 29.12 59.96 47.22 60.61 63.72 47.20 58.25 52.30
            SBERT-base            | 70.97 76.53 73.19 79.09 74.30 77.03 72.91 74.86
            SBERT-base-flow       | 69.78 77.27 74.35 82.01 77.46 79.12 76.21 76.60
            SBERT-base-whitening  | 69.65 77.57 74.66 82.27 78.39 79.52 76.91 77.00
            SimCSE-cls BERT-base  | 75.30 84.67 80.19 85.40 80.82 84.25 80.39 81.57
            SimCSE-avg BERT-base  | 75.88 83.28 80.26 86.06 81.33 84.91 79.94 81.67
            CLRCMD BERT-base      | 75.23 85.06 80.99 86.26 81.50 85.21 80.49 82.11
            """,
            "BERT-base",
        )
        + _rows(
            """
            RoBERTa-base avg         | 32.50 55.78 45.00 60.61 61.68 55.31 61.66 53.22
            SRoBERTa-base            | 71.54 72.49 70.80 78.74 73.69 77.77 74.46 74.21
            SRoBERTa-base-whitening  | 70.46 77.07 74.46 81.64 76.43 79.49 76.65 76.60
            SimCSE-cls RoBERTa-base  | 76.53 85.21 80.95 86.03 82.57 85.83 80.50 82.52
            SimCSE-avg RoBERTa-base  | 75.75 85.10 80.85 85.95 83.33 85.55 79.41 82.28
            CLRCMD RoBERTa-base      | 75.68 85.76 80.92 86.58 83.48 85.89 81.01 82.76
            """,
            "RoBERTa-base",
        ),
        (
            f"SimCSE and CLRCMD rows trained on {_SIMCSE_DATA}, Adam 5e-5, linear decay, fp16, batch 128, temperature "
            "0.05, best STS-b dev of evaluations every 250 steps, 4 seeds",
            "all pairs of a year together ('all'), text as SentEval prepares it (Moses tokens, lower case)",
        ),
    ),
    PublishedTable(
        "clrcmd-table2",
        "Interpretable STS: which chunk goes with which, alignment F1",
        f"{CLRCMD}, section 4.3",
        ("images", "headlines"),
        "F1 x 100",
        _rows(
            """
            BERT-base avg           | 82.45 85.98
            BERT-base RCMD          | 83.00 88.25
            SimCSE-avg BERT-base    | 82.98 85.80
            CLRCMD BERT-base        | 87.25 90.55
            RoBERTa-base avg        | 61.68 52.01
            RoBERTa-base RCMD       | 82.44 88.92
            SimCSE-avg RoBERTa-base | 73.66 77.5
            CLRCMD RoBERTa-base     | 84.93 88.45
            """
        ),
        ("SemEval-2016 task 2, test, gold chunks; contributions summed to chunks, mutual maximum; official scorer",),
    ),
    PublishedTable(
        "clrcmd-table3",
        "GPU memory of a training step by batch size",
        f"{CLRCMD}, section 4.5",
        ("B = 16", "B = 32", "B = 64", "B = 128"),
        "GB",
        _rows(
            """
            dense  | 7.5 22.2 - -
            sparse | 4.6 6.1 10.6 25.8
            """
        ),
        ("BERT-base with its activations, fp16, one V100; a dash is out of memory",),
        digits=1,
    ),
    PublishedTable(
        "clrcmd-figure3",
        "Seconds for 512 pairs by length",
        f"{CLRCMD}, section 4.5",
        ("8", "16", "32", "48", "64", "96", "128"),
        "seconds",
        (),
        (
            "512 pairs, lengths 8 to 128, mean of 10 runs; the figure shows curves, without numbers: RCMD takes about "
            "as long as average pooling",
            "98 % of the sentences of STS13 have at most 48 tokens",
        ),
        digits=2,
    ),
)

TABLES: Mapping[str, PublishedTable] = {table.name: table for table in (*_SBERT, *_CLRCMD)}
"""Every table by its name, Sentence-BERT's first."""
