"""The native engine computes what transformers computes, and the same bytes whatever a text is batched with."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModel

from likewise import Model
from likewise.backbone import read_config
from likewise.backbone.definition import Definition, define
from likewise.backbone.flat import FlatBackbone
from likewise.backbone.native import PRECISIONS, NativeBackbone
from likewise.data import read_stsb
from likewise.errors import InputError, ModelError
from likewise.evaluation import evaluate_pairs
from likewise.kernels import native
from tests.conftest import ARCHITECTURES, CORPUS

pytestmark = pytest.mark.skipif(native.library() is None, reason="the compiled extension is not in use")

Folders = Callable[[str], Path]
Packed = tuple[np.ndarray, np.ndarray]

LENGTHS = [1, 0, 17, 64, 3, 2, 40, 0, 7, 64, 1]
WEIGHTS = "model.safetensors"


def _engine(folder: Path, precision: str = "float32", calibration: Any = None) -> NativeBackbone:
    definition = define(read_config(folder))
    assert isinstance(definition, Definition)
    return NativeBackbone(definition, folder, precision, calibration)


def _pack(texts: Sequence[np.ndarray]) -> Packed:
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    return np.concatenate([np.zeros(0, np.int32), *texts]), offsets


def _texts(backbone: NativeBackbone, lengths: Sequence[int], seed: int = 0) -> list[np.ndarray]:
    assert backbone.vocabulary is not None
    random = np.random.default_rng(seed)
    return [random.integers(5, backbone.vocabulary, length).astype(np.int32) for length in lengths]


def _oracle(folder: Path, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """States by transformers in float32, without padding: equally long texts together."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    lengths = np.diff(offsets)
    out = np.empty((len(ids), model.config.hidden_size), np.float32)
    with torch.inference_mode():
        for length in np.unique(lengths[lengths > 0]):
            rows = offsets[:-1][lengths == length][:, None] + np.arange(length)
            out[rows] = model(input_ids=torch.from_numpy(ids[rows]).long()).last_hidden_state.numpy()
    return out


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _pooled(states: np.ndarray, offsets: np.ndarray, mode: str) -> np.ndarray:
    texts = [states[start:stop].astype(np.float64) for start, stop in itertools.pairwise(offsets)]
    nothing = np.zeros(states.shape[1])
    return np.stack([(text.mean(0) if mode == "mean" else text[0]) if len(text) else nothing for text in texts])


def _made(folder: Path, kind: str = "bert", **sizes: Any) -> Path:
    """A seeded checkpoint of one's own sizes."""
    torch.manual_seed(0)
    defaults = {"vocab_size": 60, "pad_token_id": 1, "initializer_range": 0.2}
    AutoModel.from_config(AutoConfig.for_model(kind, **{**defaults, **sizes})).save_pretrained(folder)
    return folder


