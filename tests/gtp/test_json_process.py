"""``keima analysis`` as clients start it: KataGo's command line, pipes, and how it ends. What they send is theirs."""

import json
import subprocess
import sys
import threading

import pytest

from tests.gtp.process import ROOT
from tests.in_float32 import IN_FLOAT32
from weights import find

ANSWER_S = 300.0
STARTED = "Started, ready to begin handling requests"
MOVES = [["B", "E5"], ["W", "E3"]]
KATRAIN = {
    "id": "QUERY:1", "rules": "japanese", "priority": -100, "analyzeTurns": [2], "maxVisits": 20, "komi": 6.5,
    "boardXSize": 9, "boardYSize": 9, "includeOwnership": True, "includeMovesOwnership": True, "includePolicy": True,
    "initialStones": [["B", "C3"]], "initialPlayer": "W", "moves": MOVES, "reportDuringSearchEvery": 1,
    "overrideSettings": {"reportAnalysisWinratesAs": "BLACK", "wideRootNoise": 0.04, "maxTime": 8.0},
}  # fmt: skip
LIZZIEYZY = {
    "id": "2", "moves": MOVES, "rules": {"ko": "SIMPLE", "scoring": "AREA", "tax": "NONE", "suicide": False,
    "hasButton": False, "whiteHandicapBonus": "N", "friendlyPassOk": True}, "komi": 7.5, "boardXSize": 9,
    "boardYSize": 9, "analyzeTurns": [1], "maxVisits": 2, "includePVVisits": True,
    "overrideSettings": {"reportAnalysisWinratesAs": "SIDETOMOVE"},
}  # fmt: skip
OGATAK = {
    "id": "node:3", "rules": "Chinese", "komi": 7.5, "boardXSize": 9, "boardYSize": 9, "maxVisits": 5, "moves": MOVES,
    "initialStones": [], "includeOwnership": True, "includePolicy": True, "analysisPVLen": 32,
    "reportDuringSearchEvery": 0.1, "firstReportDuringSearchAfter": 0.05,
    "overrideSettings": {"reportAnalysisWinratesAs": "BLACK", "wideRootNoise": 0.0},
}  # fmt: skip
OGATAKS_PROBE = {"id": "size", "rules": "Chinese", "boardXSize": 29, "boardYSize": 29, "moves": []}
ANALYZE_SGF = {
    "id": "sgf", "initialStones": [], "moves": MOVES, "rules": "tromp-taylor", "komi": 7.5, "boardXSize": 9,
    "boardYSize": 9, "analyzeTurns": [0, 1, 2], "maxVisits": 3,
}  # fmt: skip


def start(*options: str, program: tuple[str, ...] = (sys.executable, "-m", "gtp.cli")) -> subprocess.Popen:
    """The process with these options."""
    command = [*program, "analysis", *options]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, cwd=ROOT, **pipes, text=True)


def katagos_command_line(folder) -> list[str]:
    """The options of KataGo's clients, all of them."""
    config = folder / "analysis.cfg"
    config.write_text("logDir = logs\nmaxVisits = 500\nnumSearchThreadsPerAnalysisThread = 16\nnnMaxBatchSize = 64\n")
    override = "homeDataDir=~/.katrain, numAnalysisThreads=3"
    return ["-model", str(find("default")), "-config", str(config), "-override-config", override]


