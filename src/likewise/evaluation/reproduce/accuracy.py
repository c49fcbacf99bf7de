"""The tables of how good a model is, measured: each function gives rows and notes as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from likewise.backbone import read_config
from likewise.data import (
    ArgumentPair,
    BinaryPair,
    LabelledText,
    ScoredPair,
    read_arguments,
    read_articles,
    read_classification,
    read_ists,
    read_mrpc,
    read_sick,
    read_sts,
    read_stsb,
    section_triplets,
)
from likewise.evaluation.arguments import cross_topic, cross_validate, evaluate_arguments, folds, ridge
from likewise.evaluation.baselines import TfIdf
from likewise.evaluation.ists import evaluate_ists
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.papers import TABLES, PublishedRow
from likewise.evaluation.reproduce.result import OurRow, Request
from likewise.evaluation.reproduce.systems import HAS_TORCH, about, about_words, derived, label, with_words
from likewise.evaluation.senteval import TASKS, Folds, evaluate_classification, evaluate_paraphrases
from likewise.evaluation.sts import AVERAGE, correlate, evaluate_sts
from likewise.evaluation.triplets import evaluate_triplets
from likewise.model import Model

__all__ = [
    "clrcmd_table1",
    "clrcmd_table2",
    "sbert_table1",
    "sbert_table2",
    "sbert_table3",
    "sbert_table4",
    "sbert_table5",
    "sbert_table6",
]

Found = Iterator[OurRow | str]
"""Rows, and notes among them."""

_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_LEAK = (
    "STS-b train holds many pairs of STS12-16: a model trained on it is not to be read as unseen in those columns "
    "(nor on iSTS)"
)


def sbert_table1(request: Request) -> Found:
    """STS, cosine, text as released."""
    tasks = _sts(request, "raw")
    for model in request.models:
        if not model.pooled:
            yield f"{label(model)} has no pooled vectors, and this table is about them"
            continue
        yield from _sts_rows(model, tasks, {"cosine": (label(model), _beside(model, "sbert-table1"))})
        yield about(model)
    for name, baseline in with_words(request, _texts(tasks)):
        beside = TABLES["sbert-table1"].row(name)
        yield from _sts_rows(baseline, tasks, {"cosine": (f"{name} (ours)", beside)})
    yield from about_words(request)
    yield _LEAK


def sbert_table2(request: Request) -> Found:
    """STS benchmark, test."""
    pairs = request.some(read_stsb(request.folder(), "test"), 60)
    for model in request.models:
        beside = TABLES["sbert-table2"].row("SBERT-base", "trained on STS-b")
        measures = evaluate_sts(model, {"STS-b": {"all": pairs}}, [_compared(model)], n_resamples=0)
        yield _row(f"{label(model)}, {_compared(model)}", measures, [("STS-b", "all", "spearman")], beside)
        yield about(model)
    for scorer in request.cross_encoders:
        scores = scorer.score([pair.a for pair in pairs], [pair.b for pair in pairs])
        found = correlate(np.asarray(scores), np.asarray([pair.gold for pair in pairs]))
        beside = TABLES["sbert-table2"].row("BERT-base", "trained on STS-b")
        name = f"{scorer.name.rpartition('/')[2]}, cross-encoder"
        yield OurRow(name, (found.spearman,), beside, (found.reason,) if found.reason else ())
    yield (
        "a row can be read beside the paper's only if its model was trained on STS-b train; the paper averages 10 "
        "seeds, each of ours is one model"
    )


def sbert_table3(request: Request) -> Found:
    """Arguments: frozen models, and ridge regression on their vectors within and across topics."""
    table = TABLES["sbert-table3"]
    corpora = _corpora(request)
    models = list(request.models)
    for corpus, pairs in corpora.items():
        texts = [text for pair in pairs for text in (pair.a, pair.b)]
        systems: list[tuple[str, Embedder]] = [("tf-idf", TfIdf(texts)), *with_words(request, texts)]
        for name, baseline in systems:
            yield _frozen(f"{name} (ours), {corpus}", baseline, pairs, table.row(name, "unsupervised"))
        for model in models:
            yield _frozen(f"{label(model)} frozen, {corpus}", model, pairs, None, _compared(model))
            if not model.pooled:
                continue
            fit = ridge(model)
            for kind, splits in (
                ("10-fold", folds(pairs, 10 if request.size != "smoke" else 2)),
                ("cross-topic", cross_topic(pairs)[: 2 if request.size == "smoke" else None]),
            ):
                measures = cross_validate(fit, pairs, splits, task="AFS", model=model.name)
                beside = table.row("SVR (Misra et al.)", kind) if kind == "10-fold" else None
                places = [("AFS", "all", metric) for metric in ("pearson", "spearman")]
                yield _row(f"{label(model)} + ridge {kind}, {corpus}", measures, places, beside)
    yield from map(about, models)
    yield from about_words(request)
    if "AFS" not in corpora:
        yield (
            f"{' and '.join(corpora)} stand in for the AFS corpus, which was not in afs/: other topics, other "
            "annotators, other scales; only the order of systems can be compared"
        )
    yield (
        "frozen: one correlation over the pairs of all topics; ridge: the model is not trained, a ridge regression on "
        "|u - v| and u * v of its vectors is"
    )


def sbert_table4(request: Request) -> Found:
    """Triplets of Wikipedia sections."""
    articles = [
        article
        for part in ("test", "valid")
        for article in read_articles(request.folder() / "wikitext2" / f"{part}.txt")
    ]
    triplets = request.some(section_triplets(articles), 60)
    for model in request.models:
        names = ("cosine", "rcmd") if model.pooled else ("rcmd",)
        for name in names:
            measures = evaluate_triplets(model, triplets, [name], n_resamples=0)
            beside = TABLES["sbert-table4"].row("SBERT-base") if name == "cosine" else None
            accuracy = [one for one in measures if one.metric == "accuracy"][:1]
            yield OurRow(f"{label(model)} {name}, frozen", (accuracy[0].value,), beside, _reasons(accuracy))
        yield about(model)
    yield (
        f"{len(triplets):,} triplets of WikiText-2 articles stand in for the 222,957 of Dor et al.; the paper's rows "
        "are trained on triplets of sections"
    )


def sbert_table5(request: Request) -> Found:
    """SentEval."""
    folder = request.folder()
    tasks: dict[str, dict[str, Sequence[LabelledText]]] = {
        task: {split: request.some(rows, 40) for split, rows in read_classification(folder, task).items()}
        for task in TASKS[:-1]
    }
    paraphrases = [request.some(read_mrpc(folder, split), 60) for split in ("train", "test")]
    for model in request.models:
        if model.pooled:
            yield _senteval(request, model, tasks, paraphrases, (label(model), _beside(model, "sbert-table5")))
            yield about(model)
        else:
            yield f"{label(model)} has no pooled vectors, which are the features here"
    texts = [one.text for splits in tasks.values() for split in splits.values() for one in split]
    texts += [text for pairs in paraphrases for pair in pairs for text in (pair.a, pair.b)]
    for name, baseline in with_words(request, texts):
        yield _senteval(request, baseline, tasks, paraphrases, (f"{name} (ours)", TABLES["sbert-table5"].row(name)))
    yield from about_words(request)


def sbert_table6(request: Request) -> Found:
    """STS benchmark, dev, of models trained with one pooling or another."""
    pairs = request.some(read_stsb(request.folder(), "dev"), 60)
    for model in request.models:
        measures = evaluate_sts(model, {"STS-b": {"all": pairs}}, [_compared(model)], n_resamples=0)
        found = _row(label(model), measures, [("STS-b", "all", "spearman")], None)
        pooling = model.encoder.head.pooling
        modes = "+".join(pooling.modes).upper() if pooling else "no pooling"
        yield OurRow(f"{found.system} ({modes})", (None, None, *found.values), None, found.reasons)
        yield about(model)
    yield "what a given model was trained on is not known here, so its number stands in a column of its own"


def clrcmd_table1(request: Request) -> Found:
    """STS: average pooling, RCMD, whitening and flow of the same model; text as SentEval prepares it."""
    tasks = _sts(request, "moses")
    for model in request.models:
        wanted = {"rcmd": (label(model, "RCMD"), _beside(model, "clrcmd-table1", rcmd=True))}
        if model.pooled:
            wanted = {"cosine": (label(model, "avg"), _beside(model, "clrcmd-table1")), **wanted}
        yield from _sts_rows(model, tasks, wanted)
        if model.pooled:
            for what, mapped in derived(model, _texts(tasks), request.size):
                beside = TABLES["clrcmd-table1"].row(f"SBERT-base-{what}", "BERT-base")
                yield from _sts_rows(mapped, tasks, {"cosine": (f"{label(model)}-{what}", beside)})
        yield about(model)
    if not HAS_TORCH:
        yield "no row of BERT-flow: it needs torch, which comes with likewise[train]"
    yield "whitening and flow are fit here on the unlabelled sentences of the table, those of the paper on theirs"
    yield "text as SentEval prepares it: Moses tokens, lower case"
    yield _LEAK


def clrcmd_table2(request: Request) -> Found:
    """Interpretable STS: alignment F1 of average pooling and of RCMD, both ways of choosing."""
    sets = {name: request.some(read_ists(request.folder(), name), 40) for name in ("images", "headlines")}
    for model in request.models:
        names = ["cosine", "rcmd"] if model.pooled else ["rcmd"]
        measures = [
            measure for subset, pairs in sets.items() for measure in evaluate_ists(model, pairs, names, subset=subset)
        ]
        for name in names:
            own = [one for one in measures if one.similarity == name]
            what = "avg" if name == "cosine" else "RCMD"
            beside = _beside(model, "clrcmd-table2", rcmd=name == "rcmd")
            for metric, how in (("alignment_f1", ""), ("alignment_f1_lawful", ", law-keeping")):
                places = [("iSTS", subset, metric) for subset in sets]
                row = _row(f"{label(model)} {what}{how}", own, places, None if how else beside)
                values = tuple(None if value is None else 100 * value for value in row.values)
                yield OurRow(row.system, values, row.beside, row.reasons)
        yield about(model)
    yield (
        "law-keeping: special tokens take part as rows of their own and of exact ties the first is chosen, so that "
        "what is shown adds up to the score; the paper cuts them off and chooses all"
    )


def _compared(model: Model) -> str:
    return "cosine" if model.pooled else "rcmd"


def _beside(model: Model, table: str, *, rcmd: bool = False) -> PublishedRow:
    """The published row whose setting is nearest to the model's."""
    roberta = "roberta" in str(read_config(model.folder).get("model_type"))
    base = "RoBERTa-base" if roberta else "BERT-base"
    plain = not (model.folder / "modules.json").exists()
    if table == "clrcmd-table1":
        name = f"CLRCMD {base}" if rcmd else f"{base} avg" if plain else f"SimCSE-avg {base}"
        return TABLES[table].row(name, base)
    if table == "clrcmd-table2":
        plain_name = f"{base} {'RCMD' if rcmd else 'avg'}"
        return TABLES[table].row(plain_name if plain else f"{'CLRCMD' if rcmd else 'SimCSE-avg'} {base}")
    if plain:
        pooling = model.encoder.head.pooling
        return TABLES[table].row("BERT CLS" if pooling and pooling.modes == ("cls",) else "Avg. BERT")
    return TABLES[table].row("SRoBERTa-NLI-base" if roberta and table == "sbert-table1" else "SBERT-NLI-base")


