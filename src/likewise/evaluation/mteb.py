"""The benchmark suite `mteb` runs our models: pooled ones, and token by token (RCMD, transport), too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.errors import InputError, MissingExtraError
from likewise.model import Model
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["MtebModel"]


class MtebModel:
    """A model as `mteb.evaluate` takes it (its `EncoderProtocol`).

    What mteb calls the model's own scores (`spearman`, not `cosine_spearman`; all of retrieval) are those of
    `similarity`. mteb passes vectors around, one a text; where a similarity looks at tokens, the text that a
    vector was made from is looked up by the vector's bytes and its tokens are computed when scores are asked for.
    So vectors must come back as they were given out, and texts are encoded twice.

    Args:
        model: A pooled model.
        similarity: A name or an object; the model's own by default.
        name: Under which mteb keeps results, as "organization/name"; by default made of the names of the model and
            of the similarity, so that results of one similarity are not taken for those of another.
        revision: Under which mteb keeps results; give one a version of your weights.

    Raises:
        InputError: The model has no pooling, or the name has no "/".
        MissingExtraError: mteb is absent.

    Example:
        >>> import mteb                                                                           # doctest: +SKIP
        >>> mteb.evaluate(MtebModel(Model.load(), similarity="rcmd"), mteb.get_task("STS12"))     # doctest: +SKIP
    """

    def __init__(
        self,
        model: Model,
        *,
        similarity: str | Similarity | None = None,
        name: str | None = None,
        revision: str = "local",
    ) -> None:
        try:
            from mteb.models.model_meta import ModelMeta, ScoringFunction
        except ImportError as error:
            raise MissingExtraError("mteb", "mteb", "running mteb") from error
        if not model.pooled:
            raise InputError(
                f"{model.name} is a token-level model and mteb needs a vector for each text; load it with a pooling, "
                "and pass similarity='rcmd' here"
            )
        self.model = model
        self.chosen = model.similarity if similarity is None else by_name(similarity)
        name = name or f"likewise/{model.name.rpartition('/')[2]}-{self.chosen.name}"
        if "/" not in name:
            raise InputError(f"the name {name!r} has no organization; mteb wants one such as 'ours/{name}'")
        known = {one.value: one for one in ScoringFunction}
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name,
                "revision": revision,
                "embed_dim": model.dim,
                "max_tokens": model.max_length,
                "similarity_fn_name": known.get(self.chosen.name, ScoringFunction.CUSTOM),
                "framework": ["NumPy"],
            }
        )
        """What mteb writes beside the results."""
        self._texts: dict[bytes, tuple[str, str | None]] = {}

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: str | None = None,
        num_proc: int | None = None,
    ) -> Float[np.ndarray, "n dim"]:
        """Pooled vectors of the texts of all batches, in their order.

        Args:
            inputs: Batches, each with the key "text".
            task_metadata: Not used.
            hf_split: Not used.
            hf_subset: Not used.
            prompt_type: Query or document; a prompt that the model stores under that name is put in front.
            batch_size: Not used: nothing is padded.
            show_progress_bar: Show a bar on standard error.
            precision: Anything but "float32" is refused; precision is chosen when the model is loaded.
            num_proc: Not used.

        Raises:
            InputError: Another precision, or batches without texts.
        """
        if precision not in (None, "float32"):
            raise InputError(f"precision {precision!r} is not given out here; load the model with the precision wanted")
        texts = []
        for batch in inputs:
            if "text" not in batch:
                raise InputError(f"a batch holds {', '.join(map(str, batch))} and no text; choose a task with texts")
            texts += batch["text"]
        prompt_name = None if prompt_type is None else str(getattr(prompt_type, "value", prompt_type))
        prompt_name = prompt_name if prompt_name in self.model.prompts else None
        vectors = self.model.encode(texts, prompt_name=prompt_name, on_truncate="ignore", progress=show_progress_bar)
        if self.chosen.needs_tokens:
            for vector, text in zip(vectors, texts, strict=True):
                self._texts[vector.tobytes()] = text, prompt_name
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Float[np.ndarray, "rows columns"]:
        """All against all of vectors that `encode` gave out.

        Raises:
            InputError: A token-level similarity, and a vector that `encode` did not give out.
        """
        return self.chosen.matrix(self._embeddings(embeddings1), self._embeddings(embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Float[np.ndarray, " rows"]:
        """Row by row of vectors that `encode` gave out (mteb's word for it is pairwise).

        Raises:
            InputError: As `similarity`; or unequal numbers of rows.
        """
        return self.chosen.score(self._embeddings(embeddings1), self._embeddings(embeddings2))

    def _embeddings(self, vectors: Any) -> Embeddings:
        """What the similarity works on: the vectors, or the tokens of the texts that they were made from."""
        vectors = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if not self.chosen.needs_tokens:
            return Embeddings.from_pooled(vectors)
        try:
            found = [self._texts[vector.tobytes()] for vector in vectors]
        except KeyError:
            raise InputError(
                f"similarity {self.chosen.name!r} looks at tokens, and the text of a vector is not known: it was "
                "changed on the way or read from a cache; let mteb pass on what encode() gave, without a cache of "
                "embeddings"
            ) from None
        if not found:
            return Embeddings(vectors[:0], np.zeros(1, np.int64))
        by_prompt: dict[str | None, list[int]] = {}
        for row, (_, prompt_name) in enumerate(found):
            by_prompt.setdefault(prompt_name, []).append(row)
        tokens: dict[int, np.ndarray] = {}
        for prompt_name, rows in by_prompt.items():
            texts = [found[row][0] for row in rows]
            some = self.model.embed(texts, prompt_name=prompt_name, on_truncate="ignore", progress=False)
            tokens.update(zip(rows, some, strict=True))
        return Embeddings.from_texts([tokens[row] for row in range(len(found))])
