"""The interpretable STS sets of SemEval-2016: sentences, gold chunks and gold alignments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from likewise.data.chunks import ChunkAlignment, ChunkedPair, ChunkedText
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, chosen, expect, find
from likewise.data.wa import parse_wa, read_wa, write_wa
from likewise.errors import DataError, DataWarning, warn

__all__ = ["ISTS_ROWS", "ChunkAlignment", "ChunkedPair", "ChunkedText", "read_ists", "read_wa", "write_wa"]

ISTS_ROWS = {
    "test": {"images": 375, "headlines": 375, "answers-students": 344},
    "train": {"images": 750, "headlines": 756, "answers-students": 330},
}
"""Split → set → published number of pairs."""


def read_ists(folder: str | os.PathLike[str], name: str = "images", split: str = "test") -> Rows[ChunkedPair]:
    """Sentence pairs with gold chunks and gold alignments.

    Each set is five files: the two sentences (`….sent1.txt`), the same with chunks in brackets
    (`….sent1.chunk.txt`) and the alignments (`….wa`), and all must agree. Known faults that leave no doubt are
    read as meant, with one `DataWarning` that names files and lines: blanks too many in a sentence, a
    bracket that opens within a chunk, blanks around the colon of a word.

    Args:
        folder: Where the files are, or a folder that has them in `test/`, `train/` or
            `train_answers_students/`, perhaps in `ists2016/`.
        name: "images", "headlines" or "answers-students".
        split: "test" or "train".

    Raises:
        DataError: A missing file, a broken line, files that do not fit together, or a count other than the
            published one.

    Source:
        Agirre et al. 2016, SemEval-2016 task 2.
    """
    n = ISTS_ROWS[chosen(split, ISTS_ROWS, "split of iSTS")][chosen(name, ISTS_ROWS["test"], "set of iSTS")]
    stem = f"STSint.{'testinput' if split == 'test' else 'input'}.{name}"
    inner = "train_answers_students" if (name, split) == ("answers-students", "train") else split
    places = [f"{place}/{stem}" for place in (".", inner, f"ists2016/{inner}")]
    wa = find(folder, [f"{place}.wa" for place in places], f"iSTS {name} {split}")
    pairs, repairs = parse_wa(wa)
    expect(Rows(pairs), n, wa, "pairs")
    left, right = (_Side(wa.with_suffix(f".sent{side}.txt"), repairs) for side in (1, 2))
    lefts = left.read([pair.left.words for pair in pairs])
    rights = right.read([pair.right.words for pair in pairs])
    if repairs:
        warn(f"read as meant: {'; '.join(repairs)}", DataWarning)
    return Rows(replace(pair, left=a, right=b) for pair, a, b in zip(pairs, lefts, rights, strict=True))


@dataclass
class _Side:
    """One sentence of every pair: its own file, the file of its chunks, and what was repaired in them."""

    path: Path
    repairs: list[str]
    spaced: list[int] = field(default_factory=list)
    bracketed: list[int] = field(default_factory=list)

    def read(self, words: Sequence[tuple[str, ...]]) -> list[ChunkedText]:
        chunk_path = self.path.with_suffix(".chunk.txt")
        sentences, chunked = (self._lines(path, len(words)) for path in (self.path, chunk_path))
        texts = [
            self._text(number, sentence, chunks, own, chunk_path)
            for number, (sentence, chunks, own) in enumerate(zip(sentences, chunked, words, strict=True), start=1)
        ]
        for path, numbers, what in (
            (self.path, self.spaced, "blanks too many"),
            (chunk_path, self.bracketed, "a bracket too many"),
        ):
            if numbers:
                lines = "line" if len(numbers) == 1 else "lines"
                self.repairs.append(f"{path.name} {lines} {', '.join(map(str, numbers))} ({what})")
        return texts

    def _lines(self, path: Path, n: int) -> list[str]:
        lines = [line for _, line in read_lines(path)]
        if len(lines) != n:
            raise DataError(
                f"{path} has {len(lines)} lines and the alignments {n} pairs; the files do not fit, or one is cut"
            )
        return lines

    def _text(self, number: int, sentence: str, chunked: str, words: tuple[str, ...], chunk_path: Path) -> ChunkedText:
        text = " ".join(words)
        if sentence != text:
            self.spaced.append(number)
        chunks = self._chunks(number, chunked, chunk_path)
        for path, found in ((self.path, _split(sentence)), (chunk_path, [word for chunk in chunks for word in chunk])):
            if found != list(words):
                raise DataError(
                    f"{path}, line {number}: its words are not those of pair {number} in the .wa file ({text!r}); the "
                    "files do not belong together, or a line is missing"
                )
        ids, end = [], 0
        for chunk in chunks:
            ids.append(tuple(range(end + 1, end + len(chunk) + 1)))
            end += len(chunk)
        return ChunkedText(text, words, tuple(ids))

    def _chunks(self, number: int, line: str, path: Path) -> list[list[str]]:
        chunks: list[list[str]] = []
        opened = False
        for sign in _split(line):
            if sign == "[" and opened:
                self.bracketed.append(number)
            elif sign == "[":
                chunks.append([])
                opened = True
            elif not opened:
                raise DataError(f"{path}, line {number}: {sign!r} stands outside the brackets of a chunk")
            elif sign == "]":
                opened = False
            else:
                chunks[-1].append(sign)
        if opened or not all(chunks):
            raise DataError(f"{path}, line {number}: a chunk is {'not closed' if opened else 'empty'}")
        return chunks


def _split(line: str) -> list[str]:
    return [word for word in line.split(" ") if word]
