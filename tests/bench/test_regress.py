"""Regression suites: parsing, outcomes of tests, and engines that fail."""

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.strength import regress
from bench.strength.regress import (
    ERROR,
    FAILED,
    LEFT_OUT,
    PASSED,
    Examinee,
    Expectation,
    SuiteResult,
    command,
    parse_suite,
    run_suite,
)

ENGINE = f"{sys.executable} {Path(__file__).parents[1] / 'data' / 'gtp_engine.py'}"
SUITE = """\
# A comment
boardsize 9
10 reg_genmove black  # another
#? [D4|E5]*

20 name
#? [!(gnu)]
30 cputime
#? [.*]&
40 final_score
#? [W\\+0.5 .*]
50 version
#? [open
"""


def test_a_suite_is_read():
    steps = parse_suite(SUITE)
    assert [(step.line, step.number, step.command) for step in steps] == [
        (2, 0, "boardsize 9"), (3, 10, "reg_genmove black"), (6, 20, "name"), (8, 30, "cputime"),
        (10, 40, "final_score"), (12, 50, "version"),
    ]  # fmt: skip
    assert [step.expected and (str(step.expected), step.expected.may_fail) for step in steps] == [
        None, ("D4|E5", True), ("!(gnu)", False), None, ("W\\+0.5 .*", False), ("open", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "answer", "passes"),
    [
        ("D4|E5", "E5", True),
        ("D4|E5", "E55", False),
        ("D4|E5", "E4", False),
        ("PASS", "pass", True),
        ("!D4", "D4", False),
        ("!D4", "E4", True),
        ("!(D4|E5)", "E5", False),
        (r"W\+0.5 .*", "W+0.5 (upper bound: 1, lower: 0)", True),
        ("A1.*", "A1\nB2", True),
        ("", "", True),
    ],
)
def test_patterns_match_whole_answers(pattern, answer, passes):
    (step,) = parse_suite(f"1 name\n#? [{pattern}]")
    assert step.expected.passes(answer) is passes


@pytest.mark.parametrize("behind", ["", "*", " *", "* # known", " # see [D5]"])
def test_what_stands_behind_a_pattern_is_no_part_of_it(behind):
    (step,) = parse_suite(f"1 name\n#? [[A-D]4]{behind}")
    assert step.expected == Expectation("[A-D]4", False, "*" in behind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 name\n#? [D4]* known bug", "line 2: '#? [D4]* known bug', expected #? [PATTERN]"),
        ("#? [D4]", "line 1: an expectation without a test before it"),
        ("name\n#? [D4]", "line 2: an expectation without a test before it"),
        ("1 name\n#? [D4]\n#? [D5]", "line 3: an expectation without a test before it"),
        ("1 name\n#? D4", "line 2: '#? D4', expected #? [PATTERN]"),
        ("1" * 5000 + " name\n#? [D4]", "line 2: an expectation without a test before it"),
        ("1 name\n#? [(]", "line 2: '(' is not a regular expression: "),
    ],
)
def test_a_broken_suite_is_refused(text, message):
    with pytest.raises(ValueError) as error:
        parse_suite(text)
    assert str(error.value).startswith(message)


def result_of(tmp_path: Path, text: str, habit: str = "") -> list[tuple[int, str, str]]:
    """Number, status and answer of each test of a suite."""
    file = tmp_path / "some.tst"
    file.write_text(text)
    with closing(Examinee(f"{ENGINE} {habit}", tmp_path, 60.0)) as engine:
        return [(found.number, found.status, found.answer) for found in run_suite(engine, file).outcomes]


def test_every_kind_of_end(tmp_path):
    (tmp_path / "game.sgf").write_text("(;)")
    outcomes = result_of(
        tmp_path,
        """\
1 name
#? [random]
2 version
#? [2]
3 reg_genmove black
#? [D4]
boardsize 9
play black D4
4 final_score
#? [B.73.5]*
5 play black D4
#? []
6 name
#? [.*]
boardsize 99
7 name
#? [.*]
clear_board
trymove black D4
8 name
#? [.*]
loadsgf missing.sgf 3
9 name
#? [.*]
boardsize 9
10 name
#? [.*]
""",
    )
    assert outcomes == [
        (1, PASSED, "Random"),
        (2, FAILED, "1"),
        (3, LEFT_OUT, "the engine does not list reg_genmove"),
        (4, PASSED, "B+73.5"),
        (5, ERROR, "play black D4: illegal move"),
        (6, PASSED, "Random"),
        (7, ERROR, outcomes[6][2]),
        (8, LEFT_OUT, "the engine does not list trymove"),
        (9, LEFT_OUT, "the engine does not list loadsgf"),
        (10, PASSED, "Random"),
    ]
    assert outcomes[6][2].startswith("boardsize 99: unacceptable size")


