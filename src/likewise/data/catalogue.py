"""The data sets that the readers know: what they are, their licence, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from likewise.data.arguments import read_arguments
from likewise.data.classification import CLASSIFICATION_TASKS, read_classification
from likewise.data.dataset import DataSet, Download, Part
from likewise.data.duplicates import read_mrpc, read_qqp
from likewise.data.ists import read_ists
from likewise.data.lines import read_lines
from likewise.data.nli import read_nli, read_nli_triplets
from likewise.data.retrieval import read_beir
from likewise.data.rows import Rows, chosen, expect, find
from likewise.data.sections import read_articles, read_section_triplets
from likewise.data.sick import read_sick
from likewise.data.sts import STS_SOURCES, read_sts, read_stsb

__all__ = ["CATALOGUE", "known"]


def known(name: str) -> DataSet:
    """The entry of that name.

    Raises:
        DataError: There is none.
    """
    return CATALOGUE[chosen(name, CATALOGUE, "data set")]


def _in(home: str, read: Callable[[Path], Sequence[object]], *names: str) -> Part:
    """The first of some files in the folder of the set, read by a reader of files."""

    def part(folder: Path) -> int:
        own = folder if folder.absolute().name == home else folder / home
        return len(read(find(own, names, home)))

    return part


def _splits(read: Callable[[Path, str], Sequence[object]], *splits: str) -> dict[str, Part]:
    """Splits read by a reader of folders."""

    def part(split: str) -> Part:
        return lambda folder: len(read(folder, split))

    return {split: part(split) for split in splits}


def _ists(name: str, split: str) -> Part:
    return lambda folder: len(read_ists(folder, name, split))


def _transfer(task: str) -> Part:
    return lambda folder: sum(map(len, read_classification(folder, task).values()))


def _judged(folder: Path, split: str) -> list[str]:
    return [document for documents in read_beir(folder, split).relevant.values() for document in documents]


def _counted(n: int) -> Callable[[Path], Rows[str]]:
    """A reader of plain lines that must be `n`; one file of captions was published without a newline at its end."""
    return lambda path: expect(Rows(line for _, line in read_lines(path)), n, path, "lines", newline_at_end=False)


def _sts(year: str) -> DataSet:
    address = {
        "STS12": "4/40/STS2012-en-test.zip",
        "STS13": "2/2f/STS2013-en-test.zip",
        "STS14": "8/8c/STS2014-en-test.zip",
        "STS15": "d/da/STS2015-en-test.zip",
        "STS16": "9/98/STS2016-en-test.zip",
    }[year]
    n = len(STS_SOURCES[year])
    return DataSet(
        year.lower(),
        f"SemEval-20{year[3:]} semantic textual similarity, English test pairs of {n} sources, gold 0 to 5",
        "differs by source; research use, see its readme (MSRpar and MSRvid: Microsoft's terms)",
        "http://ixa2.si.ehu.eus/stswiki",
        {"test": lambda folder: sum(map(len, read_sts(folder, year).values()))},
        (Download(f"http://ixa2.si.ehu.es/stswiki/images/{address}", address.rpartition("/")[2]),),
        unit="scored pairs",
    )


def _nli(home: str, *names: str) -> Part:
    return _in(home, read_nli, *names)


def _github(repository: str, commit: str, path: str, name: str, sha256: str) -> Download:
    return Download(f"https://raw.githubusercontent.com/{repository}/{commit}/{path}", name, f"sha256:{sha256}")


_TEXTS = "as their sources say; research use"
_SNLI_PAGE = "https://nlp.stanford.edu/projects/snli/"
_CAD = ("acmi-lab/counterfactually-augmented-data", "24d94ba4fccde76af36b051d5ca8acb9d5b8f084")
_CONJ = ("swarnaHub/ConjNLI", "badeab73816176cdcb825d95f23ec6e952a8a223")

_PAIRS = (
    DataSet(
        "stsbenchmark",
        "STS benchmark: 8,628 pairs of the STS tasks in train, dev and test, gold 0 to 5",
        "differs by source; research use, see its LICENSE.txt",
        "http://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark",
        _splits(read_stsb, "train", "dev", "test"),
        (Download("http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz", "Stsbenchmark.tar.gz"),),
        unit="pairs",
    ),
    DataSet(
        "sick",
        "SICK: relatedness 1 to 5 and entailment of 9,927 pairs about pictures",
        "CC BY-NC-SA 3.0",
        "https://zenodo.org/record/2787612",
        _splits(read_sick, "train", "dev", "test"),
        (Download("https://zenodo.org/record/2787612/files/SICK.zip", "SICK.zip"),),
        unit="pairs",
    ),
    DataSet(
        "ists2016",
        "SemEval-2016 task 2, interpretable STS: gold chunks and alignments; test and train",
        "differs by source; images CC BY-SA",
        "http://alt.qcri.org/semeval2016/task2/",
        {
            f"{name} {split}": _ists(name, split)
            for name, split in (
                ("images", "test"),
                ("headlines", "test"),
                ("images", "train"),
                ("headlines", "train"),
                ("answers-students", "train"),
            )
        },
        unit="pairs",
    ),
    DataSet(
        "qqp",
        "Quora question pairs, dev and test of the common split: duplicates or not",
        "Quora's terms of service; non-commercial",
        "https://quoradata.quora.com/First-Quora-Dataset-Release-Question-Pairs",
        _splits(read_qqp, "dev", "test"),
        unit="pairs",
    ),
    DataSet(
        "mrpc",
        "Microsoft research paraphrase corpus: 5,801 pairs, paraphrases or not",
        "Microsoft shared source licence; research use",
        "https://www.microsoft.com/en-us/download/details.aspx?id=52398",
        _splits(read_mrpc, "train", "test"),
        tuple(
            Download(f"https://dl.fbaipublicfiles.com/senteval/senteval_data/{name}", name)
            for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")
        ),
        unit="pairs",
    ),
    DataSet(
        "afs",
        "Argument facet similarity: pairs of arguments on three topics, gold 0 to 5",
        "ask its authors",
        "https://nlds.soe.ucsc.edu/ (Misra, Ecker & Walker 2016)",
        {topic: _in("afs", read_arguments, f"ArgPairs_{topic}.csv") for topic in ("GC", "GM", "DP")},
        unit="pairs",
    ),
    DataSet(
        "bws_argument_similarity",
        "BWS argument similarity: 3,400 pairs on 8 topics, gold 0 to 1",
        "MIT (its repository)",
        "Thakur et al. 2021, Augmented SBERT",
        {"all": _in("bws_argument_similarity", read_arguments, "BWS_corpus.csv")},
        unit="pairs",
    ),
    DataSet(
        "ukp_aspect",
        "UKP argument aspect similarity: 3,595 pairs on 28 topics, four classes",
        "see its page",
        "Reimers et al. 2019, Classification and clustering of arguments (UKP Lab, TU Darmstadt)",
        {"all": _in("ukp_aspect", read_arguments, "UKP_ASPECT.tsv")},
        unit="pairs",
    ),
)

_INFERENCE = (
    DataSet(
        "snli",
        "Stanford natural language inference, dev and test",
        "CC BY-SA 4.0",
        _SNLI_PAGE,
        {
            split: _nli("snli", *(f"snli_1.0_{split}.{ending}" for ending in ("csv", "jsonl", "txt")))
            for split in ("dev", "test")
        },
        (Download(f"{_SNLI_PAGE}snli_1.0.zip", "snli_1.0.zip"),),
        unit="labelled pairs",
    ),
    DataSet(
        "multinli",
        "Multi-genre natural language inference, dev matched and mismatched",
        "differs by genre; mostly the OANC's, see the paper",
        "https://cims.nyu.edu/~sbowman/multinli/",
        {
            split: _nli("multinli", *(f"multinli_1.0_dev_{split}.{ending}" for ending in ("csv", "jsonl", "txt")))
            for split in ("matched", "mismatched")
        },
        (Download("https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip", "multinli_1.0.zip"),),
        unit="labelled pairs",
    ),
    DataSet(
        "xnli_en",
        "XNLI, the English validation and test pairs",
        "CC BY-NC 4.0",
        "https://github.com/facebookresearch/XNLI",
        {split: _nli("xnli_en", f"xnli_{split}_en.tsv") for split in ("validation", "test")},
        unit="labelled pairs",
    ),
    DataSet(
        "cad_nli",
        "Counterfactually augmented NLI: 11,330 pairs",
        "Apache-2.0",
        f"https://github.com/{_CAD[0]}",
        {split: _nli("cad_nli", f"all_combined/{split}.tsv") for split in ("train", "dev", "test")},
        tuple(
            _github(*_CAD, f"NLI/all_combined/{split}.tsv", f"all_combined/{split}.tsv", digest)
            for split, digest in (
                ("train", "b04c0e249b71949345afc20f8c31c355533a705a68805492f21cddc49d27234f"),
                ("dev", "35c585cef5fc68e3713ee4bac83242aa7c4bfc6b51f16e9745b674c358ebd500"),
                ("test", "585ea3630ed64f6976d5ce1fd8c519c46c102659a012b7e9cbe48ec03503d977"),
            )
        ),
        unit="labelled pairs",
    ),
    DataSet(
        "taxinli",
        "TaxiNLI: 10,071 MultiNLI pairs with kinds of reasoning (7,871 are MultiNLI dev pairs)",
        "see its page",
        "https://github.com/microsoft/TaxiNLI",
        {"all": _nli("taxinli", "taxinli10k.tsv")},
        unit="labelled pairs",
    ),
    DataSet(
        "conjnli",
        "ConjNLI: pairs about conjunctions, dev and 15,000 machine-made for training",
        "not stated",
        f"https://github.com/{_CONJ[0]}",
        {"dev": _nli("conjnli", "conj_dev.tsv"), "train": _nli("conjnli", "adversarial_train_15k.tsv")},
        (
            _github(
                *_CONJ,
                "data/NLI/conj_dev.tsv",
                "conj_dev.tsv",
                "6dc560fa1d6c0b7377c499db0b9d400761da1e54fece0d64f3f60f4e392b7545",
            ),
            _github(
                *_CONJ,
                "data/NLI/adversarial_train_15k.tsv",
                "adversarial_train_15k.tsv",
                "00133a82516686b321cf8e0077935a975e7d924f04dda5b7c655e5886996de33",
            ),
        ),
        unit="labelled pairs",
    ),
    DataSet(
        "nli_for_simcse",
        "SimCSE's 275,601 triplets of SNLI and MultiNLI",
        "those of SNLI and MultiNLI",
        "https://github.com/princeton-nlp/SimCSE",
        {"all": _in("nli_for_simcse", read_nli_triplets, "nli_for_simcse.csv")},
        (
            Download(
                "https://huggingface.co/datasets/princeton-nlp/datasets-for-simcse/resolve/main/nli_for_simcse.csv",
                "nli_for_simcse.csv",
            ),
        ),
        unit="triplets",
    ),
)

_OTHERS = (
    DataSet(
        "senteval_transfer",
        f"SentEval's transfer tasks {', '.join(CLASSIFICATION_TASKS)}, tokenised",
        _TEXTS,
        "https://github.com/facebookresearch/SentEval",
        {task: _transfer(task) for task in CLASSIFICATION_TASKS},
        unit="texts",
    ),
    DataSet(
        "wikitext2",
        "WikiText-2, valid and test: 120 Wikipedia articles with headings",
        "CC BY-SA 3.0",
        "Merity et al. 2017, Pointer sentinel mixture models",
        {split: _in("wikitext2", read_articles, f"{split}.txt", f"wiki.{split}.tokens") for split in ("valid", "test")},
        unit="articles",
    ),
    DataSet(
        "wikipedia-sections-triplets",
        "Wikipedia sections of Dor et al.: 222,957 test triplets",
        "CC BY-SA 3.0 (Wikipedia)",
        "Dor et al. 2018 (IBM Debater data sets)",
        {"test": _in("wikipedia-sections-triplets", read_section_triplets, "test.csv")},
        unit="triplets",
    ),
    DataSet(
        "scifact",
        "SciFact in BEIR's format: 5,183 abstracts, 1,109 claims",
        "see its page (the claims and the abstracts have their own)",
        "https://github.com/allenai/scifact",
        _splits(_judged, "test", "train"),
        (
            Download(
                "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/scifact.zip",
                "scifact.zip",
                "md5:5f7d1de60b170fc8027bb7898e2efca1",
            ),
        ),
        unit="judgements",
    ),
    DataSet(
        "flickr8k",
        "Flickr8k captions, five a picture",
        _TEXTS,
        "Hodosh et al. 2013",
        {"all": _in("flickr8k", _counted(40_460), "Flickr8k.token.txt")},
        unit="captions",
    ),
    DataSet(
        "captions_vse",
        "COCO and Flickr30k captions, dev and test",
        _TEXTS,
        "Faghri et al. 2018 (VSE++)",
        {
            name: _in("captions_vse", _counted(n), f"{name}_caps.txt")
            for name, n in (
                ("coco_precomp/dev", 5_000),
                ("coco_precomp/testall", 25_000),
                ("f30k_precomp/dev", 5_070),
                ("f30k_precomp/test", 5_000),
            )
        },
        unit="captions",
    ),
    DataSet(
        "multi30k",
        "Multi30k, the English captions",
        _TEXTS,
        "https://github.com/multi30k/dataset",
        {split: _in("multi30k", _counted(n), f"{split}.en") for split, n in (("train", 29_000), ("val", 1_014))},
        unit="captions",
    ),
    DataSet(
        "ag_news",
        "AG news, test: titles and first sentences",
        "non-commercial",
        "Zhang et al. 2015, Character-level convolutional networks",
        {"test": _in("ag_news", _counted(7_600), "test.csv")},
        unit="texts",
    ),
)

CATALOGUE: dict[str, DataSet] = {
    dataset.name: dataset for dataset in (*map(_sts, STS_SOURCES), *_PAIRS, *_INFERENCE, *_OTHERS)
}
"""Name → data set."""
