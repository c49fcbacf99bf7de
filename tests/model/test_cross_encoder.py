"""The cross-encoder beside transformers and sentence-transformers, on tiny seeded models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder as PeerCrossEncoder
from tokenizers import Tokenizer, processors
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from likewise import CrossEncoder
from likewise.errors import InputError, InputTypeError, ModelError, TruncationWarning
from tests.conftest import ARCHITECTURES, CORPUS

A = [*CORPUS[:3], "A man plays a large flute.", "It is green."]
B = [CORPUS[1], CORPUS[0], "", "A woman is playing the guitar.", "Is the park green?"]

INPUTS = ["input_ids", "token_type_ids", "attention_mask"]
CLOSE = {"atol": 2e-6, "rtol": 1e-5}

Classifier = Callable[..., Path]


@pytest.fixture(scope="module")
def classifier(
    checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory, edit_json: Callable[..., None]
) -> Classifier:
    """Architecture, number of labels → a sequence classifier as transformers writes it; BERT with token types."""
    made: dict[tuple[str, int], Path] = {}

    def folder(name: str = "bert", n_labels: int = 1) -> Path:
        if (name, n_labels) not in made:
            target = made[name, n_labels] = tmp_path_factory.mktemp(f"{name}-{n_labels}")
            torch.manual_seed(n_labels)
            module = AutoModelForSequenceClassification.from_pretrained(checkpoint(name), num_labels=n_labels)
            for part in module.children():  # larger than the initialisation, so that the logits differ
                for key, value in part.named_parameters():
                    if "classifier" in key or "out_proj" in key or "dense" in key:
                        value.data.mul_(2)
            module.save_pretrained(target)
            AutoTokenizer.from_pretrained(checkpoint(name)).save_pretrained(target)
            if name == "bert":
                _with_types(target / "tokenizer.json")
                edit_json(target / "tokenizer_config.json", model_input_names=INPUTS)
        return made[name, n_labels]

    return folder


def _with_types(path: Path) -> None:
    fast = Tokenizer.from_file(str(path))
    ends = [(sign, fast.token_to_id(sign)) for sign in ("[CLS]", "[SEP]")]
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    fast.save(str(path))


def _theirs(folder: Path, a: list[str], b: list[str], **options: Any) -> np.ndarray:
    """Logits by transformers, one pair at a time, so that nothing is padded."""
    module = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = []
    for left, right in zip(a, b, strict=True):
        given = tokenizer([left], [right], return_tensors="pt", truncation=True, **options)
        with torch.inference_mode():
            rows.append(module(**given).logits[0].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_equal_those_of_transformers_before_and_after_a_save(
    name: str, classifier: Classifier, tmp_path: Path
) -> None:
    folder = classifier(name, 3)
    model = CrossEncoder.load(folder, device="cpu")
    wanted = _theirs(folder, A, B)
    assert np.ptp(wanted, axis=0).min() > 1e-3, "the texts must make a difference"
    np.testing.assert_allclose(model.logits(A, B), wanted, **CLOSE)
    model.save(tmp_path / "saved")
    np.testing.assert_allclose(_theirs(tmp_path / "saved", A, B), wanted, **CLOSE)
    again = CrossEncoder.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(again.logits(A, B), model.logits(A, B))
    assert (again.labels, again.activation, again.max_length) == (model.labels, model.activation, model.max_length)


def test_token_types_make_a_difference(classifier: Classifier) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    pairs = model.tokenize(A, B)
    assert set(pairs.types.tolist()) == {0, 1}
    with torch.inference_mode():
        ids, types = torch.from_numpy(pairs.ids), torch.from_numpy(pairs.types)
        with_types, without = (model.module(ids, some, pairs.offsets) for some in (types, torch.zeros_like(types)))
    np.testing.assert_allclose(with_types, model.logits(A, B), **CLOSE)
    assert (with_types - without).abs().max() > 1e-2


@pytest.mark.parametrize(("n_labels", "activation"), [(1, "sigmoid"), (1, "identity"), (3, "softmax")])
def test_scores_equal_those_of_sentence_transformers(
    n_labels: int, activation: str, classifier: Classifier, tmp_path: Path
) -> None:
    model = CrossEncoder.load(classifier("bert", n_labels), device="cpu", activation=activation)
    model.save(tmp_path / "saved")
    peer = PeerCrossEncoder(str(tmp_path / "saved"), device="cpu")
    theirs = peer.predict(list(zip(A, B, strict=True)), apply_softmax=n_labels > 1, show_progress_bar=False)
    np.testing.assert_allclose(model.predict(A, B), np.reshape(theirs, (len(A), -1)), **CLOSE)
    assert CrossEncoder.load(tmp_path / "saved", device="cpu").activation == activation


@pytest.mark.parametrize("activation", ["Sigmoid", "Identity"])
def test_a_folder_of_sentence_transformers(activation: str, classifier: Classifier, tmp_path: Path) -> None:
    peer = PeerCrossEncoder(str(classifier("roberta")), device="cpu", activation_fn=getattr(torch.nn, activation)())
    peer.save(str(tmp_path / "peer"), create_model_card=False)
    model = CrossEncoder.load(tmp_path / "peer", device="cpu")
    assert model.activation == activation.lower()
    theirs = peer.predict(list(zip(A, B, strict=True)), show_progress_bar=False)
    np.testing.assert_allclose(model.score(A, B), theirs, **CLOSE)
    ranked = peer.rank(A[0], CORPUS)
    assert [one.index for one in model.rank(A[0], CORPUS)] == [row["corpus_id"] for row in ranked]


def test_a_pair_does_not_depend_on_its_batch(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    a, b = A * 30, B * 30
    together = model.score(a, b)
    for row in (0, 2, 149):
        assert model.score(a[row], b[row]) == pytest.approx(together[row], abs=1e-6)
    monkeypatch.setattr("likewise.model.cross_encoder._TOKENS_A_CALL", 40)
    monkeypatch.setattr("likewise.model.cross_encoder.WINDOW", 7)
    np.testing.assert_allclose(model.score(a, b), together, **CLOSE)


def test_ranking(classifier: Classifier) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    documents = [*CORPUS, CORPUS[3]]
    scores = model.score([A[0]] * len(documents), documents)
    ranked = model.rank(A[0], documents)
    assert sorted(one.index for one in ranked) == list(range(len(documents)))
    assert [one.score for one in ranked] == sorted(scores.tolist(), reverse=True)
    assert all(one.text == documents[one.index] for one in ranked)
    order = [one.index for one in ranked]
    assert order.index(3) + 1 == order.index(9), "equal documents stay in the order given"
    assert model.rank(A[0], documents, top_k=2) == ranked[:2]
    assert model.rank(A[0], documents, top_k=99) == ranked
    assert model.rank(A[0], []) == []


def test_a_sigmoid_at_its_end_does_not_blur_the_ranking(classifier: Classifier) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    plain = [one.index for one in model.rank(A[0], CORPUS)]
    with torch.no_grad():
        model.module.out.bias.add_(60)
    ranked = model.rank(A[0], CORPUS)
    assert {one.score for one in ranked} == {1.0}
    logits = model.logits([A[0]] * len(CORPUS), CORPUS)[:, 0]
    assert len(set(logits.tolist())) > 1
    assert ranked[0].index == plain[0]


def test_nothing_to_score(classifier: Classifier) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    assert model.score([], []).shape == (0,)
    assert CrossEncoder.load(classifier("bert", 3), device="cpu").predict([], []).shape == (0, 3)
    assert isinstance(model.score(A[0], B[0]), float)
    assert 0 < model.score("", "") < 1


def test_long_pairs_are_cut_with_a_warning(classifier: Classifier) -> None:
    folder = classifier("bert")
    model = CrossEncoder.load(folder, device="cpu", max_length=20)
    long = [" ".join(CORPUS), "A plane."]
    with pytest.warns(TruncationWarning, match="1 of 2 pairs are longer than the 20 tokens"):
        found = model.logits(long, ["A man plays a large flute.", "A cat."])
    np.testing.assert_allclose(
        found, _theirs(folder, long, ["A man plays a large flute.", "A cat."], max_length=20), **CLOSE
    )


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_plain_checkpoint_gets_a_seeded_classifier(
    name: str, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    first, same, other = (CrossEncoder.load(checkpoint(name), n_labels=1, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.logits(A, B), same.logits(A, B))
    assert np.abs(first.logits(A, B) - other.logits(A, B)).max() > 1e-4
    assert first.activation == "sigmoid"
    named = CrossEncoder.load(checkpoint(name), labels=["no", "perhaps", "yes"])
    assert (named.n_labels, named.activation) == (3, "softmax")
    np.testing.assert_allclose(named.predict(A, B).sum(1), 1, atol=1e-6)
    named.save(tmp_path / "saved")
    assert CrossEncoder.load(tmp_path / "saved").labels == ("no", "perhaps", "yes")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "perhaps", "2": "yes"}


def test_a_sentence_model_becomes_a_cross_encoder(mean_folder: Path, tmp_path: Path) -> None:
    model = CrossEncoder.load(mean_folder, n_labels=1)
    model.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "modules.json").exists()
    np.testing.assert_array_equal(CrossEncoder.load(tmp_path / "saved").score(A, B), model.score(A, B))


def test_a_tokenizer_that_gives_no_types(classifier: Classifier, tmp_path: Path, edit_json: Any) -> None:
    for path in classifier("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    edit_json(tmp_path / "tokenizer_config.json", model_input_names=["input_ids", "attention_mask"])
    model = CrossEncoder.load(tmp_path, device="cpu")
    assert set(model.tokenize(A, B).types.tolist()) == {0}
    np.testing.assert_allclose(model.logits(A, B), _theirs(tmp_path, A, B), **CLOSE)


def test_a_classifier_of_another_size_is_replaced(classifier: Classifier) -> None:
    stored, new = (CrossEncoder.load(classifier("bert", 3), n_labels=n) for n in (None, 1))
    assert (stored.module.untrained, new.module.untrained) == (False, True)
    assert (new.n_labels, new.labels, new.activation) == (1, ("LABEL_0",), "sigmoid")
    assert torch.equal(stored.module.dense.weight, new.module.dense.weight)


def test_dropout_is_off_when_it_scores(classifier: Classifier) -> None:
    for name in ("bert", "roberta", "distilbert"):
        model = CrossEncoder.load(classifier(name), device="cpu")
        still = model.logits(A, B)
        model.module.train()
        np.testing.assert_array_equal(model.logits(A, B), still)
        assert model.module.training
        pairs = model.tokenize(A, B)
        noisy = model.module(torch.from_numpy(pairs.ids), torch.from_numpy(pairs.types), pairs.offsets)
        assert (noisy.detach() - torch.from_numpy(still)).abs().max() > 1e-3


def test_bad_input(classifier: Classifier, checkpoint: Callable[[str], Path], tmp_path: Path, edit_json: Any) -> None:
    model = CrossEncoder.load(classifier("bert"), device="cpu")
    with pytest.raises(InputError, match="2 texts cannot be paired with 1"):
        model.score(A[:2], B[:1])
    with pytest.raises(InputTypeError, match="text 1 is None"):
        model.score([A[0], None], B[:2])
    with pytest.raises(InputError, match="top_k is 0"):
        model.rank(A[0], B, top_k=0)
    several = CrossEncoder.load(classifier("bert", 3), device="cpu")
    for ask in (lambda: several.score(A, B), lambda: several.rank(A[0], B)):
        with pytest.raises(InputError, match=r"tells 3 classes apart and gives no score; use predict\(\)"):
            ask()
    with pytest.raises(ModelError, match=r"has no classifier; say how large a new one is to be \(n_labels=1"):
        CrossEncoder.load(checkpoint("bert"))
    with pytest.raises(InputError, match="cross-encoder with 0 labels"):
        CrossEncoder.load(checkpoint("bert"), n_labels=0)
    with pytest.raises(InputError, match="2 names for 3 labels"):
        CrossEncoder.load(checkpoint("bert"), n_labels=3, labels=["no", "yes"])
    with pytest.raises(InputError, match="activation 'softmax' for 1 labels; known are sigmoid, identity"):
        CrossEncoder.load(classifier("bert"), activation="softmax")
    with pytest.raises(InputError, match="max_length 3 leaves no room beside the 3 special tokens of a pair"):
        CrossEncoder.load(classifier("bert"), max_length=3)
    for path in classifier("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    edit_json(tmp_path / "config.json", sentence_transformers={"activation_fn": "torch.nn.modules.activation.Mish"})
    with pytest.raises(ModelError, match=r"by torch.nn.modules.activation.Mish, which is not known; pass activation="):
        CrossEncoder.load(tmp_path)
    assert CrossEncoder.load(tmp_path, activation="identity").activation == "identity"
    edit_json(tmp_path / "config.json", model_type="albert")
    with pytest.raises(ModelError, match="cannot be a cross-encoder here: model type 'albert'"):
        CrossEncoder.load(tmp_path)


@pytest.mark.model
def test_the_tokenizer_of_a_real_model(minilm: Any, tmp_path: Path) -> None:
    model = CrossEncoder.load(minilm.folder, n_labels=1, device="cpu")
    pairs = model.tokenize(A[:1], B[:1])
    assert pairs.ids.tolist() == AutoTokenizer.from_pretrained(minilm.folder)(A[:1], B[:1])["input_ids"][0]
    assert pairs.types.tolist() == [0] * 8 + [1] * 8
    model.save(tmp_path / "saved")
    np.testing.assert_allclose(_theirs(tmp_path / "saved", A, B), model.logits(A, B), atol=1e-5)
