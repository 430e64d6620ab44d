"""The campaign: parts, outcomes of cases, resuming, table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reliability import __main__ as campaign
from bench.reliability.campaign import NAMES, Part, Record, Row
from weights import DEFAULT

ROOT = Path(__file__).resolve().parents[2]
PART = Path(__file__).with_name("campaign_part.py").read_text(encoding="utf-8")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and needs SIGALRM")


def until(holds):
    """Wait; the time limit of tests is the bound."""
    while not holds():
        time.sleep(0.02)


def is_running(pid):
    """Whether a process lives and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the campaign with the test's own part in place of the fuzzer's, in a process of its own."""
    parts, out = tmp_path / "parts", tmp_path / "out"
    parts.mkdir()
    (parts / "fuzz.py").write_text(PART, encoding="utf-8")
    code = (
        "import signal, sys; from pathlib import Path; from bench.reliability import __main__ as campaign; "
        f"campaign.HERE = Path({str(parts)!r}); signal.signal(signal.SIGTERM, signal.default_int_handler); "
        "campaign.command(sys.argv[1:])"
    )

    def start(*options):
        command = [sys.executable, "-c", code, "fuzz", "--out", str(out), "--jobs", "2", *options]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.mark.parametrize("is_quick", [True, False])
def test_every_part_has_cases_and_its_row_in_the_docs(is_quick, capsys):
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = campaign.collected(NAMES, {"quick": is_quick, "games": None, "weights": DEFAULT}, "")
    assert [row.name for row in rows] == list(NAMES)
    for row in rows:
        assert f"| {row.part.title} | {row.part.wanted} |" in page
        assert row.amounts and all(amount > 0 for amount in row.amounts.values())
    sizes = {row.name: len(row.amounts) for row in rows}
    assert (sizes["clocked"], sizes["evaluator"]) == ((8, 4) if is_quick else (240, 96))


@LINUX
def test_whatever_goes_wrong_in_a_case_is_a_fault_and_finished_cases_are_not_run_again(run, tmp_path):
    process = run()
    output, errors = process.communicate()
    assert process.returncode == 1, errors
    figures = {found["name"]: found["value"] for found in map(json.loads, output.splitlines())}
    assert figures == {"reliability/fuzz": 5, "reliability/fuzz/faults": 6, "reliability/fuzz/worst": 3.0}
    assert "A part" in errors and "ValueError: wrong" in errors
    file = tmp_path / "out" / "fuzz.jsonl"
    found = {line["case"][len("fuzz.py::test_case[") : -len("-2]")]: line for line in map(json.loads, file.open())}
    assert {name: (len(line["faults"]), line["amount"]) for name, line in found.items()} == {
        "good": (0, 2), "faulty": (2, 1), "raises": (1, 0), "dies": (1, 0), "hangs": (1, 0), "stuck": (1, 0),
        "last": (0, 2),
    }  # fmt: skip
    assert "crashed" in found["dies"]["faults"][0] and "Timeout" in found["hangs"]["faults"][0]
    before = file.read_bytes()
    assert run().wait() == 1 and file.read_bytes() == before
    assert run("--again", "-k", "faulty or good").wait() == 1
    assert len(file.read_bytes().splitlines()) == len(before.splitlines()) + 1
    process = run("--report", "--markdown")
    assert process.communicate()[0].startswith("| A part | no faults | 5 of 14 things; 6 faults; worst 3 s; ")


def test_folders_of_other_campaigns_and_damaged_lines_are_refused(tmp_path):
    def refused(*options):
        done = CliRunner().invoke(campaign.command, ["counts", "--report", "--out", str(tmp_path), *options])
        assert done.exit_code == 1
        return done.stderr.splitlines()[-1]

    assert refused().startswith("| Legal positions")  # nothing was run
    assert "quick False, not True; choose another folder" in refused("--quick")
    (tmp_path / "counts.jsonl").write_text("[]\n")
    assert "counts.jsonl: line 1 is not a finished case" in refused()
    (tmp_path / "campaign.json").write_text(json.dumps({"quick": False, "games": None, "weights": DEFAULT}))
    assert "runner None, not pytest" in refused()


def test_of_two_lines_of_a_case_the_later_one_counts_and_a_torn_one_does_not(tmp_path):
    file = tmp_path / "fuzz.jsonl"
    lines = [Record("a", 1, 0.5, ["fault"], {}), Record("a", 1, 0.7, [], {}), Record("of another form", 1, 1, [], {})]
    file.write_text("".join(json.dumps(line._asdict()) + "\n" for line in lines) + '{"case": "b", "amo')
    row = Row("fuzz", Part("", "", ""), {"a": 1, "b": 1}, "")
    campaign.read_records(row, file)
    assert row.records == [lines[1]]


def test_the_table_says_what_was_done_and_what_was_not_run():
    part, amounts = Part("A part", "things", "none", {"worst, s": max}), dict.fromkeys("abcde", 2)
    records = [Record("a", 2, 3600, [], {"worst, s": 2.0}), Record("b", 1, 1800, ["x"], {"worst, s": 3.0})]
    rows = [Row("", part, amounts, "", records), Row("", part, amounts, ""), Row("", part, amounts, "GNU Go")]
    assert [row.as_markdown().split(" | ")[2] for row in rows] == [
        "3 of 10 things; 1 fault; worst 3 s; 1.50 h |", "not run yet |", "not run: GNU Go |",
    ]  # fmt: skip
    assert not any(row.holds for row in rows)


@LINUX
@pytest.mark.parametrize(
    ("whom", "number"),
    [("campaign", signal.SIGINT), ("campaign", signal.SIGKILL), ("worker", signal.SIGINT), ("worker", signal.SIGTERM)],
)
def test_a_campaign_that_is_ended_leaves_no_process_behind(run, tmp_path, interruptible, whom, number):
    """A worker that is terminated from outside ends the campaign; its case has no fault."""
    told = tmp_path / "told"
    with run("--games", str(tmp_path)) as process:
        until(told.exists)
        worker, folder = told.read_text().split()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert worker in children and len(children) >= 2
        os.kill(process.pid if whom == "campaign" else int(worker), number)
        process.communicate()
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    until(lambda: not Path(folder).exists())
    until(lambda: not any(is_running(int(child)) for child in children))
    assert not (tmp_path / "out" / "fuzz.jsonl").exists()
