from __future__ import annotations

import pytest

from likewise.data import Article, Section, TextTriplet, read_articles, read_section_triplets, section_triplets
from likewise.errors import DataError, DataNotFoundError, InputError

TEXT = """\ufeff
 = A lobster =\x20

 It is blue . It lives in H. americanus ' sea ! " Really ? " they asked . It does .\x20
 A new paragraph , 5 @,@ 000 <unk> .\x20

 = = Parents = =\x20

 = = = Diet = = =\x20

 It eats
 = 3 fish =
 a day .\x20

 = Empty =\x20

"""


def test_articles_sections_and_sentences(tmp_path):
    (tmp_path / "x.txt").write_bytes(TEXT.replace("\n", "\r\n").encode())
    lead = ("It is blue .", "It lives in H. americanus ' sea !", '" Really ? " they asked .', "It does .",
            "A new paragraph , 5 @,@ 000 <unk> .")  # fmt: skip
    diet = ("It eats", "= 3 fish =", "a day .")
    assert read_articles(tmp_path / "x.txt") == [
        Article("A lobster", (Section("", lead), Section("Diet", diet))),
        Article("Empty", ()),
    ]


@pytest.mark.parametrize(("split", "n_sections", "n_triplets"), [("valid", 540, 3724), ("test", 616, 4360)])
def test_wikitext(shared, split, n_sections, n_triplets):
    articles = read_articles(shared / "data" / "wikitext2" / f"{split}.txt")
    assert (len(articles), sum(len(article.sections) for article in articles)) == (60, n_sections)
    triplets = section_triplets(articles)
    assert len(triplets) == n_triplets
    assert triplets == section_triplets(articles)
    assert triplets != section_triplets(articles, seed=1)


def test_a_formula_is_no_heading(shared):
    """Two lines of WikiText's test split begin and end like a title, in the middle of a paragraph."""
    titles = [article.title for article in read_articles(shared / "data" / "wikitext2" / "test.txt")]
    assert not [title for title in titles if "<unk> C" in title or "/ s and" in title]


def test_triplets_keep_their_promise():
    sections = tuple(
        Section(f"S{i}", tuple(f"this is sentence {i} {j}" for j in range(5 - i)) + ("too short",)) for i in range(4)
    )
    articles = [Article(f"A{k}", sections) for k in range(3)] + [Article("one section", sections[:1])]
    triplets = section_triplets(articles, seed=3)
    assert len(triplets) == 3 * (2 + 2 + 1 + 1)
    for triplet in triplets:
        section = [text.split()[3] for text in (triplet.anchor, triplet.positive, triplet.negative)]
        assert section[0] == section[1] != section[2]
        assert triplet.anchor != triplet.positive
    assert section_triplets([]) == []


def test_a_sentence_of_both_sections_is_no_negative():
    both = Section("a", ("one two three four five", "six seven eight nine ten"))
    other = Section("b", ("one two three four five", "eleven twelve thirteen fourteen fifteen"))
    for seed in range(20):
        for triplet in section_triplets([Article("x", (both, other))], seed=seed):
            assert triplet.negative not in (triplet.anchor, triplet.positive)
    assert section_triplets([Article("x", (both, both))]) == []
    with pytest.raises(InputError, match="min_words is 0"):
        section_triplets([], min_words=0)


def test_what_is_broken(tmp_path):
    (tmp_path / "x.txt").write_text("\ntext\n\n = Title = \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.txt, line 2: text stands before the first title"):
        read_articles(tmp_path / "x.txt")
    home = tmp_path / "wikitext2"
    home.mkdir()
    (home / "test.txt").write_text(TEXT, encoding="utf-8")
    with pytest.raises(DataError, match="2 articles, 60 expected"):
        read_articles(home / "test.txt")
    with pytest.raises(DataNotFoundError):
        read_articles(home / "valid.txt")


DOR = "id,Sentence1,Sentence2,Sentence3,Article Title,Section 1&2,Section 3\n"


def test_the_triplets_of_dor_et_al(tmp_path):
    path = tmp_path / "test.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (DOR + '0,"a, ""b""",c,d,T,S,R\n').replace("\n", "\r\n").encode())
    assert read_section_triplets(path) == [TextTriplet('a, "b"', "c", "d")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOR + "0,a,b,c,T,S\n", "line 2: 6 columns, 7 expected"),
        (DOR + "0,a,,c,T,S,R\n", "line 2: a text is empty"),
        (DOR + '0,a,"b,c,T,S,R\n', "line 2: the row that starts here is not CSV"),
        ("a,b,c\n", "line 1: no column 'sentence1'"),
        (DOR + "0,a,b,c,T,S,R\n", "1 triplets, 222957 expected"),
    ],
)
def test_triplets_of_dor_et_al_that_are_broken(tmp_path, text, message):
    home = tmp_path / "wikipedia-sections-triplets"
    home.mkdir()
    (home / "test.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_section_triplets(home / "test.csv")