def _sts(request: Request, text: str) -> dict[str, dict[str, Sequence[ScoredPair]]]:
    folder = request.folder()
    tasks: dict[str, Mapping[str, Sequence[ScoredPair]]] = {year: read_sts(folder, year, text=text) for year in _YEARS}
    tasks |= {"STS-b": {"all": read_stsb(folder, "test")}, "SICK-R": {"all": read_sick(folder, "test")}}
    return {
        task: {source: request.some(pairs, 20) for source, pairs in sources.items()} for task, sources in tasks.items()
    }


def _texts(tasks: Mapping[str, Mapping[str, Sequence[ScoredPair]]]) -> list[str]:
    pairs = [pair for sources in tasks.values() for source in sources.values() for pair in source]
    return list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))


def _sts_rows(
    model: Embedder,
    tasks: Mapping[str, Mapping[str, Sequence[ScoredPair]]],
    wanted: Mapping[str, tuple[str, PublishedRow | None]],
) -> Iterator[OurRow]:
    measures = evaluate_sts(model, tasks, list(wanted), n_resamples=0)
    for similarity, (name, beside) in wanted.items():
        own = [one for one in measures if one.similarity == similarity]
        yield _row(name, own, [(task, "all", "spearman") for task in (*tasks, AVERAGE)], beside)


