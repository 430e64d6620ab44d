"""The pages for people: what they name exists. tests/gtp/test_client_pages.py knows more of the clients' pages."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests.listed import LISTS, with_list

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIVING = [page for page in PAGES if "lab" not in page.relative_to(ROOT).parts]
"""Lab notes tell what was at their time."""
TABLED = [*PAGES, ROOT / "CHANGELOG.md", *sorted((ROOT / "weights").glob("*.md"))]
FOLDERS = ("engine", "gtp", "bench", "weights", "tests", "docs", ".ci", ".github")
PATH = re.compile(rf"({'|'.join(map(re.escape, FOLDERS))})(/[\w.-]+)*/?")


def test_every_path_that_a_page_names_exists():
    for page in LIVING:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        named = {word for word in re.findall(r"`([^`\n]+)`", text) if "/" in word and PATH.fullmatch(word)}
        missing = [word for word in sorted(named) if not ((ROOT / word).exists() or (ROOT / f"{word}.py").exists())]
        assert not missing, page


def headings(page):
    """Anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_lead_somewhere():
    for page in PAGES:
        links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        for link in (link for link in links if "://" not in link):
            file, _, heading = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), (page, link)
            assert not heading or heading in headings(target), (page, link)


def test_every_page_and_example_is_reached_from_the_readme():
    """By links alone; a link to a folder is one to its README."""
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        page = page / "README.md" if page.is_dir() else page
        if page in found or not page.is_file():
            continue
        found.add(page)
        if page.suffix == ".md":
            links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
            waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    wanted = {path for kind in ("*.md", "*.py") for path in (ROOT / "docs").rglob(kind)} | {ROOT / "CONTRIBUTING.md"}
    assert not sorted(wanted - found)


def test_every_module_and_target_that_a_page_calls_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for page in LIVING:
        text = page.read_text(encoding="utf-8")
        modules = {name for name in re.findall(r"python -m ([\w.]+)", text) if name.partition(".")[0] in FOLDERS}
        assert not [name for name in modules if importlib.util.find_spec(name) is None], page
        assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.M)) <= targets, page


def test_every_table_has_a_header_and_rows_of_its_width():
    """A blank line within a table makes plain text of what follows."""
    for page in TABLED:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for table in re.findall(r"(?:^\|.*\n?)+", text, re.M):
            rows = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in table.splitlines()]
            assert len(rows) > 2 and all(re.fullmatch(r" *:?-+:? *", cell) for cell in rows[1]), (page, rows[0])
            assert not [row for row in rows if len(row) != len(rows[1])], page


def test_nothing_is_installed_from_an_index_by_our_name():
    """There is no such package."""
    sources = [path for folder in ("engine", "gtp", "bench") for path in (ROOT / folder).rglob("*.py")]
    for path in (*LIVING, *sources):
        assert not re.search(r"install '?keima", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(("page", "name"), LISTS)
def test_what_a_page_lists_of_the_sources_is_that_of_today(page, name):
    text = "".join(LISTS[page, name]())
    assert with_list(ROOT / "docs" / page, name, text) == (ROOT / "docs" / page).read_text(encoding="utf-8"), (
        "make map writes it anew"
    )


def test_the_steps_of_the_search_are_called_what_the_page_calls_them():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d\. `(_\w+)`: ", page, re.M)
    worker = (ROOT / "engine" / "search" / "worker.py").read_text(encoding="utf-8")
    assert len(steps) == 7 and all(f"def {step}(" in worker for step in steps)


def rows_of_contributing():
    """The rows of its tables: what to change, where to begin, what else, and tests."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [line[2:-2].split(" | ") for line in text.splitlines() if re.match(r"\| (?!to change or add)", line)]


ROWS = rows_of_contributing()
FILE = re.compile(r"[\w./-]+(\.\w+|/)")
NAME = re.compile(r"([A-Za-z_][\w.]*?)(\.\.\.)?")


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_contributors_find_files_for_every_change(row):
    """Short rows; each begins with a file and names its tests; the files exist and have the names.

    A file without a folder lies in the folder of the file before it. ``FILE: NAME, NAME`` and ``NAME in FILE`` are
    names that a file has.
    """
    _, edit, more, tests = row
    assert len(" | ".join(row)) <= 360
    assert FILE.search(edit) and "`tests/" in tests
    folder = file = None
    waiting, expects_names = [], False
    for between, word in re.findall(r"([^`]*)`([^`]*)`", f"{edit}; {more}; {tests}"):
        if ";" in between:
            waiting, expects_names = [], False
        if FILE.fullmatch(word) and not word.startswith("."):
            file = ROOT / word if word.split("/")[0] in (*FOLDERS, "keima") else folder / word
            assert file.exists(), word
            folder = file if file.is_dir() else file.parent
            expects_names = False
            if between.endswith(" in ") and file.is_file():
                assert not [name for name in waiting if name not in file.read_text(encoding="utf-8")], word
            waiting = []
        elif NAME.fullmatch(word):
            expects_names |= between.startswith(":")
            if expects_names and file.is_file():
                text = file.read_text(encoding="utf-8")
                assert all(part in text for part in NAME.fullmatch(word)[1].split(".")), f"{word} in {file}"
            else:
                waiting.append(word)


def test_files_have_the_names_of_the_architecture():
    """``NAME (FILE)``, ``NAME in FILE`` and ``NAME of FILE``, where a file of the engine stands without its ending."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`(\w+)`\s(?:\(|in\s|of\s)`(?:engine/)?([\w/]+)(?:\.py)?`", page)
    assert len(pairs) > 20
    for name, file in pairs:
        assert re.search(rf"\b{name}\b", (ROOT / "engine" / f"{file}.py").read_text(encoding="utf-8")), (name, file)


def test_the_package_has_the_pages_reading_route():
    """The files it names, in its order."""

    def route(text):
        return re.findall(r"`((?:engine|gtp|bench)/[\w/]+(?:\.py|/))`", text)

    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    page = page.partition("## Reading route")[2].partition("\n## ")[0]
    package = ast.get_docstring(ast.parse((ROOT / "engine" / "__init__.py").read_text(encoding="utf-8")))
    assert route(page) == re.findall(r"((?:engine|gtp|bench)/[\w/]+(?:\.py|/))", package) != []
