"""mteb itself runs our models, on tasks built here from local data."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from likewise import Model
from likewise.data import read_stsb
from likewise.errors import InputError
from likewise.evaluation import correlate
from likewise.evaluation.mteb import MtebModel
from likewise.similarity import by_name

mteb = pytest.importorskip("mteb")

from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData  # noqa: E402
from mteb.abstasks.sts import AbsTaskSTS  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402

DOCUMENTS = [
    "A plane is taking off.",
    "The cats don't like the naïve dog's café.",
    "A man plays a large flute, and a woman is playing the guitar.",
    "Three children are running through the green park; it isn't raining.",
]
QUERIES = ["An air plane is taking off!", "Children running in a park"]


def metadata(name, kind, score):
    return TaskMetadata(
        name=name,
        type=kind,
        main_score=score,
        dataset={"path": "local", "revision": "1"},
        description="Built from local data.",
        reference=None,
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        date=None,
        domains=None,
        task_subtypes=None,
        license=None,
        annotations_creators=None,
        dialect=None,
        sample_creation=None,
        bibtex_citation=None,
    )


def sts_task(pairs):
    class LocalSTS(AbsTaskSTS):
        metadata = metadata_of_sts
        min_score, max_score = 0, 5

        def load_data(self, num_proc=None, **options):
            rows = [{"sentence1": pair.a, "sentence2": pair.b, "score": pair.gold} for pair in pairs]
            self.dataset = DatasetDict({"test": Dataset.from_list(rows)})
            self.data_loaded = True

    return LocalSTS()


def retrieval_task():
    class LocalRetrieval(AbsTaskRetrieval):
        metadata = metadata_of_retrieval

        def load_data(self, num_proc=None, **options):
            split = RetrievalSplitData(
                queries=Dataset.from_list([{"id": f"q{i}", "text": text} for i, text in enumerate(QUERIES)]),
                corpus=Dataset.from_list(
                    [{"id": f"d{i}", "text": text, "title": ""} for i, text in enumerate(DOCUMENTS)]
                ),
                relevant_docs={"q0": {"d0": 1}, "q1": {"d3": 1}},
                top_ranked=None,
            )
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return LocalRetrieval()


metadata_of_sts = metadata("LocalSTS", "STS", "spearman")
metadata_of_retrieval = metadata("LocalRetrieval", "Retrieval", "ndcg_at_10")


def run(model, task):
    results = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return results, results.task_results[0].scores["test"][0]


@pytest.mark.parametrize("similarity", ["cosine", "rcmd", "transport", "manhattan"])
def test_sts_scores_are_ours(tiny, shared, similarity):
    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")[:60]
    results, scores = run(MtebModel(tiny, similarity=similarity), sts_task(pairs))
    a, b = (tiny.embed([getattr(pair, side) for pair in pairs], on_truncate="ignore") for side in "ab")
    gold = np.asarray([pair.gold for pair in pairs])
    for key, name in (("spearman", similarity), ("cosine_spearman", "cosine")):
        expected = correlate(by_name(name).score(a, b), gold).spearman
        assert 100 * scores[key] == pytest.approx(expected, abs=0.01)
    assert results.model_name == f"likewise/{tiny.name}-{similarity}"


@pytest.mark.parametrize("similarity", ["cosine", "rcmd"])
def test_retrieval_ranks_as_we_do(tiny, similarity):
    _, scores = run(MtebModel(tiny, similarity=similarity), retrieval_task())
    ranks = np.argsort(-by_name(similarity).matrix(tiny.embed(QUERIES), tiny.embed(DOCUMENTS)), axis=1)
    places = [ranks[0].tolist().index(0), ranks[1].tolist().index(3)]
    assert scores["ndcg_at_10"] == pytest.approx(np.mean([1 / np.log2(2 + place) for place in places]), abs=1e-4)


def call(model, texts, **options):
    return model.encode([{"text": texts}], task_metadata=None, hf_split="test", hf_subset="default", **options)


def test_prompts_that_the_model_stores_are_used(sentence_folder):
    model = Model.load(sentence_folder(prompts={"query": "query: ", "document": "passage: "}))
    adapter = MtebModel(model, similarity="rcmd")
    queries = call(adapter, QUERIES, prompt_type=mteb.types.PromptType.query)
    documents = call(adapter, QUERIES, prompt_type=mteb.types.PromptType.document)
    assert np.allclose(queries, model.encode(QUERIES, prompt_name="query"))
    assert not np.allclose(queries, documents, atol=1e-3)
    rcmd = by_name("rcmd")
    expected = rcmd.score(model.embed(QUERIES, prompt_name="query"), model.embed(QUERIES, prompt_name="document"))
    assert np.allclose(adapter.similarity_pairwise(queries, documents), expected, atol=1e-5)


def test_what_it_cannot_do(tiny, checkpoint):
    adapter = MtebModel(tiny, similarity="rcmd")
    vectors = call(adapter, QUERIES)
    assert adapter.similarity(vectors[:0], vectors).shape == (0, 2)
    with pytest.raises(InputError, match="text of a vector is not known"):
        adapter.similarity(vectors + 1, vectors)
    with pytest.raises(InputError, match="precision 'int8'"):
        call(adapter, QUERIES, precision="int8")
    with pytest.raises(InputError, match="a batch holds image and no text"):
        adapter.encode([{"image": []}], task_metadata=None, hf_split="test", hf_subset="default")
    with pytest.raises(InputError, match="token-level model"):
        MtebModel(Model.load(checkpoint(), pooling="none"))
    with pytest.raises(InputError, match="no organization"):
        MtebModel(tiny, name="mine")