def _row(
    system: str, measures: Sequence[Measure], places: Sequence[tuple[str, str, str]], beside: PublishedRow | None
) -> OurRow:
    """The measures of (task, subset, metric) side by side."""
    found = {(one.task, one.subset, one.metric): one for one in measures}
    chosen = [found[place] for place in places]
    return OurRow(system, tuple(one.value for one in chosen), beside, _reasons(chosen))


def _reasons(measures: Sequence[Measure]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.reason for one in measures if one.reason))


def _corpora(request: Request) -> dict[str, Sequence[ArgumentPair]]:
    """The AFS corpus where the folder has it, else what stands in for it."""
    folder = request.folder()
    if (folder / "afs").is_dir():
        return {"AFS": request.some(read_arguments(folder / "afs"), 200)}
    paths = {
        "BWS": folder / "bws_argument_similarity" / "BWS_corpus.csv",
        "UKP aspect": folder / "ukp_aspect" / "UKP_ASPECT.tsv",
    }
    return {name: request.some(read_arguments(path), 200) for name, path in paths.items()}


def _frozen(
    system: str,
    model: Embedder,
    pairs: Sequence[ArgumentPair],
    beside: PublishedRow | None,
    similarity: str = "cosine",
) -> OurRow:
    measures = evaluate_arguments(model, pairs, [similarity], n_resamples=0)
    return _row(system, measures, [("AFS", "all", metric) for metric in ("pearson", "spearman")], beside)


def _senteval(
    request: Request,
    model: Embedder,
    tasks: Mapping[str, Mapping[str, Sequence[LabelledText]]],
    paraphrases: Sequence[Sequence[BinaryPair]],
    name: tuple[str, PublishedRow],
) -> OurRow:
    strategy = Folds(2, strengths=(1.0,)) if request.size == "smoke" else Folds()
    measures = []
    for task, splits in tasks.items():
        measures += evaluate_classification(model, splits, task=task, folds=strategy)
    train, test = paraphrases
    measures += [one for one in evaluate_paraphrases(model, train, test, folds=strategy) if one.metric == "accuracy"]
    values = [one.value for one in measures]
    known = [value for value in values if value is not None]
    average = float(np.mean(known)) if len(known) == len(values) else None
    return OurRow(name[0], (*values, average), name[1], _reasons(measures))
