"""Records of games: on disk at every move, continued after a kill, opened with their variations, listed."""

import os
import signal
import subprocess
import sys

import pytest

from engine.go.sgf import read_sgf
from gtp.web.games import Games
from tests.conftest import ROOT
from tests.gtp.web.served import Tab, ready, serving

TREE = (
    "(;GM[1]FF[4]SZ[9]KM[6.5]PB[Ann]PW[Bob]RE[B+R]C[first]AB[gg]AW[cc]PL[B];B[ee](;W[ec]N[main];B[eg])"
    "(;W[ce]C[other \\]](;B[gc])(;B[cg]TR[ee])))"
)
OPTIONS = ("--weights", "none", "--uniform-rollouts", "--size", "9", "--visits", "8", "--seconds", "0", "--no-browser")


class Process:
    """``keima play`` in a process of its own."""

    def __init__(self, data, *options):
        environment = {**os.environ, "XDG_DATA_HOME": str(data)}
        command = [sys.executable, "-m", "gtp.cli", "play", *OPTIONS, *options]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        port, _, token = self.address.removeprefix("http://127.0.0.1:").partition("/?token=")
        self.tab = Tab(int(port)).enter(token)

    def kill(self):
        """End it at once, as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End it as Ctrl-C does; returns the status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait()


@pytest.fixture
def start(tmp_path, interruptible):
    """Processes of one data folder, which are killed at the end."""
    begun = []

    def begin(*options):
        begun.append(Process(tmp_path, *options))
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()
        one.process.stdout.close()


def files(folder):
    """The records of a data folder."""
    return sorted((folder / "games").glob("*.sgf"))


def test_every_move_is_on_disk_before_it_is_answered(tmp_path):
    with serving(tmp_path) as (_, port):
        tab = Tab(port).enter()
        tab.wait(lambda state: state["rev"] > 0)
        tab.post("new", color="both", size=9)
        for count, vertex in enumerate(("C3", "G7", "pass", "E5"), 1):
            tab.play(vertex)
            (path,) = [path for path in files(tmp_path) if path.stat().st_size]
            assert len(read_sgf(path.read_bytes()).moves) == count


def test_a_killed_game_continues(start, tmp_path):
    first = start()
    first.tab.wait(ready)
    first.tab.post("new", color="black", size=9, komi=6.5, clock={"mainSeconds": 3000})
    first.tab.play("E5")
    before = first.tab.state
    # Killed while the engine thinks.
    first.tab.post("play", point=before["board"].index("."))
    first.kill()
    again = start()
    state = again.tab.wait(lambda state: state["rev"] > 0 and state["number"] == 4)
    assert state["path"][:2] == before["path"] and state["id"] == before["id"]
    assert (
        state["komi"] == 6.5
        and state["players"]["white"]["engine"]
        and 2000 < state["clock"]["black"]["seconds"] <= 3000
    )
    assert len(files(tmp_path / "keima")) == 1


def test_a_game_taken_back_stays_so_after_a_kill(start):
    first = start()
    first.tab.wait(lambda state: state["rev"] > 0)
    first.tab.post("new", color="both", size=9)
    first.tab.play("E5", "C3", "G7")
    first.tab.post("undo")
    first.kill()
    state = start().tab.wait(lambda state: state["rev"] > 0)
    assert state["number"] == 2 and len(state["path"]) == 3


def test_a_second_process_leaves_the_first_one_s_game_alone(start):
    first = start()
    first.tab.wait(lambda state: state["rev"] > 0)
    first.tab.post("new", color="both", size=9)
    first.tab.play("E5")
    second = start()
    assert second.address != first.address
    state = second.tab.wait(lambda state: state["rev"] > 0)
    assert state["number"] == 0 and state["id"] != first.tab.state["id"]
    second.tab.post("load", id=first.tab.state["id"])
    assert second.tab.state["number"] == 1 and second.tab.state["id"] != first.tab.state["id"]


def test_ctrl_c_ends_it(start, tmp_path):
    process = start()
    process.tab.wait(lambda state: state["rev"] > 0)
    assert process.stop() == 0 and not files(tmp_path / "keima")


def test_variations_are_kept(tab):
    tab.post("open", sgf=TREE)
    assert tab.state["number"] == 3 and tab.state["result"] == "B+R" and tab.state["phase"] == "over"
    assert tab.state["players"]["white"]["name"] == "Bob"
    tab.post("goto", node=tab.state["path"][0][0])
    assert [index for _, _, index in tab.state["branches"]] == [tab.index("E7"), tab.index("C5")]
    other = tab.state["branches"][1][0]
    tab.post("goto", node=other)
    assert [index for _, _, index in tab.state["path"]] == [tab.index("E5"), tab.index("C5"), tab.index("G7")]
    tab.play("A1")
    data = tab.request("GET", "/api/sgf")[2].decode()
    for part in ("C[first]", "N[main]", "C[other \\]]", "TR[ee]", "B[gc]", "B[cg]", "B[eg]", "B[ai]"):
        assert part in data
    assert "KEIMA" not in data and data.index("W[ec]") < data.index("W[ce]")


def test_a_change_of_stones_in_mid_game_is_shown(tab):
    tab.post("open", sgf="(;SZ[9];B[ee];W[ec];AB[aa][bb]AE[ee]PL[W];W[gg])")
    assert [row[1] for row in tab.state["path"]] == ["b", "w", "", "w"]
    assert tab.state["board"][0] == "b" and tab.state["board"][40] == "."
    tab.post("goto", node=tab.state["path"][2][0])
    assert tab.state["toMove"] == "white"


def test_a_downloaded_game_opens_again(tab):
    tab.post("new", color="both", handicap=2, size=13, komi=0.5, rules="japanese")
    tab.play("C3", "E4", "pass")
    headers = tab.request("GET", "/api/sgf")[1]
    assert headers["content-disposition"].startswith('attachment; filename="keima-2')
    path = tab.state["path"]
    tab.post("open", sgf=tab.request("GET", "/api/sgf")[2].decode())
    assert [row[1:] for row in tab.state["path"]] == [row[1:] for row in path]
    assert (tab.state["size"], tab.state["komi"], tab.state["rules"]) == (13, 0.5, "japanese")
    assert tab.state["board"].count("b") == 3


def test_the_engine_plays_on_in_an_opened_game(tab):
    tab.post("open", sgf="(;SZ[9];B[ee];W[ec])")
    tab.post("players", color="white")
    state = tab.wait(lambda state: state["number"] == 3)
    assert state["players"]["black"]["engine"] and state["toMove"] == "white"


def test_the_list_and_loading(tab):
    tab.play("C3", "D4")
    name = tab.state["id"]
    tab.post("resign")
    tab.post("new", color="black", size=9)
    tab.play("E5")
    other = tab.state["id"]
    rows = {row["id"]: row for row in tab.get("/api/games")["games"]}
    assert rows[name]["moves"] == 2 and rows[name]["result"] == "W+R" and rows[name]["size"] == 9
    assert rows[other]["players"] == {"black": "You", "white": "Keima"} and rows[other]["result"] == ""
    tab.post("load", id=name)
    assert tab.state["number"] == 2 and tab.state["phase"] == "over" and tab.state["id"] == name
    tab.post("load", id=other)
    assert tab.state["number"] == 2 and tab.state["players"]["white"]["engine"]


def test_games_without_a_move_leave_no_file(tab):
    before = len(tab.get("/api/games")["games"])
    for _ in range(3):
        tab.post("new", size=9, color="both")
    assert len(tab.get("/api/games")["games"]) == before


def test_a_damaged_file_is_left_out_and_left_alone(tmp_path):
    (tmp_path / "games").mkdir()
    path = tmp_path / "games" / "20260101-120000.sgf"
    path.write_bytes(b"(;SZ[9];B[ee")
    with serving(tmp_path) as (_, port):
        state = Tab(port).enter().wait(lambda state: state["rev"] > 0)
        assert state["number"] == 0 and "20260101-120000 cannot be continued" in state["warning"]
    assert path.read_bytes() == b"(;SZ[9];B[ee"


@pytest.mark.parametrize(
    "value",
    ["x", "[]", "{}", '{"settings": 3}', '{"settings": {"color": "red"}}', '{"settings": {"size": 9, "komi": "x"}}',
     '{"settings": {"color": "black", "level": "3d"}, "way": [0, 7, "x"], "clock": [1], "placing": -4}'],
)  # fmt: skip
def test_damaged_settings_in_a_file_do_no_harm(tmp_path, value):
    (tmp_path / "games").mkdir()
    path = tmp_path / "games" / "20260101-120000.sgf"
    escaped = value.replace("]", "\\]")
    path.write_text(f"(;SZ[9]KEIMA[{escaped}];B[ee];W[cc])")
    with serving(tmp_path) as (_, port):
        state = Tab(port).enter().wait(lambda state: state["rev"] > 0)
        assert state["id"] == "20260101-120000" and state["number"] in (1, 2)


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    with serving(tmp_path) as (_, port):
        tab = Tab(port).enter()
        tab.wait(lambda state: state["rev"] > 0)
        tab.post("new", color="both", size=9)

        def fail(self, name, data):
            raise OSError(28, "No space left on device", name)

        monkeypatch.setattr(Games, "write", fail)
        tab.play("C3")
        assert "the game is not saved" in tab.state["warning"] and tab.state["number"] == 1


def test_a_count_begins_again_after_a_restart(tmp_path):
    with serving(tmp_path) as (_, port):
        tab = Tab(port).enter()
        tab.wait(lambda state: state["rev"] > 0)
        tab.post("new", color="both", size=5, rules="japanese", komi=0.5)
        tab.play("B1", "D1", "B2", "D2", "B3", "D3", "B4", "D4", "B5", "D5", "pass", "pass")
        before = tab.wait(lambda state: state["count"] is not None)
    with serving(tmp_path) as (_, port):
        tab = Tab(port).enter()
        state = tab.wait(lambda state: state["count"] is not None)
        assert (state["phase"], state["count"], state["id"]) == ("scoring", before["count"], before["id"])
        tab.post("accept")
        assert tab.state["phase"] == "over"
    with serving(tmp_path) as (_, port):
        # A finished game is not continued.
        state = Tab(port).enter().wait(lambda state: state["rev"] > 0 or state["id"])
        assert state["number"] == 0 and state["phase"] == "play"
