"""`.wa` files of interpretable STS: read by lines, for they look like XML and are not."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from likewise.data.chunks import ChunkAlignment, ChunkedPair, ChunkedText
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, decimal
from likewise.errors import DataError, DataWarning, InputError, warn
from likewise.files import atomic_file

__all__ = ["parse_wa", "read_wa", "write_wa"]

_OPEN = re.compile(r'<sentence id="([0-9]+)"[^>]*>')
_WORD = re.compile(r"([0-9]+) (\S+) : ?")
_WORD_AS_MEANT = re.compile(r"([0-9]+) +(\S+?) *: *")
_ALIGNMENT = re.compile(r"([0-9]+(?: [0-9]+)*) +<==> +([0-9]+(?: [0-9]+)*) +// +(\S+) +// +(\S+)(?: +//.*)?")
_PARTS = ("source", "translation", "alignment")


def read_wa(path: str | os.PathLike[str]) -> Rows[ChunkedPair]:
    """Alignments of sentence pairs, from the organisers, a system or `write_wa`.

    The file does not say how the sentences were cut, so `chunks` is empty (`read_ists` knows it); the text of a
    sentence is its words with single blanks between. Word lines without a blank before their colon are read as
    meant, with one `DataWarning` for all.

    Raises:
        DataError: A line breaks the format, word ids do not count from 1, an alignment names words that are not
            there, a type or score is unknown, a pair occurs twice, or the file ends within a pair.

    Source:
        Agirre et al. 2016, SemEval-2016 task 2 (interpretable STS).
    """
    pairs, repairs = parse_wa(Path(path))
    if repairs:
        warn(f"read as meant: {'; '.join(repairs)}", DataWarning)
    return Rows(pairs)


def parse_wa(path: Path) -> tuple[list[ChunkedPair], list[str]]:
    """The pairs of a `.wa` file, and what had to be repaired in it, in words."""
    parser = _Parser(path)
    for number, line in read_lines(path):
        parser.take(number, line)
    return parser.end()


def write_wa(
    path: str | os.PathLike[str],
    pairs: Sequence[ChunkedPair],
    alignments: Sequence[Sequence[ChunkAlignment]] | None = None,
) -> None:
    """Write a `.wa` file, whole or not at all, that the official scorer accepts and `read_wa` reads back equal.

    Args:
        path: Target file; its folder must exist.
        pairs: The sentence pairs.
        alignments: For each pair; by default its own.

    Raises:
        InputError: `alignments` are not as many as `pairs` or do not fit their words, or the target cannot be
            written.
    """
    chosen = [pair.alignments for pair in pairs] if alignments is None else alignments
    if len(chosen) != len(pairs):
        raise InputError(f"alignments of {len(chosen)} pairs do not fit {len(pairs)} pairs")
    blocks = [
        _block(ChunkedPair(pair.id, pair.left, pair.right, tuple(own))) for pair, own in zip(pairs, chosen, strict=True)
    ]
    with atomic_file(path, "w") as stream:
        stream.write("\n\n".join(blocks))


def _block(pair: ChunkedPair) -> str:
    sides = (pair.left.words, pair.right.words)
    lines = [f'<sentence id="{pair.id}" status="">', *(f"// {' '.join(words)}" for words in sides)]
    for part, words in zip(_PARTS, sides, strict=False):
        lines += [f"<{part}>", *(f"{place} {word} : " for place, word in enumerate(words, start=1)), f"</{part}>"]
    lines.append("<alignment>")
    for own in pair.alignments:
        ids = [" ".join(map(str, side)) or "0" for side in (own.left, own.right)]
        texts = [
            " ".join(words[word - 1] for word in side) or "-not aligned-"
            for side, words in zip((own.left, own.right), sides, strict=True)
        ]
        score = "NIL" if own.score is None else f"{own.score:g}"
        lines.append(f"{' <==> '.join(ids)} // {own.kind} // {score} // {' <==> '.join(texts)} ")
    return "\n".join([*lines, "</alignment>", "</sentence>", ""])


@dataclass
class _Parser:
    """Where in the file we are, and what was read so far."""

    path: Path
    pairs: list[ChunkedPair] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    ids: set[int] = field(default_factory=set)
    id: int | None = None
    """Number of the pair we are in."""
    part: str | None = None
    """The part of the pair we are in."""
    words: dict[str, list[str]] = field(default_factory=dict)
    alignments: list[ChunkAlignment] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """Parts of the pair that were closed."""
    number: int = 0

    def take(self, number: int, line: str) -> None:
        self.number = number
        if self.part is not None:
            self._inside(self.part, line)
        elif self.id is None:
            self._outside(line)
        elif line.strip() == "</sentence>":
            self._close(self.id)
        elif match := re.fullmatch(r"<(\w+)>", line.strip()):
            self._begin(match[1])
        elif line.strip() and not line.startswith("//"):
            raise self._fault(f"{line!r} does not belong here")

    def end(self) -> tuple[list[ChunkedPair], list[str]]:
        if self.id is not None:
            raise self._fault(f"the file ends within pair {self.id}; it is cut; fetch it again")
        return self.pairs, self.repairs

    def _outside(self, line: str) -> None:
        match = _OPEN.fullmatch(line.strip())
        if match is None:
            if line.strip():
                raise self._fault(f"{line!r} stands outside a <sentence>; is it a .wa file?")
            return
        self.id = int(match[1])
        if self.id in self.ids:
            raise self._fault(f"pair {self.id} occurs twice; is a part of the file doubled?")
        self.ids.add(self.id)
        self.words, self.alignments, self.done = {part: [] for part in _PARTS[:2]}, [], []

    def _begin(self, part: str) -> None:
        if len(self.done) == len(_PARTS) or part != _PARTS[len(self.done)]:
            raise self._fault(f"<{part}> does not belong here; the parts are {', '.join(_PARTS)}")
        self.part = part

    def _inside(self, part: str, line: str) -> None:
        if line.strip() == f"</{part}>":
            self.done.append(part)
            self.part = None
        elif part == "alignment":
            self.alignments.append(self._alignment(line))
        else:
            self.words[part].append(self._word(line, len(self.words[part]) + 1))

    def _word(self, line: str, place: int) -> str:
        match = _WORD.fullmatch(line)
        if match is None and (match := _WORD_AS_MEANT.fullmatch(line)):
            self.repairs.append(f"{self.path.name} line {self.number} (blanks around the colon)")
        if match is None or int(match[1]) != place:
            raise self._fault(f"{line!r} is not word {place}, written as '{place} word : '")
        return match[2]

    def _alignment(self, line: str) -> ChunkAlignment:
        match = _ALIGNMENT.fullmatch(line.strip())
        if match is None:
            raise self._fault(f"{line!r} is not an alignment, written as '1 2 <==> 3 // EQUI // 5 // words <==> words'")
        left, right = (tuple(int(word) for word in ids.split(" ") if ids != "0") for ids in match.group(1, 2))
        score = None if match[4] == "NIL" else decimal(match[4])
        if score is None and match[4] != "NIL":
            raise self._fault(f"the score {match[4]!r} is neither a number in plain digits nor NIL")
        try:
            return ChunkAlignment(left, right, match[3], score)
        except InputError as error:
            raise self._fault(str(error)) from error

    def _close(self, number: int) -> None:
        if len(self.done) != len(_PARTS):
            raise self._fault(f"pair {number} has no <{_PARTS[len(self.done)]}>")
        left, right = (ChunkedText(" ".join(self.words[part]), tuple(self.words[part])) for part in _PARTS[:2])
        try:
            self.pairs.append(ChunkedPair(number, left, right, tuple(self.alignments)))
        except InputError as error:
            raise self._fault(str(error)) from error
        self.id = None

    def _fault(self, what: str) -> DataError:
        return DataError(f"{self.path}, line {self.number}: {what}")
