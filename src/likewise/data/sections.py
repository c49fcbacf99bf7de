"""Articles with headings, and triplets of their sentences: same section against another section."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from likewise.data.examples import Article, Section, TextTriplet
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, csv_rows, expect, records, text_of
from likewise.errors import DataError, InputError

__all__ = ["read_articles", "read_section_triplets", "section_triplets"]

_ARTICLES = {"wikitext2/valid": 60, "wikitext2/test": 60}
_TRIPLETS = {"wikipedia-sections-triplets/test": 222_957}
"""Published counts, by folder and name, since the names alone are anybody's."""

_HEADING = re.compile(r" ?((?:= )+)(.*?)((?: =)+) ?")
_ENDS = (".", "?", "!")


def read_articles(path: str | os.PathLike[str]) -> list[Article]:
    """Articles of a WikiText file (`valid.txt`, `wiki.test.tokens` …), with their sections and sentences.

    A heading is a line of its own between blank lines: `= Title =` opens an article, `= = Heading = =` and deeper
    ones a section, and each section has only what stands directly under its heading. Sections without a sentence are
    left out. The text is tokenised, so that a sentence ends at a `.`, `?` or `!` that stands alone, outside quotation
    marks and not before a small letter; tokens stay as they are (` @-@ `, `<unk>`).

    Raises:
        DataError: The file is missing or not UTF-8, text stands before the first title, or the count is not the
            published one (for `valid.txt` and `test.txt` in a folder `wikitext2`).

    Source:
        Merity et al. 2017 (WikiText).
    """
    path = Path(path)
    articles: list[tuple[str, list[tuple[str, list[str]]]]] = []
    for number, level, text in _blocks(path):
        if level == 1:
            articles.append((text, [("", [])]))
        elif not articles:
            raise DataError(f"{path}, line {number}: text stands before the first title '= … ='; is it WikiText?")
        elif level:
            articles[-1][1].append((text, []))
        else:
            articles[-1][1][-1][1].extend(_sentences(text))
    whole = Rows(
        Article(title, tuple(Section(heading, tuple(found)) for heading, found in sections if found))
        for title, sections in articles
    )
    return expect(whole, _ARTICLES.get(f"{path.absolute().parent.name}/{path.stem}"), path, "articles")


def _blocks(path: Path) -> Iterator[tuple[int, int, str]]:
    """Yield (line number, level of heading or 0 for a paragraph, text without its signs)."""
    lines = ["", *(line.strip(" ") for _, line in read_lines(path)), ""]
    for number in range(1, len(lines) - 1):
        line = lines[number]
        alone = not lines[number - 1] and not lines[number + 1]
        match = _HEADING.fullmatch(line) if alone else None
        if match and match[1].count("=") == match[3].count("="):
            yield number, match[1].count("="), match[2]
        elif line:
            yield number, 0, line


def _sentences(paragraph: str) -> Iterator[str]:
    tokens = [token for token in paragraph.split(" ") if token]
    paired = tokens.count('"') % 2 == 0  # else nobody knows which marks open
    current: list[str] = []
    quoted = False
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        current.append(token)
        if token == '"' and paired:
            quoted = not quoted
        ended = token in _ENDS or (token == '"' and len(current) > 1 and current[-2] in _ENDS)
        if not following or (ended and not quoted and not following[0].islower()):
            yield " ".join(current)
            current = []


def section_triplets(articles: Iterable[Article], *, seed: int = 0, min_words: int = 5) -> list[TextTriplet]:
    """Triplets in the kind of Dor et al.: two sentences of one section, and one of another section of the article.

    Within a section the sentences are shuffled and taken two by two, so that none is anchor or positive twice; the
    negative is drawn from another section, each section being as likely as any other.

    Args:
        articles: Where from; one with fewer than two usable sections gives nothing.
        seed: Decides shuffles and draws; the same seed gives the same triplets.
        min_words: Shorter sentences are not used.

    Raises:
        InputError: `min_words` is below 1.

    Source:
        Dor et al. 2018, section 3; Reimers & Gurevych 2019 (Sentence-BERT), section 4.4.
    """
    if min_words < 1:
        raise InputError(f"min_words is {min_words}; a sentence has at least 1 word")
    drawn = random.Random(seed)
    triplets = []
    for article in articles:
        usable = [
            [sentence for sentence in dict.fromkeys(section.sentences) if len(sentence.split()) >= min_words]
            for section in article.sections
        ]
        for place, own in enumerate(usable):
            others = [section for other, section in enumerate(usable) if other != place and set(section) - set(own)]
            if not others:
                continue
            shuffled = drawn.sample(own, len(own))
            for anchor, positive in zip(shuffled[::2], shuffled[1::2], strict=False):
                negatives = [sentence for sentence in drawn.choice(others) if sentence not in own]
                triplets.append(TextTriplet(anchor, positive, drawn.choice(negatives)))
    return triplets


def read_section_triplets(path: str | os.PathLike[str]) -> Rows[TextTriplet]:
    """The triplets of Dor et al.: real CSV with the columns `Sentence1`, `Sentence2` and `Sentence3`, among others.

    The first two are from one section, the third from another of the same article.

    Raises:
        DataError: A missing file or column, a broken row, an empty text, or another number of rows than the
            published 222,957 (for `test.csv` in a folder `wikipedia-sections-triplets`).

    Source:
        Dor et al. 2018.
    """
    path = Path(path)
    aliases = {"anchor": ("sentence1",), "positive": ("sentence2",), "negative": ("sentence3",)}
    triplets = Rows(
        TextTriplet(**{name: text_of(text, path, number) for name, text in row.items()})
        for number, row in records(csv_rows(path), aliases, path)
    )
    return expect(triplets, _TRIPLETS.get(f"{path.absolute().parent.name}/{path.stem}"), path, "triplets")
