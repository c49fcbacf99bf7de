"""likewise data"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from likewise.cli.options import print_json

__all__ = ["data"]

_EXAMPLE = """\b
Examples:
  likewise data list
  likewise data check ~/data sts12 stsbenchmark
  likewise data fetch cad_nli --to ~/data
"""


@click.group(short_help="List, check and fetch data sets.", epilog=_EXAMPLE)
def data() -> None:
    """Data sets: what they are, whether a copy is whole, and how to get one from its original source."""


@data.command(name="list", short_help="What is known of each set.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one a set.")
def list_sets(as_json: bool) -> None:
    """Name, content, licence and origin of every data set that the readers know."""
    from likewise.data.catalogue import CATALOGUE

    for dataset in CATALOGUE.values():
        downloads = [asdict(download) for download in dataset.downloads]
        if as_json:
            row = {key: getattr(dataset, key) for key in ("name", "about", "licence", "source")}
            print_json({**row, "downloads": downloads})
        else:
            click.echo(
                f"{dataset.name}\n    {dataset.about}\n    licence: {dataset.licence}\n    from: {dataset.source}"
            )
            how = f"likewise data fetch {dataset.name} --to ." if downloads else "by hand"
            checked = all(download["checksum"] for download in downloads)
            reason, option = ("", "") if checked else (" (no checksum is published)", " --unverified")
            click.echo(f"    get it{reason}: {how}{option}")


@data.command(short_help="Whether local copies are whole.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one a set.")
def check(folder: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Read each set in FOLDER (all known ones, or those NAMES) and compare its counts with those published.

    Also checked: columns, labels, ranges of scores, texts that are not empty, ids that belong together. Not checked:
    the texts themselves, since good copies differ in line ends and format. A text that was changed passes, and so do
    two files of equal length whose names were swapped.

    Ends with exit code 1 if a set is incomplete, or one that was named is absent.
    """
    from likewise.data.catalogue import CATALOGUE, known
    from likewise.data.dataset import check as check_set

    broken = False
    for dataset in [known(name) for name in names] or list(CATALOGUE.values()):
        state = check_set(dataset, folder)
        broken |= state.state == "incomplete" or (bool(names) and state.state == "absent")
        if as_json:
            print_json(asdict(state))
            continue
        rows = f"{state.n_rows:>9,} {state.unit}" if state.n_rows else ""
        click.echo(f"{state.name:<30}{state.state:<12}{rows}".rstrip())
        for reason in state.reasons if state.state == "incomplete" or names else ():
            click.echo(f"    {reason}")
    if broken:
        sys.exit(1)


@data.command(short_help="Download a set from its original source.")
@click.argument("name")
@click.option(
    "--to",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder in which the folder NAME is made.",
)
@click.option("--unverified", is_flag=True, help="Take files of which no checksum is known.")
def fetch(name: str, folder: Path, unverified: bool) -> None:
    """Download the data set NAME, check and unpack it; whole or not at all."""
    from likewise.data.catalogue import known
    from likewise.data.dataset import check as check_set
    from likewise.data.fetch import fetch as fetch_set

    dataset = known(name)
    with _bar() as progress:
        target = fetch_set(dataset, folder, unverified=unverified, progress=progress)
    state = check_set(dataset, folder)
    click.echo(f"wrote {target}: {state.state}, {state.n_rows:,} {state.unit}; licence: {dataset.licence}", err=True)
    for reason in state.reasons:
        click.echo(f"    {reason}", err=True)


@contextmanager
def _bar() -> Iterator[Callable[[str, int], None]]:
    """Counts bytes on standard error, on a terminal only."""
    from tqdm import tqdm

    with tqdm(unit="B", unit_scale=True, disable=not sys.stderr.isatty()) as bar:

        def progress(url: str, n_bytes: int) -> None:
            bar.set_description(url.rpartition("/")[2], refresh=False)
            bar.update(n_bytes)

        yield progress
