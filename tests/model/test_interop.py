"""Folders that sentence-transformers wrote give its vectors here, and ours give the same vectors there."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import manual_seed, nn

from likewise import Model
from likewise.errors import InputError
from likewise.pooling import MODES

TEXTS = [
    "A plane is taking off.",
    "",
    "dog",
    "The cats don't like the naïve dog's café, it isn't raining; zzqx!",
    "SIMILARITY of Sentences, WITH UPPER CASE.",
    "Three children are running through the green park and a man plays a large flute. " * 6,
    "東京は大きい。 El niño 👩‍👩‍👧 ok",
]
"""Short, empty, upper case, unknown words, other scripts, and longer than any tiny model reads."""

OTHERS = ("roberta", "mpnet", "distilbert", "electra", "xlm-roberta")
FEATURES = "token_embeddings"


def _ours(model: Model, **options: Any) -> np.ndarray:
    return np.asarray(model.encode(TEXTS, on_truncate="ignore", **options))


def _theirs(folder: Path, **options: Any) -> np.ndarray:
    return np.asarray(SentenceTransformer(str(folder), device="cpu").encode(TEXTS, **options))


def _assert_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def _assert_both_ways(folder: Path, target: Path, **options: Any) -> Model:
    """Their folder here, and our folder there."""
    model = Model.load(folder)
    expected = _theirs(folder, **options)
    assert np.ptp(expected, axis=0).max() > 0.01
    _assert_close(_ours(model, **options), expected)
    model.save(target)
    _assert_close(_theirs(target, **options), expected)
    return model


def _assert_readings_agree(model: Model, **options: Any) -> None:
    """`embed().pooled()` and `encode()` are two readings of one head."""
    for special_tokens in (True, False):
        if not special_tokens and "cls" in model.encoder.head.require_pooling().modes:
            continue
        embedded = model.embed(TEXTS, on_truncate="ignore", special_tokens=special_tokens, **options)
        _assert_close(embedded.pooled(), _ours(model, special_tokens=special_tokens, **options))


def _dense(into: int, out: int, activation: Any = None, *, seed: int = 5, **options: Any) -> Dense:
    manual_seed(seed)
    return Dense(into, out, activation_function=activation or nn.Identity(), **options)


# ------------------------------------------------------------------------------------------ pooling


@pytest.mark.parametrize("pooling", [*MODES, ("cls", "mean"), ("mean", "cls", "max")], ids=str)
def test_every_pooling(pooling: Any, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    model = _assert_both_ways(sentence_folder("bert", pooling), tmp_path / "ours")
    _assert_readings_agree(model)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("pooling", [*MODES, ("cls", "mean")], ids=str)
def test_every_architecture(name: str, pooling: Any, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = sentence_folder(name, pooling)
    if pooling in ("mean", "cls"):
        _assert_both_ways(folder, tmp_path / "ours")
    else:
        _assert_close(_ours(Model.load(folder)), _theirs(folder))


# -------------------------------------------------------------------------------- behind the pooling

CHAINS: dict[str, Callable[[], Sequence[Any]]] = {
    "normalize": lambda: [Normalize()],
    "dense": lambda: [_dense(32, 16)],
    "dense-no-bias": lambda: [_dense(32, 16, bias=False)],
    "tanh": lambda: [_dense(32, 40, nn.Tanh())],
    "tanh-no-bias": lambda: [_dense(32, 16, nn.Tanh(), bias=False)],
    "relu": lambda: [_dense(32, 16, nn.ReLU())],
    "gelu": lambda: [_dense(32, 16, nn.GELU())],
    "silu": lambda: [_dense(32, 16, nn.SiLU())],
    "residual": lambda: [_dense(32, 32, use_residual=True)],
    "residual-other-size": lambda: [_dense(32, 16, use_residual=True)],
    "dense-normalize": lambda: [_dense(32, 16, nn.Tanh()), Normalize()],
    "normalize-dense": lambda: [Normalize(), _dense(32, 16, nn.GELU())],
    "dense-dense": lambda: [_dense(32, 24, nn.ReLU()), _dense(24, 8, nn.Tanh(), seed=6), Normalize()],
    "normalize-twice": lambda: [Normalize(), _dense(32, 16), Normalize()],
}

UNFOLDABLE: dict[str, Callable[[], Sequence[Any]]] = {
    "sigmoid": lambda: [_dense(32, 16, nn.Sigmoid())],
    "residual-tanh": lambda: [_dense(32, 32, nn.Tanh(), use_residual=True)],
    "residual-gelu-other-size": lambda: [_dense(32, 16, nn.GELU(), use_residual=True), Normalize()],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_every_chain(chain: str, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    model = _assert_both_ways(sentence_folder("bert", "mean", CHAINS[chain]()), tmp_path / "ours")
    _assert_readings_agree(model)


@pytest.mark.parametrize("pooling", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
@pytest.mark.parametrize("chain", ["dense-normalize", "relu", "residual", "normalize-dense"])
def test_chains_behind_other_poolings(chain: str, pooling: str, sentence_folder: Callable[..., Path]) -> None:
    folder = sentence_folder("bert", pooling, CHAINS[chain]())
    model = Model.load(folder)
    _assert_close(_ours(model), _theirs(folder))
    _assert_readings_agree(model)


def test_a_chain_behind_two_poolings(sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = sentence_folder("bert", ("cls", "max"), [_dense(64, 16, nn.Tanh()), Normalize()])
    _assert_readings_agree(_assert_both_ways(folder, tmp_path / "ours"))


@pytest.mark.parametrize("chain", UNFOLDABLE)
def test_a_chain_that_is_no_sum_encodes_but_does_not_embed(
    chain: str, sentence_folder: Callable[..., Path], tmp_path: Path
) -> None:
    model = _assert_both_ways(sentence_folder("bert", "mean", UNFOLDABLE[chain]()), tmp_path / "ours")
    with pytest.raises(InputError, match=r"no sum over tokens.*encode\(\) works"):
        model.embed(TEXTS[:1])


@pytest.mark.parametrize("modules", [[_dense(32, 32, nn.Tanh(), module_input_name=FEATURES)], [Normalize(FEATURES)]])
def test_modules_on_tokens_before_the_pooling(
    modules: list[Any], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    chain = [Transformer(str(checkpoint("bert"))), *modules, Pooling(32, "mean"), Normalize()]
    SentenceTransformer(modules=chain, device="cpu").save(str(tmp_path / "theirs"))
    _assert_readings_agree(_assert_both_ways(tmp_path / "theirs", tmp_path / "ours"))


# --------------------------------------------------------------------- what else changes the numbers


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("pooling", [*MODES, ("cls", "mean")], ids=str)
def test_prompts(pooling: Any, include_prompt: bool, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    prompts = {"query": "query: ", "long": "represent the sentence for retrieval: "}
    folder = sentence_folder("bert", pooling, include_prompt=include_prompt, prompts=prompts)
    model = _assert_both_ways(folder, tmp_path / "ours", prompt_name="long")
    plain = _ours(model)
    _assert_close(plain, _theirs(folder))
    _assert_close(_ours(model, prompt="passage: "), _theirs(folder, prompt="passage: "))
    assert np.abs(plain - _ours(model, prompt_name="query")).max() > 1e-3
    _assert_readings_agree(model, prompt_name="long")


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta"])
def test_a_prompt_is_left_out_of_other_tokenizers(name: str, sentence_folder: Callable[..., Path]) -> None:
    folder = sentence_folder(name, "mean", include_prompt=False, prompts={"query": "query: "})
    _assert_close(_ours(Model.load(folder), prompt_name="query"), _theirs(folder, prompt_name="query"))


def test_the_default_prompt(sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = sentence_folder(prompts={"query": "query: "}, default_prompt_name="query")
    model = _assert_both_ways(folder, tmp_path / "ours")
    np.testing.assert_array_equal(_ours(model), _ours(model, prompt_name="query"))
    assert np.abs(_ours(model) - _ours(model, prompt="")).max() > 1e-3


@pytest.mark.parametrize("max_seq_length", [8, 20])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_maximum_length(name: str, max_seq_length: int, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = sentence_folder(name, transformer={"max_seq_length": max_seq_length})
    model = _assert_both_ways(folder, tmp_path / "ours")
    assert model.max_length == max_seq_length
    assert Model.load(tmp_path / "ours").max_length == max_seq_length


def test_lower_case(sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    cased = sentence_folder("bert-cased")
    folder = sentence_folder("bert-cased", transformer={"do_lower_case": True})
    model = _assert_both_ways(folder, tmp_path / "ours")
    assert np.abs(_ours(model) - _ours(Model.load(cased)))[4].max() > 1e-3


# ------------------------------------------------------------------------------------- other versions

LEGACY_KEYS = {
    "cls": "cls_token",
    "max": "max_tokens",
    "mean": "mean_tokens",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "lasttoken": "lasttoken",
}


def _as_version_2(folder: Path, target: Path, file: str = "sentence_bert_config.json", **transformer: Any) -> Path:
    """The folder as version 2 wrote it: old type names, pooling flags, no keys that came later."""
    shutil.copytree(folder, target)
    entries = json.loads((target / "modules.json").read_text())
    for entry in entries:
        entry["type"] = "sentence_transformers.models." + entry["type"].rpartition(".")[2]
        where = target / entry["path"] / "config.json"
        if entry["type"].endswith("Pooling"):
            config = json.loads(where.read_text())
            modes = config["pooling_mode"]
            modes = [modes] if isinstance(modes, str) else modes
            flags = {f"pooling_mode_{key}": mode in modes for mode, key in LEGACY_KEYS.items()}
            where.write_text(json.dumps({"word_embedding_dimension": 32, **flags}))
        elif entry["type"].endswith("Dense"):
            config = json.loads(where.read_text())
            kept = ("in_features", "out_features", "bias", "activation_function")
            where.write_text(json.dumps({key: config[key] for key in kept}))
        elif entry["type"].endswith("Normalize"):
            where.unlink()
    (target / "modules.json").write_text(json.dumps(entries))
    (target / "sentence_bert_config.json").unlink()
    (target / file).write_text(json.dumps({"max_seq_length": 16, "do_lower_case": False, **transformer}))
    versions = {"sentence_transformers": "2.0.0", "transformers": "4.6.1", "pytorch": "1.8.1"}
    (target / "config_sentence_transformers.json").write_text(json.dumps({"__version__": versions}))
    return target


@pytest.mark.parametrize("pooling", [*MODES, ("cls", "mean")], ids=str)
def test_version_2_folders(pooling: Any, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    width = 64 if isinstance(pooling, tuple) else 32
    newer = sentence_folder("bert", pooling, [_dense(width, 16, nn.Tanh()), Normalize()])
    model = _assert_both_ways(_as_version_2(newer, tmp_path / "old"), tmp_path / "ours")
    assert model.max_length == 16


def test_version_2_lower_case(sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    old = _as_version_2(sentence_folder("bert-cased"), tmp_path / "old", do_lower_case=True)
    model = _assert_both_ways(old, tmp_path / "ours")
    same = model.encode(["A PLANE IS", "a plane is"])
    _assert_close(same[0], same[1])
    reloaded = Model.load(tmp_path / "ours")
    np.testing.assert_array_equal(_ours(model), _ours(reloaded))


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "xlm-roberta"])
def test_version_2_names_of_the_transformer_settings(
    kind: str, sentence_folder: Callable[..., Path], tmp_path: Path
) -> None:
    old = _as_version_2(sentence_folder(kind), tmp_path / "old", file=f"sentence_{kind}_config.json")
    assert _assert_both_ways(old, tmp_path / "ours").max_length == 16


def test_version_6_type_names(mean_folder: Path) -> None:
    types = [entry["type"] for entry in json.loads((mean_folder / "modules.json").read_text())]
    assert types[0] == "sentence_transformers.base.modules.transformer.Transformer"
    assert types[1] == "sentence_transformers.sentence_transformer.modules.pooling.Pooling"


# ------------------------------------------------------------------------------------------ round trip


def _rich(sentence_folder: Callable[..., Path], similarity: str = "dot") -> Path:
    return sentence_folder(
        "bert",
        ("cls", "mean"),
        [_dense(64, 16, nn.GELU()), Normalize()],
        include_prompt=False,
        transformer={"max_seq_length": 24, "do_lower_case": True},
        prompts={"query": "query: ", "document": "passage: "},
        default_prompt_name="document",
        similarity_fn_name=similarity,
    )


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_round_trip_keeps_everything(similarity: str, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    model = Model.load(_rich(sentence_folder, similarity))
    model.save(tmp_path / "once")
    again = Model.load(tmp_path / "once")
    again.save(tmp_path / "twice")
    assert again.prompts == model.prompts == {"query": "query: ", "document": "passage: "}
    assert again.max_length == model.max_length == 24
    assert again.similarity == model.similarity
    assert again.similarity.name == similarity
    assert again.encoder.head.pooling == model.encoder.head.pooling
    assert again.encoder.tokenizer.lower_case == model.encoder.tokenizer.lower_case
    np.testing.assert_array_equal(_ours(again), _ours(model))
    once, twice = (
        {p.relative_to(tmp_path / n): p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()}
        for n in ("once", "twice")
    )
    assert once == twice
    theirs = SentenceTransformer(str(tmp_path / "once"), device="cpu")
    assert theirs.similarity_fn_name == similarity
    assert theirs.default_prompt_name == "document"
    assert theirs.prompts == model.prompts
    assert theirs.max_seq_length == 24


@pytest.mark.parametrize("name", ["bert", "electra", "roberta"])
def test_round_trip_keeps_every_weight(name: str, sentence_folder: Callable[..., Path], tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    folder = sentence_folder(name, "mean", [_dense(32, 16)])
    Model.load(folder).save(tmp_path / "ours")
    for file in ("model.safetensors", "2_Dense/model.safetensors"):
        before, after = load_file(folder / file), load_file(tmp_path / "ours" / file)
        kept = {key: tensor for key, tensor in before.items() if not key.endswith("position_ids")}
        assert kept.keys() == after.keys()
        assert all(np.array_equal(tensor, after[key]) for key, tensor in kept.items())


@pytest.mark.parametrize("similarity", ["rcmd", "transport", "dot"])
def test_round_trip_keeps_our_similarity(similarity: str, mean_folder: Path, tmp_path: Path) -> None:
    model = Model.load(mean_folder, similarity=similarity)
    model.save(tmp_path / "ours")
    again = Model.load(tmp_path / "ours")
    assert again.similarity.name == similarity
    np.testing.assert_array_equal(again.matrix(TEXTS[:4]), model.matrix(TEXTS[:4]))
    _assert_close(_theirs(tmp_path / "ours"), _theirs(mean_folder))


@pytest.mark.parametrize("pooling", ["cls", "mean+max", "lasttoken"])
def test_a_plain_checkpoint_becomes_a_folder(pooling: str, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    model = Model.load(checkpoint("roberta"), pooling=pooling)
    model.save(tmp_path / "ours")
    _assert_close(_theirs(tmp_path / "ours"), _ours(model))
    np.testing.assert_array_equal(_ours(Model.load(tmp_path / "ours")), _ours(model))


def test_saving_over_the_folder_it_came_from(mean_copy: Path) -> None:
    model = Model.load(mean_copy, similarity="rcmd")
    before = _ours(model)
    model.save(mean_copy)
    np.testing.assert_array_equal(_ours(Model.load(mean_copy)), before)
    np.testing.assert_array_equal(_ours(model), before)


# ------------------------------------------------------------------------------------ token-level models


def _multi_vector(
    checkpoint: Callable[[str], Path], target: Path, skip: Sequence[str] = (), name: str = "bert", **options: Any
) -> Path:
    chain = [
        Transformer(str(checkpoint(name)), **options.pop("transformer", {})),
        _dense(32, 16, bias=False, module_input_name=FEATURES),
        MultiVectorMask(skiplist_words=list(skip)),
        Normalize(FEATURES),
    ]
    MultiVectorEncoder(modules=chain, device="cpu", **options).save(str(target))
    return target


def _assert_same_tokens(model: Model, folder: Path, task: str | None = None) -> None:
    """Token vectors of `encode_document`, or of `encode` without a task."""
    theirs = MultiVectorEncoder(str(folder), device="cpu")
    expected = theirs.encode_document(TEXTS) if task else theirs.encode(TEXTS)
    ours = model.embed(TEXTS, prompt=model.prompts.get(task or "", ""), on_truncate="ignore")
    assert ours.lengths.tolist() == [len(one) for one in expected]
    for got, wanted in zip(ours, expected, strict=True):
        _assert_close(np.asarray(got), np.asarray(wanted))


@pytest.mark.parametrize("skip", [(), (".", ",", "plane", "not-a-piece"), ("[CLS]", "[SEP]")], ids=str)
def test_token_level_folders(skip: tuple[str, ...], checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = _multi_vector(checkpoint, tmp_path / "theirs", skip, prompts={"query": "query: ", "document": "passage: "})
    model = Model.load(folder)
    assert model.similarity.name == "rcmd"
    model.save(tmp_path / "ours")
    again = Model.load(tmp_path / "ours")
    for name in (None, "document"):
        _assert_same_tokens(model, folder, name)
        _assert_same_tokens(model, tmp_path / "ours", name)
        _assert_same_tokens(again, folder, name)


def test_token_level_folders_without_special_tokens_stay_in_step(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    model = Model.load(_multi_vector(checkpoint, tmp_path / "theirs", (".", ",")))
    for special_tokens in (True, False):
        embedded = model.embed(TEXTS, special_tokens=special_tokens, on_truncate="ignore")
        tokenized = model.encoder.tokenize(TEXTS, special_tokens=special_tokens)
        assert embedded.lengths.tolist() == [len(one.text_tokens().tokens) for one in tokenized]
        names = {token.text for one in tokenized for token in one.text_tokens().tokens}
        assert not names & {".", ","}


def test_document_length_and_query_settings(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    expansion = {"strategy": "fixed", "attend": False, "length": 12}
    folder = _multi_vector(
        checkpoint, tmp_path / "theirs", transformer={"document_length": 10, "query_expansion": expansion}
    )
    model = Model.load(folder)
    assert model.max_length == 10
    _assert_same_tokens(model, folder, "document")
    model.save(tmp_path / "ours")
    before, after = (MultiVectorEncoder(str(path), device="cpu") for path in (folder, tmp_path / "ours"))
    for wanted, got in zip(before.encode_query(TEXTS[:4]), after.encode_query(TEXTS[:4]), strict=True):
        _assert_close(np.asarray(got), np.asarray(wanted))


def _pylate(checkpoint: Callable[[str], Path], target: Path, **settings: Any) -> Path:
    """A folder as PyLate 3 writes it: Transformer and its own Dense, all else in the settings."""
    _multi_vector(checkpoint, target)
    for left in ("2_MultiVectorMask", "3_Normalize"):
        shutil.rmtree(target / left)
    entries = json.loads((target / "modules.json").read_text())[:2]
    entries[0]["type"] = "sentence_transformers.models.Transformer"
    entries[1]["type"] = "pylate.models.Dense.Dense"
    (target / "modules.json").write_text(json.dumps(entries))
    where = target / "1_Dense" / "config.json"
    config = json.loads(where.read_text())
    where.write_text(
        json.dumps(
            {key: config[key] for key in ("in_features", "out_features", "bias", "activation_function")}
            | {"use_residual": False}
        )
    )
    (target / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 63, "do_lower_case": False}))
    (target / "config_sentence_transformers.json").write_text(
        json.dumps(
            {
                "model_type": "ColBERT",
                "prompts": {},
                "default_prompt_name": None,
                "similarity_fn_name": "MaxSim",
                "query_length": 12,
                "document_length": 40,
                "attend_to_expansion_tokens": False,
                **settings,
            }
        )
    )
    return target


PYLATE_SETTINGS: dict[str, dict[str, Any]] = {
    "punctuation is skipped": {},
    "own skip list": {"skiplist_words": ["plane", "the"]},
    "no skip list": {"skiplist_words": []},
    "text prefixes": {"query_prefix": "query: ", "document_prefix": "passage: "},
    "vocabulary prefixes": {"query_prefix": "[MASK]", "document_prefix": "[unused1]"},
}


@pytest.mark.parametrize("settings", PYLATE_SETTINGS)
def test_pylate_folders(settings: str, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = _pylate(checkpoint, tmp_path / "theirs", **PYLATE_SETTINGS[settings])
    model = Model.load(folder)
    assert model.max_length == 40
    _assert_same_tokens(model, folder, "document")
    model.save(tmp_path / "ours")
    _assert_same_tokens(model, tmp_path / "ours", "document")
    _assert_same_tokens(Model.load(tmp_path / "ours"), folder, "document")


@pytest.mark.parametrize("listed_twice", [True, False], ids=["transformers-4", "transformers-5"])
def test_pylate_prefixes_that_were_added_to_the_vocabulary(
    listed_twice: bool, checkpoint: Callable[[str], Path], tmp_path: Path, edit_json: Callable[..., None]
) -> None:
    folder = _pylate(checkpoint, tmp_path / "theirs", query_prefix="[Q] ", document_prefix="[D] ")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    ids = content["model"]["vocab"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    spare = [piece for piece in ids if piece.startswith("##")][-2:]
    for prefix, piece in zip(("[Q] ", "[D] "), spare, strict=True):  # rows that the table has already
        content["added_tokens"].append({"id": ids.pop(piece), "content": prefix, **plain})
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    if listed_twice:
        added = {str(token.pop("id")): token for token in content["added_tokens"]}
        edit_json(folder / "tokenizer_config.json", added_tokens_decoder=added, tokenizer_class="BertTokenizer")
    model = Model.load(folder)
    first = model.encoder.tokenize(["a plane"], prompt=model.prompts["document"])[0].text_tokens().tokens
    assert [token.text for token in first[:3]] == ["[CLS]", "[D] ", "a"]
    _assert_same_tokens(model, folder, "document")
    model.save(tmp_path / "ours")
    _assert_same_tokens(model, tmp_path / "ours", "document")


# ------------------------------------------------------------------------------------- the real model


@pytest.fixture(scope="module")
def sts_sentences(shared: Path) -> list[str]:
    def sentences() -> Iterator[str]:
        with (shared / "data/stsbenchmark/raw/sts-test.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield from row[5:7]

    return list(sentences())[:1000]


@pytest.mark.model
def test_minilm_on_real_sentences(minilm: Model, sts_sentences: list[str]) -> None:
    theirs = SentenceTransformer(str(minilm._source), device="cpu")
    expected = theirs.encode(sts_sentences, batch_size=128)
    np.testing.assert_allclose(minilm.encode(sts_sentences), expected, atol=1e-5, rtol=0)


@pytest.mark.model
def test_minilm_readings_agree(minilm: Model, sts_sentences: list[str]) -> None:
    some = sts_sentences[:100]
    _assert_close(minilm.embed(some).pooled(), minilm.encode(some))
