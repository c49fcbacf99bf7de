"""Rules about the project itself: sizes, docstrings, links, decisions, and what no file may name.

Each rule is a function from text to faults, so that the last tests can show that it is able to fail.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))

MODULE_LINES = 400
BODY_LINES = 60
PUBLIC_METHODS = 12
DECISION_LINES = 40

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Written with [x] so that no pattern matches itself.
MACHINE_PATHS = r"/wor[k]/\w+|/ro[o]t/\w|/hom[e]/\w+/|/User[s]/\w+/|/op[t]/(wheels|pypi)|[A-Z]:\\User[s]\\"
REGISTRY_HOSTS = (
    r"pypi\.or[g]|pythonhosted\.or[g]|download\.pytorch\.or[g]|registry\.npmjs\.or[g]|deb\.debian\.or[g]"
    r"|prox[y]\.golang\.org|index\.crates\.i[o]"
)
WORKSHOP_TALK = (
    r"\b(?i:AI|agent|assistant|coding|developer|earlier|later|next|previous) session[s]?\b"
    r"|\b(?i:claud[e]|chatgp[t]|copilo[t]|anthropi[c])\b"
    r"|\b(?i:AI|coding|autonomous) agent[s]?\b"
)


# ------------------------------------------------------------------------------------------ the rules


def size_faults(text: str) -> Iterator[str]:
    """Modules, functions and classes longer than a reader can hold."""
    n_lines = len(text.splitlines())
    if n_lines > MODULE_LINES:
        yield f"module of {n_lines} lines, at most {MODULE_LINES}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS) and (length := _body_lines(node)) > BODY_LINES:
            yield f"line {node.lineno}: {node.name} has a body of {length} lines, at most {BODY_LINES}"
        if isinstance(node, ast.ClassDef) and (count := len(_public_methods(node))) > PUBLIC_METHODS:
            yield f"line {node.lineno}: {node.name} has {count} public methods, at most {PUBLIC_METHODS}"


def docstring_faults(text: str, documented: set[str] = frozenset()) -> Iterator[str]:  # type: ignore[assignment]
    """Public names without a docstring; a method may take that of the interface it fulfils.

    Args:
        text: The module.
        documented: "Class.method" of every documented method of the package.
    """
    module = ast.parse(text)
    if module.body and ast.get_docstring(module) is None:
        yield "line 1: the module has no docstring"
    for node in _public(module.body):
        if ast.get_docstring(node) is None:
            yield f"line {node.lineno}: {node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            bases = [base for base in map(_base_name, node.bases) if base]
            for method in _public(node.body):
                inherited = any(f"{base}.{method.name}" in documented for base in bases)
                if ast.get_docstring(method) is None and not inherited and not _is_echo(method):
                    yield f"line {method.lineno}: {node.name}.{method.name} has no docstring"


def name_faults(text: str) -> Iterator[str]:
    """Names of one machine, of a package registry, or of how the project came to be written."""
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in (
            ("machine path", MACHINE_PATHS),
            ("registry host", REGISTRY_HOSTS),
            ("talk about the workshop", WORKSHOP_TALK),
        ):
            if found := re.search(pattern, line):
                yield f"line {number}: {what} {found.group()!r}"


def link_faults(text: str, folder: Path) -> Iterator[str]:
    """Links of a Markdown page to local files that do not exist."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        path = target.partition("#")[0]
        if path and "://" not in path and not path.startswith("mailto:") and not (folder / path).exists():
            yield f"link to {target}, which does not exist"


def decision_faults(text: str) -> Iterator[str]:
    """Decisions that are long, or lack a part."""
    n_lines = len(text.splitlines())
    if n_lines > DECISION_LINES:
        yield f"{n_lines} lines, at most {DECISION_LINES}"
    for part in ("Context", "Decision", "Consequences"):
        if f"## {part}" not in text:
            yield f"no section {part!r}"


