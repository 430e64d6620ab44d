"""Two engines side by side: figures and table, engines that lack a command, the answers that rates are read from."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from bench.match.gtp_client import EngineRefused
from bench.process_memory import STATUS, session_peak_mib
from bench.speed.peers import EVALUATIONS, command, positions_per_s, visits_in
from bench.speed.subjects import move_lists
from engine.go.game import Game
from engine.go.rules import rules_named
from tests.conftest import ROOT

RANDOM = f"{sys.executable} -P {ROOT / 'tests' / 'data' / 'gtp_engine.py'}"
KEIMA = f"{sys.executable} -P -m gtp.cli"
SMALL = ["--size", "9", "--seconds", "0.1", "--repeats", "1", "--visits", "2", "--json-visits", "2"]


def test_an_engine_with_all_commands_beside_one_with_few():
    first = ["--first", f"{KEIMA} gtp --config none --weights none --visits 2", "--second", RANDOM]
    analysis = ["--first-json", f"{KEIMA} analysis --config none --weights none"]
    done = CliRunner().invoke(command, [*first, *analysis, *SMALL])
    assert done.exit_code == 0, done.output
    rows = {row.split(" | ")[0]: row.split(" | ") for row in done.stderr.splitlines() if row.startswith("| ")}
    rows.pop("| memory/9", None)  # on Linux alone
    figures = ("start", "first_move/9", "visits/9", "evaluations/9", "json/9")
    assert list(rows) == ["| figure", *(f"| {name}" for name in figures)]
    assert rows["| figure"][2].startswith("Keima ") and rows["| figure"][3] == "Random 1"
    for name in figures:
        _, _, ours, other, ratio = rows[f"| {name}"]
        assert float(ours) >= 0
        if name in ("start", "first_move/9"):
            assert float(other) > 0 and ratio != "- |"
        else:
            assert (other, ratio) == ("-", "- |")


@pytest.mark.parametrize(
    ("answer", "rate"),
    [
        (
            "numSearchThreads =  2: 10 / 10 positions, visits/s = 286.35 nnEvals/s = 263.02 nnBatches/s = 99.00",
            "263.02",
        ),
        ("1/10, 0 moves played: 9 visits/s, 7 evaluations/s\ntogether: 9 visits/s, 8 evaluations/s", "8"),
    ],
)
def test_evaluations_are_read_from_the_last_line_of_a_benchmark(answer, rate):
    assert "".join(EVALUATIONS.findall(answer)[-1]) == rate


@pytest.mark.parametrize(
    ("update", "visits"),
    [
        ("info move C3 visits 5 edgeVisits 4 pv C3 info move G7 visits 5 pv G7 rootInfo winrate 0.5 visits 6", 6),
        ("info move C3 visits 5 winrate 5000 prior 9 pv C3 info move G7 visits 4 winrate 4900 prior 8 pv G7", 9),
    ],
)  # fmt: skip
def test_visits_of_the_root_count_each_visit_once(update, visits):
    assert visits_in(update) == visits


@pytest.mark.parametrize("size", [9, 19])
def test_the_games_that_engines_search_are_legal(size):
    lists = move_lists(size)
    assert len({tuple(moves) for moves in lists}) == len(lists) == 16
    for moves in lists:
        game = Game(size, rules_named("tromp-taylor"))
        for point in moves:
            game.play(game.to_move, point)


@pytest.mark.skipif(not STATUS.exists(), reason="reads /proc")
def test_memory_counts_the_children_of_an_engine():
    hold = "import sys; held = b'x' * (64 << 20); print('held', flush=True); sys.stdin.read()"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline().strip() == b"held"
        assert 64 < session_peak_mib(process.pid) < 256
        process.stdin.close()


def test_an_engine_that_answers_no_json_is_one_clear_line():
    with pytest.raises(EngineRefused, match="expected JSON"):
        positions_per_s(RANDOM, 9, move_lists(9), 2)