def test_clients_requests_are_all_answered_and_the_end_of_input_ends_it(tmp_path):
    """The conversation is kept on file, and a byte order mark is no part of it."""
    log = tmp_path / "log.txt"
    process = start(*katagos_command_line(tmp_path), "--log-file", str(log))
    sent = [{"id": "v", "action": "query_version"}, KATRAIN, LIZZIEYZY, OGATAK, OGATAKS_PROBE, ANALYZE_SGF]
    said, told = process.communicate("\ufeff" + "".join(json.dumps(one) + "\n" for one in sent), ANSWER_S)
    assert process.returncode == 0 and STARTED in told
    assert not [line for line in told.splitlines() if line.startswith("{") or "exception" in line.lower()]
    lines = said.splitlines()
    assert all(" " not in line.replace("New Zealand", "") for line in lines if '"error"' not in line)
    found = [json.loads(line) for line in lines]
    assert not any("warning" in one for one in found), "some clients take a warning for an answer"
    (version,) = [one["version"] for one in found if one["id"] == "v"]
    assert version.count(".") == 2
    finals = sorted((one["id"], one["turnNumber"]) for one in found if one.get("isDuringSearch") is False)
    assert finals == [("2", 1), ("QUERY:1", 2), ("node:3", 2), ("sgf", 0), ("sgf", 1), ("sgf", 2)]
    (error,) = [one for one in found if "error" in one]
    assert error == {"error": "Must provide an integer from 2 to 19", "field": "boardXSize", "id": "size"}
    # analyze-sgf cuts the text there.
    assert all(line.rstrip("}").rpartition(",")[2].startswith('"turnNumber"') for line in lines if '"sgf"' in line)
    for one in found:
        for move in one.get("moveInfos", []):
            needed = [move[key] for key in ("lcb", "prior", "scoreStdev", "scoreMean", "scoreLead", "winrate")]
            assert all(isinstance(value, float) for value in needed)
    logged = [line.split(" ", 2)[2] for line in log.read_text(encoding="utf-8").splitlines()]
    assert {*(f"> {line}" for line in lines), *(f"< {json.dumps(one)}" for one in sent[1:])} <= set(logged)
    assert any(line.startswith("< ") and "query_version" in line for line in logged) and f"! {STARTED}" in logged


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-config", "none.cfg"], "config file none.cfg: cannot be read"),
        (["-model", "none.bin.gz"], "unknown network 'none.bin.gz'"),
        (["-override-config", "maxVisits=0"], "Key 'maxVisits' must be in the range 1 to"),
        (["-override-config", "numAnalysisThreads=2", "-analysis-threads", "2"], "numAnalysisThreads is in the config"),
        (["--config", "none.toml"], "settings file none.toml: no such file"),
        (["--threads", "many"], 'threads is "many"'),
        (["--nonsense"], "No such option"),
    ],
)
def test_a_start_that_fails_says_why_as_katago_does(options, reason):
    process = start(*options)
    said, told = process.communicate("", ANSWER_S)
    assert process.returncode == 2, "KataGo's clients take 1 for an end that was asked for"
    assert said == "" and f"Uncaught exception: {reason}" in told


def test_quitting_without_waiting_drops_what_waits(tmp_path):
    process = start(*katagos_command_line(tmp_path), "-quit-without-waiting")
    said, told = process.communicate(json.dumps(KATRAIN | {"maxVisits": 10**6, "maxTime": 60}) + "\n", ANSWER_S)
    assert process.returncode == 0 and STARTED in told
    assert all('isDuringSearch":false' not in line for line in said.splitlines())


def test_all_queries_may_be_sent_before_an_answer_is_read(tmp_path):
    count, process = 400, start(*katagos_command_line(tmp_path))
    query = LIZZIEYZY | {"includeOwnership": True, "maxVisits": 1}
    sent = "".join(json.dumps(query | {"id": f"{n:03}" + "-" * 2000}) + "\n" for n in range(count))
    writer = threading.Thread(target=lambda: (process.stdin.write(sent), process.stdin.close()), daemon=True)
    watchdog = threading.Timer(ANSWER_S, process.kill)
    watchdog.start()
    writer.start()
    writer.join(ANSWER_S)
    found = sorted(json.loads(line)["id"][:3] for line in process.stdout)
    watchdog.cancel()
    assert found == [f"{n:03}" for n in range(count)] and process.wait(ANSWER_S) == 0


@pytest.mark.shared
def test_the_networks_numbers_are_those_of_katagos_own_tests(shared_path):
    """Source: KataGo 1.17.2, cpp/tests/results/analysis: Black's win rate and lead."""
    network = shared_path / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz"
    override = "nnRandomize=false, reportAnalysisWinratesAs=BLACK, maxVisits=1"
    process = start("-model", str(network), "-override-config", override, program=IN_FLOAT32)
    query = {"id": "q", "rules": "tromp-taylor", "komi": 4, "boardXSize": 7, "boardYSize": 7}
    games = [[["W", "C5"], ["B", "C6"]], [["W", "C5"], ["B", "C6"], ["W", "C7"]]]
    said, _ = process.communicate("".join(json.dumps(query | {"moves": moves}) + "\n" for moves in games), ANSWER_S)
    found = [json.loads(line) for line in said.splitlines()]
    found.sort(key=lambda one: one["turnNumber"])
    for one, winrate, lead in zip(found, (0.00288742781, 0.409414291), (-18.2440147, -1.49350166), strict=True):
        assert one["rootInfo"]["rawWinrate"] == pytest.approx(winrate, abs=1e-4)
        assert one["rootInfo"]["rawLead"] == pytest.approx(lead, abs=0.05)