def _body_lines(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def _public_methods(node: ast.ClassDef) -> set[str]:
    return {method.name for method in _public(node.body) if not _decorators(method) & {"property"}}


def _public(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            yield node


def _is_echo(node: Function | ast.ClassDef) -> bool:
    """A setter or an overload: the docstring stands on the definition it belongs to."""
    return bool(_decorators(node) & {"setter", "deleter", "overload", "override"})


def _decorators(node: Function | ast.ClassDef) -> set[str]:
    names = (_base_name(decorator) for decorator in node.decorator_list)
    return {"property" if name == "cached_property" else name for name in names if name}


def _base_name(node: ast.expr) -> str | None:
    """`a.b.Name[x](y)` -> "Name"."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _documented_methods() -> set[str]:
    return {
        f"{node.name}.{method.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for method in _public(node.body)
        if ast.get_docstring(method) is not None
    }


def _tracked() -> list[Path]:
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def _text(path: Path) -> str:
    """The file's text; empty for a file that is not text."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return ""


# ---------------------------------------------------------------------------------------- the project


def _all_faults(paths: list[Path], rule: Callable[[Path], Iterator[str]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}: {fault}" for path in paths for fault in rule(path)]


def test_there_is_something_to_check() -> None:
    assert SOURCES
    assert DECISIONS


def test_sizes_stay_readable() -> None:
    assert _all_faults(SOURCES, lambda path: size_faults(_text(path))) == []


def test_every_public_name_has_a_docstring() -> None:
    public = [path for path in SOURCES if not re.search(r"/_(?!_init__|_main__)", path.as_posix())]
    documented = _documented_methods()
    assert _all_faults(public, lambda path: docstring_faults(_text(path), documented)) == []


def test_no_file_names_a_machine_or_the_workshop() -> None:
    assert _all_faults(_tracked(), lambda path: name_faults(_text(path))) == []


def test_local_links_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    assert _all_faults(pages, lambda path: link_faults(_text(path), path.parent)) == []


def test_decisions_are_short_and_whole() -> None:
    assert _all_faults(DECISIONS, lambda path: decision_faults(_text(path))) == []


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [path.name[:4] for path in DECISIONS]
    assert numbers == [f"{number:04d}" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(
    ("target", "makes", "clears"), [("setup", True, True), ("demo", True, False), ("bench-report", False, False)]
)
def test_only_setup_clears_an_environment(target: str, makes: bool, clears: bool, tmp_path: Path) -> None:
    asked = ["make", "--dry-run", target, f"VENV={tmp_path / 'venv'}"]
    planned = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert ("-m venv" in planned) == ("pip install" in planned) == makes
    assert ("--clear" in planned) == clears


# ------------------------------------------------------------------------- each rule is able to fail

DOCUMENTED = '"""Module."""\n'


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (size_faults, "x = 1\n" * (MODULE_LINES + 1)),
        (size_faults, "def f():\n" + "    x = 1\n" * (BODY_LINES + 1)),
        (
            size_faults,
            "class A:\n" + "".join(f"    def f{i}(self): ...\n" for i in range(PUBLIC_METHODS + 1)),
        ),
        (docstring_faults, "x = 1\n"),
        (docstring_faults, DOCUMENTED + "def f(): ...\n"),
        (docstring_faults, DOCUMENTED + "class A: ...\n"),
        (docstring_faults, DOCUMENTED + 'class A(B):\n    """A."""\n    def f(self): ...\n'),
        (name_faults, "see /wor" + "k/main"),
        (name_faults, "from https://pypi" + ".org/simple"),
        (name_faults, "left for a later " + "session"),
        (decision_faults, "## Context\n## Decision\n## Consequences\n" + "\n" * DECISION_LINES),
        (decision_faults, "## Context\n## Decision\n"),
    ],
)
def test_a_rule_can_fail(rule: Callable[[str], Iterator[str]], text: str) -> None:
    assert len(list(rule(text))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (size_faults, "x = 1\n" * MODULE_LINES),
        (size_faults, 'def f():\n    """D."""\n' + "    x = 1\n" * BODY_LINES),
        (docstring_faults, ""),
        (docstring_faults, DOCUMENTED + "def _f(): ...\nclass _A:\n    def f(self): ...\n"),
        (name_faults, '@pytest.fixture(scope="session")'),
        (decision_faults, "## Context\n## Decision\n## Consequences\n"),
    ],
)
def test_a_rule_can_be_kept(rule: Callable[[str], Iterator[str]], text: str) -> None:
    assert list(rule(text)) == []


def test_a_method_may_take_the_docstring_of_its_interface() -> None:
    text = DOCUMENTED + 'class A(B[int]):\n    """A."""\n    def f(self): ...\n'
    assert list(docstring_faults(text, {"B.f"})) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    assert list(link_faults("[a](there.md#part) [b](https://example.org/x) `[c](not a link)`", tmp_path)) == []
    assert len(list(link_faults("[a](gone.md)", tmp_path))) == 1
