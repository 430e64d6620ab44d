"""The campaign: its parts, folder, workers, resumption and table."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reliability import command as command_module
from bench.reliability.command import command
from bench.reliability.folder import CampaignFolder, Record
from bench.reliability.part import NAMES, Campaign, load_part
from bench.reliability.runner import run_cases
from bench.reliability.table import Row, as_markdown
from tests.bench.campaign_part import PART
from weights import DEFAULT

ROOT = Path(__file__).resolve().parents[2]
WHOLE = Campaign(False, None, DEFAULT)
CASES = {case.name: case for case in PART.cases(WHOLE)}


def until(holds):
    """Wait; the time limit of tests is the bound."""
    while not holds():
        time.sleep(0.02)


def is_running(pid):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", NAMES)
def test_every_part_has_cases_of_different_names_in_both_forms(name):
    part = load_part(f"bench.reliability.{name}")
    assert part.name == name and part.title and part.unit and part.wanted
    for quick in (True, False):
        cases = list(part.cases(Campaign(quick, None, DEFAULT)))
        assert len({case.name for case in cases}) == len(cases) > 0
        assert all(case.amount > 0 for case in cases)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_has_its_row_in_the_docs(name):
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"| {load_part(f'bench.reliability.{name}').title} |" in page


def test_cases_run_in_workers_and_whatever_goes_wrong_is_a_fault():
    records = {record.case: record for record in run_cases(PART, WHOLE, list(CASES.values()), jobs=2)}
    assert {name: len(record.faults) for name, record in records.items()} == {
        "good": 0, "faulty": 2, "raises": 1, "dies": 1, "last": 0,
    }  # fmt: skip
    assert "ValueError: wrong" in records["raises"].faults[0]
    assert "status 7" in records["dies"].faults[0]
    assert [records[name].amount for name in CASES] == [2, 1, 0, 0, 2]


def test_a_case_without_end_is_ended_and_is_a_fault(tmp_path):
    campaign = Campaign(False, tmp_path / "pid", DEFAULT)
    (record,) = run_cases(replace(PART, limit_s=0.0), campaign, list(PART.cases(campaign)), jobs=1)
    assert record.faults == ["no end within 0 s"] and record.amount == 0


def test_a_folder_keeps_finished_cases_and_drops_a_torn_line(tmp_path):
    folder = CampaignFolder(tmp_path, {"quick": True})
    folder.add("fuzz", Record("a", 1, 0.5))
    folder.add("fuzz", Record("b", 1, 0.5, ["fault"]))
    with (tmp_path / "fuzz.jsonl").open("a") as file:
        file.write('{"case": "c", "amo')
    again = CampaignFolder(tmp_path, {"quick": True})
    assert list(again.records("fuzz")) == ["a", "b"]
    again.add("fuzz", Record("b", 1, 0.7))
    assert [json.loads(line)["case"] for line in (tmp_path / "fuzz.jsonl").open()] == ["a", "b", "b"]
    assert CampaignFolder(tmp_path, {"quick": True}).records("fuzz")["b"].faults == []


def test_folders_of_other_campaigns_damaged_lines_and_second_users_are_refused(tmp_path):
    folder = CampaignFolder(tmp_path, {"quick": True})
    with pytest.raises(ValueError, match="begun with quick True, not False; choose another folder"):
        CampaignFolder(tmp_path, {"quick": False})
    folder.claim("fuzz")
    with pytest.raises(ValueError, match="another process runs part fuzz there"):
        CampaignFolder(tmp_path, {"quick": True}).claim("fuzz")
    (tmp_path / "fuzz.jsonl").write_text("[]\n")
    with pytest.raises(ValueError, match=r"fuzz.jsonl: line 1 is no finished case"):
        folder.records("fuzz")


def test_the_table_says_what_was_done_and_what_was_not_run():
    cases = list(CASES.values())
    records = [Record("good", 2, 3600, figures={"worst, s": 2.0}), Record("faulty", 1, 1800, ["x"], {"worst, s": 3.0})]
    rows = [Row(PART, cases, records), Row(PART, cases, []), Row(PART, cases, [], "no GNU Go here")]
    found = [line.split(" | ")[2] for line in as_markdown(rows).splitlines()[2:]]
    assert found == [
        "3 of 10 things; 1 fault; worst 3 s; 1.50 h |", "not run yet |", "not run: no GNU Go here |",
    ]  # fmt: skip
    assert not any(row.holds for row in rows)


def test_a_campaign_goes_on_where_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(command_module, "load_part", lambda module: PART)
    arguments = ["fuzz", "--out", str(tmp_path), "--jobs", "2"]
    first = CliRunner().invoke(command, arguments)
    assert first.exit_code == 1, first.output
    figures = {found["name"]: found["value"] for found in map(json.loads, first.stdout.splitlines())}
    part = "reliability/campaign_part"
    assert figures == {part: 5, f"{part}/faults": 4, f"{part}/worst": 3.0}
    assert "A part" in first.stderr and "ValueError: wrong" in first.stderr
    path = tmp_path / "campaign_part.jsonl"
    written = path.read_bytes()
    assert CliRunner().invoke(command, arguments).exit_code == 1
    assert path.read_bytes() == written  # nothing was run again
    CliRunner().invoke(command, [*arguments, "--again"])
    assert len(path.read_bytes().splitlines()) == 5 + 3
    report = CliRunner().invoke(command, [*arguments, "--report", "--markdown"])
    assert report.stdout.splitlines()[2].startswith("| A part | no faults | 5 of 10 things; 4 faults; ")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("whom", "number"),
    [("campaign", signal.SIGINT), ("campaign", signal.SIGKILL), ("worker", signal.SIGINT), ("worker", signal.SIGTERM)],
)
def test_a_campaign_that_is_ended_leaves_no_process_behind(tmp_path, interruptible, whom, number):
    """Nor is a case at fault whose worker was ended from outside: that ends the campaign."""
    told = tmp_path / "told"
    script = (
        "import sys; from pathlib import Path; from bench.reliability.part import Campaign; "
        "from bench.reliability.runner import run_cases; from tests.bench.campaign_part import PART; "
        "campaign = Campaign(False, Path(sys.argv[1]), 'none'); "
        "from dataclasses import replace; "
        "list(run_cases(replace(PART, busy=1), campaign, list(PART.cases(campaign)), 1))"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(told)], cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        until(told.exists)
        worker, folder = told.read_text().split()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert worker in children and len(children) >= 2
        os.kill(process.pid if whom == "campaign" else int(worker), number)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else -signal.SIGINT)
    until(lambda: not Path(folder).exists())
    until(lambda: not any(is_running(int(child)) for child in children))