def test_an_engine_that_breaks_down_is_started_anew(tmp_path):
    moves = "genmove black\n" * 3
    text = f"1 name\n#? [Random]\nboardsize 9\n{moves}2 name\n#? [Random]\nboardsize 9\n3 name\n#? [Random]\n"
    outcomes = result_of(tmp_path, text, "crash")
    assert [status for _, status, _ in outcomes] == [PASSED, ERROR, PASSED]


def test_a_suite_owes_nothing_to_those_before(tmp_path):
    (tmp_path / "a.tst").write_text("boardsize 9\nkomi 0.5\n10 get_komi\n#? [0.5]\n")
    (tmp_path / "b.tst").write_text("boardsize 9\n10 get_komi\n#? [7.5]\n")
    with closing(Examinee(ENGINE, tmp_path, 60.0)) as engine:
        results = [run_suite(engine, tmp_path / name) for name in ("a.tst", "b.tst")]
    assert [result.count(PASSED) for result in results] == [1, 1]


def test_table_and_json(tmp_path):
    for name, text in {"a.tst": "1 name\n#? [Random]\n2 cputime\n#? [0]", "b.tst": "1 version\n#? [2]*\n"}.items():
        (tmp_path / name).write_text(text)
    figures = tmp_path / "all.json"
    files = [str(tmp_path / name) for name in ("a.tst", "b.tst")]
    answer = CliRunner().invoke(command, [*files, "--engine", ENGINE, "--failures", "--json", str(figures)])
    assert answer.exit_code == 0, answer.output
    fault, header, *rows = answer.stdout.splitlines()
    assert fault == "b.tst:1 1 version: failed, wanted 2, got '1'"
    assert header.split() == ["tests", "passed", "rate", "wanted", "errors", "left", "out", "seconds"]
    assert [row.split()[:7] for row in rows] == [
        ["a.tst", "1", "1", "100.0%", "1", "0", "1"],
        ["b.tst", "1", "0", "0.0%", "0", "0", "0"],
        ["all", "2", "1", "50.0%", "1", "0", "1"],
    ]
    found = json.loads(figures.read_text())
    assert [(file["file"], file["passed"], file["failed"], file["left out"]) for file in found["files"]] == [
        ("a.tst", 1, 0, 1), ("b.tst", 0, 1, 0),
    ]  # fmt: skip


def two_suites(tmp_path):
    """Files of one test each, in folders of their own, so that the engine is started for each."""
    files = [tmp_path / name / f"{name}.tst" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text("1 version\n#? [2]\n")
    return [str(file) for file in files]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_the_table_is_printed_where_an_engine_does_not_come_back(tmp_path):
    once = tmp_path / "once"
    engine = f"sh -c '[ -e {once} ] && exit 3; touch {once}; exec {ENGINE}'"
    answer = CliRunner().invoke(command, [*two_suites(tmp_path), "--engine", engine])
    assert answer.exit_code == 1
    assert "Error: engine ended with status 3" in answer.stderr
    header, row = answer.stdout.splitlines()
    assert header.split()[0] == "tests" and row.split()[:3] == ["a.tst", "1", "0"]


def test_what_a_suite_has_shown_is_kept_before_the_next_one(tmp_path, monkeypatch):
    """A kill loses the suite that runs, and no other."""
    path, found = tmp_path / "all.json", [SuiteResult("a.tst", 1.0, [OUTCOME])]
    monkeypatch.setattr(regress, "run_suite", lambda *_: found.pop())
    with pytest.raises(IndexError):
        words = [*two_suites(tmp_path), "--engine", ENGINE, "--failures", "--json", str(path)]
        CliRunner().invoke(command, words, catch_exceptions=False)
    assert [file["file"] for file in json.loads(path.read_text())["files"]] == ["a.tst"]


OUTCOME = regress.Outcome(1, 1, "version", "2", False, FAILED, "1")


@pytest.mark.parametrize(
    ("engine", "message"),
    [("/nowhere/engine", "Error: cannot start '/nowhere/engine'"), ("", "Error: empty command line")],
)
def test_an_engine_that_cannot_be_started_is_one_line(tmp_path, engine, message):
    (tmp_path / "a.tst").write_text("1 name\n#? [x]\n")
    answer = CliRunner().invoke(command, [str(tmp_path / "a.tst"), "--engine", engine])
    assert answer.exit_code == 1
    assert answer.stderr.startswith(message) and answer.stderr.count("\n") == 1