@pytest.fixture
def copy(checkpoint: Folders, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Compute with an instruction set, until the test ends."""

    def use(name: str) -> None:
        monkeypatch.setenv("LIKEWISE_KERNELS", name)
        assert native.instruction_set() == name

    yield use
    native._native.use("")  # type: ignore[union-attr]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Compute with so many threads, on a machine of 64 processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)

    def use(n: int) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", str(n))
        assert native.n_threads() == n

    return use


# ------------------------------------------------------------------------------------- equal to transformers


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_float32_equals_transformers(name: str, checkpoint: Folders, kernels: Callable[[str], None]) -> None:
    ids, offsets = _pack(_texts(_engine(checkpoint(name)), LENGTHS))
    wanted = _oracle(checkpoint(name), ids, offsets)
    found = []
    for instruction_set in native.available():
        kernels(instruction_set)
        backbone = _engine(checkpoint(name))
        assert f"on {instruction_set}" in backbone.describe()
        states = backbone.states(ids, offsets)
        assert states.dtype == np.float32
        np.testing.assert_allclose(states, wanted, atol=1e-5, rtol=0)
        for mode in ("mean", "cls"):
            pooled = backbone.pooled(ids, offsets, mode)
            assert pooled is not None
            assert pooled.dtype == np.float32
            np.testing.assert_allclose(_unit(pooled), _unit(_pooled(wanted, offsets, mode)), atol=1e-6, rtol=0)
        found.append(states)
    for one, other in itertools.combinations(found, 2):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_other_precisions_stay_near(name: str, checkpoint: Folders, kernels: Callable[[str], None]) -> None:
    exact = _engine(checkpoint(name))
    packed = _pack(_texts(exact, LENGTHS))
    wanted = exact.states(*packed)
    filled = np.diff(packed[1]) > 0
    for instruction_set in native.available():
        kernels(instruction_set)
        found = {}
        for precision in ("bfloat16", "int8", "int8+"):
            backbone = _engine(checkpoint(name), precision, lambda texts: packed)
            found[precision] = backbone.states(*packed)
            assert 0.999 <= _cosines(found[precision], wanted).mean() < 1 - 1e-6
            for mode in ("mean", "cls"):
                means = backbone.pooled(*packed, mode)
                assert means is not None
                np.testing.assert_allclose(means, _pooled(found[precision], packed[1], mode), atol=1e-5, rtol=0)
                assert _cosines(means[filled], _pooled(wanted, packed[1], mode)[filled]).mean() >= 0.999
        errors = {precision: np.abs(states - wanted).mean() for precision, states in found.items()}
        assert errors["bfloat16"] < errors["int8+"] < errors["int8"]


@pytest.mark.parametrize(
    ("kind", "key", "activation"),
    [
        *itertools.product(["bert"], ["hidden_act"], ["gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu"]),
        *itertools.product(["distilbert"], ["activation"], ["gelu", "relu"]),
    ],
)
def test_activations(
    kind: str, key: str, activation: str, checkpoint: Folders, tmp_path: Path, edit_json: Callable[..., None]
) -> None:
    folder = Path(shutil.copytree(checkpoint(kind), tmp_path / kind))
    edit_json(folder / "config.json", **{key: activation})
    backbone = _engine(folder)
    packed = _pack(_texts(backbone, LENGTHS))
    np.testing.assert_allclose(backbone.states(*packed), _oracle(folder, *packed), atol=1e-5, rtol=0)
    unlike = {"gelu": "relu", "relu": "gelu"}.get(activation, "gelu")
    edit_json(folder / "config.json", **{key: unlike})
    assert np.abs(_engine(folder).states(*packed) - backbone.states(*packed)).max() > 1e-4


@pytest.mark.parametrize(
    ("hidden", "heads", "feed", "layers"),
    [(16, 1, 16, 1), (48, 3, 80, 2), (64, 1, 208, 3), (96, 2, 112, 1), (112, 7, 32, 2), (144, 9, 256, 1)],
)
def test_every_width(
    hidden: int, heads: int, feed: int, layers: int, tmp_path: Path, kernels: Callable[[str], None]
) -> None:
    sizes = {"hidden_size": hidden, "num_attention_heads": heads, "intermediate_size": feed}
    folder = _made(tmp_path, num_hidden_layers=layers, max_position_embeddings=40, layer_norm_eps=0.01, **sizes)
    packed = _pack(_texts(_engine(folder), [*range(1, 20), 40]))
    wanted = _oracle(folder, *packed)
    for instruction_set in native.available():
        kernels(instruction_set)
        np.testing.assert_allclose(_engine(folder).states(*packed), wanted, atol=1e-5, rtol=0)
        rough = _engine(folder, "int8", lambda texts: packed).states(*packed)
        assert _cosines(rough, wanted).mean() >= 0.998


@pytest.mark.parametrize(
    ("kind", "pad"), [("roberta", 0), ("roberta", 5), ("xlm-roberta", 3), ("camembert", 1), ("mpnet", 0), ("bert", 5)]
)
def test_the_first_position_is_where_transformers_has_it(kind: str, pad: int, tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    folder = _made(tmp_path, kind, pad_token_id=pad, max_position_embeddings=40, **sizes)
    backbone = _engine(folder)
    assert backbone.max_length is not None
    packed = _pack([np.maximum(text, 6) for text in _texts(backbone, [3, backbone.max_length])])
    np.testing.assert_allclose(backbone.states(*packed), _oracle(folder, *packed), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta", "mpnet", "bert"])
def test_padding_tokens_inside_a_text_stand_where_transformers_has_them(name: str, checkpoint: Folders) -> None:
    """They are not counted: the token behind them has the position that theirs would have been."""
    definition = define(read_config(checkpoint(name)))
    assert isinstance(definition, Definition)
    pad, backbone = max(definition.first_position - 1, 0), _engine(checkpoint(name))
    first, second, third = _texts(backbone, [9, 4, 30])
    first[[0, 3, 4, 8]], second[:], third[7] = pad, pad, pad
    packed = _pack([first, second, third])
    wanted = _oracle(checkpoint(name), *packed)
    np.testing.assert_allclose(backbone.states(*packed), wanted, atol=1e-5, rtol=0)
    flat = FlatBackbone(definition, checkpoint(name), device="cpu")
    np.testing.assert_allclose(flat.states(*packed), wanted, atol=1e-5, rtol=0)


def test_relative_distances_of_long_texts(tmp_path: Path) -> None:
    """Beyond distance 128 they share a bucket."""
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2}
    folder = _made(tmp_path, "mpnet", max_position_embeddings=402, **sizes)
    stored = load_file(folder / WEIGHTS)
    name = "encoder.relative_attention_bias.weight"
    save_file({**stored, name: 10 * stored[name]}, folder / WEIGHTS, metadata={"format": "pt"})
    backbone = _engine(folder)
    assert backbone.max_length == 400
    packed = _pack(_texts(backbone, [400, 5, 129, 300]))
    np.testing.assert_allclose(backbone.states(*packed), _oracle(folder, *packed), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_two_thousand_ragged_texts(name: str, checkpoint: Folders, threads: Callable[[int], None]) -> None:
    backbone = _engine(checkpoint(name))
    packed = _pack(_texts(backbone, np.random.default_rng(5).integers(0, 65, 2_000).tolist()))
    threads(2)
    states, means = backbone.states(*packed), backbone.pooled(*packed, "mean")
    wanted = _oracle(checkpoint(name), *packed)
    np.testing.assert_allclose(states, wanted, atol=1e-5, rtol=0)
    np.testing.assert_allclose(means, _pooled(states, packed[1], "mean"), atol=1e-6, rtol=0)


# ------------------------------------------------------------------------------------------ forms of a checkpoint


def _same(folder: Path, wanted: Path) -> None:
    plain, other = _engine(wanted), _engine(folder)
    packed = _pack(_texts(plain, LENGTHS))
    np.testing.assert_array_equal(other.states(*packed), plain.states(*packed))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_checkpoint_with_a_head(name: str, checkpoint: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint(name), tmp_path / "model"))
    definition = define(read_config(folder))
    assert isinstance(definition, Definition)
    stored = load_file(folder / WEIGHTS)
    tensors = {definition.prefix + key: tensor for key, tensor in stored.items()}
    tensors["lm_head.layer_norm.weight"] = np.full(32, np.nan, np.float32)
    tensors["classifier.bias"] = np.zeros(3, np.float32)
    save_file(tensors, folder / WEIGHTS)
    _same(folder, checkpoint(name))


def test_old_names_of_normalisations(checkpoint: Folders, copy: Path) -> None:
    renamed = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    stored = load_file(copy / WEIGHTS)
    for old, new in renamed.items():
        stored = {key.replace(old, new): tensor for key, tensor in stored.items()}
    assert sum("gamma" in key for key in stored) == 5
    save_file(stored, copy / WEIGHTS)
    _same(copy, checkpoint("bert"))


def test_weights_in_several_files(checkpoint: Folders, tmp_path: Path) -> None:
    AutoModel.from_pretrained(checkpoint("bert")).save_pretrained(tmp_path / "bert", max_shard_size="20KB")
    assert len(list((tmp_path / "bert").glob("*.safetensors"))) > 1
    _same(tmp_path / "bert", checkpoint("bert"))
    next((tmp_path / "bert").glob("*-00002-of-*.safetensors")).unlink()
    with pytest.raises(ModelError, match="lack the tensor"):
        _engine(tmp_path / "bert")


@pytest.mark.parametrize("padding", [1, 2, 3, 5])
def test_weights_that_start_at_an_odd_byte(padding: int, checkpoint: Folders, copy: Path) -> None:
    content = (copy / WEIGHTS).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size] + b" " * padding
    (copy / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])
    _same(copy, checkpoint("bert"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["bert", "mpnet", "electra"])
def test_stored_precisions(name: str, dtype: torch.dtype, checkpoint: Folders, tmp_path: Path) -> None:
    AutoModel.from_pretrained(checkpoint(name)).to(dtype).save_pretrained(tmp_path)
    backbone = _engine(tmp_path)
    packed = _pack(_texts(backbone, LENGTHS))
    np.testing.assert_allclose(backbone.states(*packed), _oracle(tmp_path, *packed), atol=1e-5, rtol=0)
    if dtype != torch.float64:
        assert np.abs(backbone.states(*packed) - _engine(checkpoint(name)).states(*packed)).max() > 1e-5


def test_a_word_table_alone_in_bfloat16(copy: Path) -> None:
    from safetensors.torch import load_file as load_torch
    from safetensors.torch import save_file as save_torch

    name = "embeddings.word_embeddings.weight"
    stored = load_torch(copy / WEIGHTS)
    save_torch({**stored, name: stored[name].bfloat16()}, copy / WEIGHTS, metadata={"format": "pt"})
    backbone = _engine(copy)
    packed = _pack(_texts(backbone, LENGTHS))
    np.testing.assert_allclose(backbone.states(*packed), _oracle(copy, *packed), atol=1e-5, rtol=0)


def test_damaged_weights(copy: Path, edit_json: Callable[..., None]) -> None:
    stored = load_file(copy / WEIGHTS)
    name = "encoder.layer.1.output.dense.weight"

    def refused(tensors: dict[str, np.ndarray], message: str) -> None:
        save_file(tensors, copy / WEIGHTS)
        with pytest.raises(ModelError, match=message):
            _engine(copy)

    refused({key: stored[key] for key in stored if key != name}, f"lack the tensor '{name}'")
    refused({**stored, name: stored[name].T.copy()}, rf"'{name}' .* has shape \(64, 32\), and config\.json asks")
    refused({**stored, name: np.full_like(stored[name], np.inf)}, f"'{name}' .* holds NaN or infinity")
    words = stored["embeddings.word_embeddings.weight"].copy()
    words[-1, -1] = np.nan
    refused({**stored, "embeddings.word_embeddings.weight": words}, "word_embeddings.weight' .* holds NaN or infinity")
    types = "embeddings.token_type_embeddings.weight"
    refused({key: stored[key] for key in stored if key != types}, f"lack the tensor '{types}'")
    edit_json(copy / "config.json", num_hidden_layers=1)
    refused(stored, r"the weights hold 2 layers and config\.json speaks of 1")
    edit_json(copy / "config.json", num_hidden_layers=3)
    refused(stored, r"lack the tensor 'encoder\.layer\.2\.")


# ------------------------------------------------------------------------------------------------ the same bytes


def _bytes_alone(backbone: NativeBackbone, texts: list[np.ndarray]) -> list[tuple[bytes, bytes, bytes]]:
    return [_bytes(backbone, [text])[0] for text in texts]


def _bytes(backbone: NativeBackbone, texts: list[np.ndarray]) -> list[tuple[bytes, bytes, bytes]]:
    """Of each text: its token states, its mean, its first token."""
    ids, offsets = _pack(texts)
    states, mean, cls = (
        backbone.states(ids, offsets),
        backbone.pooled(ids, offsets, "mean"),
        backbone.pooled(ids, offsets, "cls"),
    )
    assert mean is not None
    assert cls is not None
    ranges = itertools.pairwise(offsets.tolist())
    return [(states[a:b].tobytes(), mean[i].tobytes(), cls[i].tobytes()) for i, (a, b) in enumerate(ranges)]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["bert", "mpnet", "electra"])
def test_the_same_bytes_in_every_batch(
    name: str,
    precision: str,
    checkpoint: Folders,
    kernels: Callable[[str], None],
    threads: Callable[[int], None],
) -> None:
    random = np.random.default_rng(3)
    texts = _texts(_engine(checkpoint(name)), random.integers(0, 65, 60).tolist())
    for instruction_set in native.available():
        kernels(instruction_set)
        backbone = _engine(checkpoint(name), precision)
        threads(1)
        alone = _bytes_alone(backbone, texts)
        for n in (1, 2, 64):
            threads(n)
            assert _bytes(backbone, texts) == alone
            order = random.permutation(60)
            assert _bytes(backbone, [texts[i] for i in order]) == [alone[i] for i in order]
            size = int(random.integers(2, 12))
            batches = [_bytes(backbone, texts[i : i + size]) for i in range(0, 60, size)]
            assert list(itertools.chain(*batches)) == alone


@pytest.mark.parametrize("precision", native.PRECISIONS)
def test_threads_that_share_the_layers_of_one_text_give_its_bytes(
    precision: str, tmp_path: Path, kernels: Callable[[str], None], threads: Callable[[int], None]
) -> None:
    """A text alone, in a model large enough that threads are worth starting for it."""
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1040, "num_hidden_layers": 3}
    folder = _made(tmp_path, max_position_embeddings=64, **sizes)
    texts = _texts(_engine(folder), [1, 17, 40])
    for instruction_set in native.available():
        kernels(instruction_set)
        backbone = _engine(folder, precision)
        threads(1)
        alone = _bytes_alone(backbone, texts)
        assert _bytes(backbone, texts) == alone
        for n in (2, 3, 64):
            threads(n)
            assert _bytes_alone(backbone, texts) == alone


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_the_same_bytes_from_many_callers_at_once(name: str, checkpoint: Folders) -> None:
    backbone = _engine(checkpoint(name))
    texts = _texts(backbone, np.random.default_rng(3).integers(0, 65, 100).tolist())
    alone = _bytes(backbone, texts)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == alone for found in pool.map(lambda _: _bytes(backbone, texts), range(32)))


SENTENCES = [*CORPUS, "", "a", *(" ".join(CORPUS[i % 9].split() * (1 + i % 5)) for i in range(18))]


def _vectors(model: Model, texts: Any) -> list[bytes]:
    return [row.tobytes() for row in model.encode(texts)]


def _tokens(model: Model, texts: Any) -> list[bytes]:
    embeddings = model.embed(texts)
    return [embeddings.text(i).tobytes() for i in range(len(embeddings))]


@pytest.mark.filterwarnings("ignore::likewise.errors.LikewiseWarning")
@pytest.mark.parametrize("precision", [*PRECISIONS, "fast"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", ("mean", "cls"), "dense"])
def test_a_model_gives_the_same_bytes(
    precision: str,
    pooling: Any,
    sentence_folder: Callable[..., Path],
    threads: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    dense = pooling == "dense"
    torch.manual_seed(0)
    folder = sentence_folder(pooling="mean" if dense else pooling, modules=[Dense(32, 24), Normalize()] * dense)
    model = Model.load(folder, device="cpu", precision=precision)
    assert isinstance(model.encoder.backbone, NativeBackbone)
    threads(1)
    vectors, tokens = [], []
    for text in SENTENCES:
        vectors += _vectors(model, [text])
        tokens += _tokens(model, [text])
    order = np.random.default_rng(0).permutation(len(SENTENCES))
    for n in (1, 2, 64):
        threads(n)
        assert _vectors(model, SENTENCES) == vectors
        assert _tokens(model, SENTENCES) == tokens
        shuffled = [SENTENCES[i] for i in order]
        assert _vectors(model, iter(shuffled)) == [vectors[i] for i in order]
        assert _tokens(model, iter(shuffled)) == [tokens[i] for i in order]
    monkeypatch.setattr("likewise.encoder.encoder.WINDOW", 7)
    monkeypatch.setattr("likewise.encoder.encoder._TOKENS_A_CALL", 50)
    assert _vectors(model, SENTENCES) == vectors
    assert _tokens(model, SENTENCES) == tokens


# ---------------------------------------------------------------------------------------------- odd and bad input


@pytest.mark.parametrize("precision", PRECISIONS)
def test_texts_without_tokens(precision: str, checkpoint: Folders) -> None:
    backbone = _engine(checkpoint("mpnet"), precision)
    nothing = np.zeros(0, np.int32)
    for n in (0, 1, 3):
        offsets = np.zeros(n + 1, np.int64)
        assert backbone.states(nothing, offsets).shape == (0, 32)
        for mode in ("mean", "cls"):
            np.testing.assert_array_equal(backbone.pooled(nothing, offsets, mode), np.zeros((n, 32)))
    text = _texts(backbone, [9])[0]
    pooled = backbone.pooled(text, np.asarray([0, 0, 9, 9]), "mean")
    assert pooled is not None
    assert not pooled[[0, 2]].any()
    np.testing.assert_array_equal(pooled[1:2], backbone.pooled(text, np.asarray([0, 9]), "mean"))


def test_one_token_is_its_own_mean(checkpoint: Folders) -> None:
    backbone = _engine(checkpoint("bert"))
    packed = _pack(_texts(backbone, [1] * 30))
    for mode in ("mean", "cls"):
        np.testing.assert_array_equal(backbone.pooled(*packed, mode), backbone.states(*packed))


def test_only_mean_and_cls_are_pooled_here(checkpoint: Folders) -> None:
    backbone = _engine(checkpoint("bert"))
    for mode in ("max", "weightedmean", "lasttoken"):
        assert backbone.pooled(*_pack(_texts(backbone, [3])), mode) is None


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_whole_position_table_can_be_used(name: str, checkpoint: Folders) -> None:
    backbone = _engine(checkpoint(name))
    longest = 64 if name in ("roberta", "mpnet", "xlm-roberta") else 66
    assert (backbone.dim, backbone.max_length) == (32, longest)
    packed = _pack(_texts(backbone, [longest, 2, longest]))
    np.testing.assert_allclose(backbone.states(*packed), _oracle(checkpoint(name), *packed), atol=1e-5, rtol=0)
    beyond = _pack(_texts(backbone, [2, longest + 1, 3]))
    for call in (backbone.states, lambda *packed: backbone.pooled(*packed, "mean")):
        with pytest.raises(InputError, match=f"text 1 of {longest + 1} tokens is longer than the {longest} positions"):
            call(*beyond)


@pytest.mark.parametrize("strange", [-1, -(2**31), 216, 2**31 - 1])
@pytest.mark.parametrize("place", [0, 4, 8])
def test_ids_outside_the_vocabulary(strange: int, place: int, checkpoint: Folders) -> None:
    backbone = _engine(checkpoint("bert"))
    assert backbone.vocabulary == 216
    ids, offsets = _pack([np.asarray([215, 0, 7, 7]), np.asarray([3, 3, 3, 0, 215])])
    assert np.isfinite(backbone.states(ids, offsets)).all()
    ids[place] = strange
    for call in (backbone.states, lambda *packed: backbone.pooled(*packed, "mean")):
        with pytest.raises(ModelError, match=f"token id {strange} is not among the 216 words"):
            call(ids, offsets)


def test_wide_ids_are_not_cut_to_32_bits(checkpoint: Folders) -> None:
    with pytest.raises(ModelError, match=f"token id {2**32 + 7} is not among"):
        _engine(checkpoint("bert")).states(np.asarray([7, 2**32 + 7]), np.asarray([0, 2]))


@pytest.mark.parametrize("offsets", [[0, 4], [0, 6], [1, 5], [0, 3, 2, 5], [0, -1, 5], [5], [-1, 5]])
def test_offsets_that_do_not_fit(offsets: list[int], checkpoint: Folders) -> None:
    backbone = _engine(checkpoint("bert"))
    for call in (backbone.states, lambda *packed: backbone.pooled(*packed, "mean")):
        with pytest.raises(InputError, match="they must rise from 0 to 5"):
            call(np.full(5, 7, np.int32), np.asarray(offsets))


# ---------------------------------------------------------------------------------------------- the default model


@pytest.fixture(scope="module")
def folder(minilm: Model) -> Path:
    return Path(minilm._source)


@pytest.fixture(scope="module")
def rough(minilm: Model) -> Callable[[str], Model]:
    """The default model in another precision."""
    made = {"float32": minilm}

    def load(precision: str) -> Model:
        if precision not in made:
            made[precision] = Model.load(device="cpu", precision=precision)
        return made[precision]

    return load


@pytest.fixture(scope="module")
def sentences(shared: Path) -> list[str]:
    """The first 1,000 distinct sentences of STS-b dev."""
    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")
    return list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))[:1000]


@pytest.mark.model
def test_the_default_model_equals_transformers(minilm: Model, folder: Path, sentences: list[str]) -> None:
    assert isinstance(minilm.encoder.backbone, NativeBackbone)
    backbone = minilm.encoder.backbone
    ids, offsets = _pack([np.asarray(one.ids, np.int32) for one in minilm.encoder.tokenize(sentences)])
    wanted = _oracle(folder, ids, offsets)
    np.testing.assert_allclose(backbone.states(ids, offsets), wanted, atol=1e-5, rtol=0)
    means, firsts = (_unit(_pooled(wanted, offsets, mode)) for mode in ("mean", "cls"))
    np.testing.assert_allclose(minilm.encode(sentences), means, atol=1e-6, rtol=0)
    first = backbone.pooled(ids[: offsets[200]], offsets[:201], "cls")
    assert first is not None
    np.testing.assert_allclose(_unit(first), firsts[:200], atol=1e-6, rtol=0)


@pytest.mark.model
def test_the_default_model_on_every_instruction_set(
    minilm: Model, folder: Path, sentences: list[str], kernels: Callable[[str], None]
) -> None:
    ids, offsets = _pack([np.asarray(one.ids, np.int32) for one in minilm.encoder.tokenize(sentences[:100])])
    found = []
    for instruction_set in native.available():
        kernels(instruction_set)
        found.append(_engine(folder).states(ids, offsets))
    for one, other in itertools.combinations(found, 2):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)


@pytest.mark.model
@pytest.mark.parametrize(("precision", "least"), [("bfloat16", 0.9999), ("int8", 0.999), ("int8+", 0.9995)])
def test_the_default_model_in_other_precisions(
    precision: str, least: float, rough: Callable[[str], Model], sentences: list[str]
) -> None:
    if precision == "bfloat16" and not native.quick_at_bfloat16():
        pytest.skip("this processor computes bfloat16 as float32")
    wanted, found = (rough(one).encode(sentences[:300]) for one in ("float32", precision))
    assert least <= _cosines(found, wanted).mean() < 1 - 1e-7


@pytest.mark.model
def test_calibration_makes_the_default_model_more_exact(
    rough: Callable[[str], Model], folder: Path, sentences: list[str]
) -> None:
    model = rough("float32")
    ids, offsets = _pack([np.asarray(one.ids, np.int32) for one in model.encoder.tokenize(sentences[:200])])
    wanted = model.encoder.backbone.pooled(ids, offsets, "mean")
    calibrated = rough("int8").encoder.backbone.pooled(ids, offsets, "mean")
    uncalibrated = _engine(folder, "int8").pooled(ids, offsets, "mean")
    assert 1 - _cosines(calibrated, wanted).mean() < 0.8 * (1 - _cosines(uncalibrated, wanted).mean())


@pytest.mark.model
def test_sts_in_every_precision(rough: Callable[[str], Model], shared: Path) -> None:
    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")
    found = {}
    for precision, within in (("float32", 0), ("bfloat16", 0.03), ("int8", 0.1), ("int8+", 0.1)):
        found[precision] = evaluate_pairs(rough(precision), pairs, ["cosine"], progress=False)["cosine"].spearman
        assert found[precision] == pytest.approx(found["float32"], abs=within)
    assert found["float32"] == pytest.approx(86.7, abs=0.1)
    assert len(set(found.values())) >= 3


@pytest.mark.model
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_default_model_gives_the_same_bytes(
    precision: str, rough: Callable[[str], Model], sentences: list[str], threads: Callable[[int], None]
) -> None:
    model, some = rough(precision), sentences[:150]
    threads(1)
    vectors, tokens = _vectors(model, some), _tokens(model, some)
    for n in (2, 64):
        threads(n)
        assert _vectors(model, sentences[:250])[:150] == vectors
        assert _tokens(model, some[::-1]) == tokens[::-1]
    for row in range(0, 150, 10):
        assert model.encode(some[row]).tobytes() == vectors[row]
        assert _tokens(model, [some[row]]) == tokens[row : row + 1]
