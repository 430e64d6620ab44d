"""Clients set up from their pages in docs/clients by copy and paste: those that run without a window play.

``cgosclient.py`` is looked for on the search path, as a program, and Sabaki's engine code where node looks for modules
(``npm install @sabaki/gtp``, ``NODE_PATH``).
"""

import json
import re
import socket
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT, find_program
from tests.gtp import ogs
from tests.gtp.process import ANSWER_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="starts the engine by a shell script")
LAUNCHER = """#!/bin/sh
PYTHONPATH={root} KEIMA_CONFIG=none exec {python} -P -m gtp.cli "$@"
"""


@pytest.fixture
def pasted(tmp_path):
    """What gives the blocks of a page as a user pastes them, with the folder of the project filled in."""
    program = tmp_path / "keima" / ".venv" / "bin" / "keima"
    program.parent.mkdir(parents=True)
    program.write_text(LAUNCHER.format(root=ROOT, python=sys.executable))
    program.chmod(0o755)

    def blocks(page: str) -> list[str]:
        text = (ROOT / "docs" / "clients" / page).read_text(encoding="utf-8")
        found = re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        return [block.replace("/path/to/keima", str(tmp_path / "keima")) for block in found]

    return blocks


def challenge(speed: str, width: int, height: int) -> dict:
    """A challenge as OGS hands it on."""
    control = {"system": "simple", "speed": speed, "per_move": 15}
    user = {"id": ogs.PERSON, "username": f"{speed}-{width}x{height}"}
    board = {"width": width, "height": height, "handicap": 0, "ranked": False, "komi": 6.5}
    return {"type": "challenge", "id": "1", "challenge_id": 1, "user": user, "time_control": control, **board}


@pytest.mark.clients("gtp2ogs")
def test_gtp2ogs(pasted, tmp_path):
    """It takes the configuration, declines what the page says that it declines, and plays."""
    (tmp_path / "keima.json5").write_text(pasted("ogs.md")[0], encoding="utf-8")
    with ogs.Server(ANSWER_S) as server, (tmp_path / "output").open("wb") as output:
        words = [find_program("gtp2ogs"), "-c", "keima.json5", "--server", f"http://127.0.0.1:{server.port}"]
        process = subprocess.Popen(words, cwd=tmp_path, stdout=output, stderr=output)
        try:
            config = server.accept()
            for speed, width, height in (("rapid", 9, 9), ("live", 9, 13), ("live", 25, 25)):
                server.send("notification", challenge(speed, width, height))
            server.begin({"system": "simple", "speed": "live", "per_move": 10}, 9, {"thinking_time": 10})
            replies = []
            for y in (2, 6):
                replies.append(server.play(4, y, time.time() * 1000))
                server.confirm(replies[-1]["move"], time.time() * 1000)
        finally:
            process.terminate()
            process.wait(ANSWER_S)
    said = (tmp_path / "output").read_text(encoding="utf-8")
    assert config["allowed_live_settings"]["concurrent_games"] == 1
    for name, code in (
        ("rapid-9x9", "rapid_not"),
        ("live-9x13", "board_size_not_s"),
        ("live-25x25", "board_size_not_a"),
    ):
        assert re.search(rf"Rejecting challenge from {name}\b[^|]*?rejection_code: '{code}", said), (name, said)
    assert all(re.fullmatch("[a-i]{2}", reply["move"]) for reply in replies), said
    log = (tmp_path / "keima-ogs.log").read_text(encoding="utf-8")
    assert re.findall("< (boardsize.*|time_settings.*|genmove.*)", log)[:3] == [
        "boardsize 9", "time_settings 0 10 1", "genmove white"
    ]  # fmt: skip
    assert "> ?" not in log


@pytest.mark.clients("gogui-twogtp", "gnugo")
def test_gogui_twogtp(pasted, tmp_path):
    """The page's match, shorter: fewer games, moves and levels, a clock as it names one."""
    (command,) = pasted("gogui-twogtp.md")
    for shown, used in (("--seconds 3", "--visits 2"), ("-games 10", "-games 2 -time 1+1/20"), ("level 10", "level 1")):
        assert shown in command
        command = command.replace(shown, used)
    for program in ("gogui-twogtp", "gnugo"):
        command = command.replace(f"{program} -", f"{find_program(program)} -")
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=2 * ANSWER_S)
    assert done.returncode == 0, done.stderr
    games = re.findall(r"^[01]\t.*", (tmp_path / "gnugo-9x9.dat").read_text(), re.MULTILINE)
    assert len(games) == 2
    for number, game in enumerate(games):
        assert re.search(r"\t[BW]\+\S+\t", game), game
        assert "(;" in (tmp_path / f"gnugo-9x9-{number}.sgf").read_text()


@pytest.mark.clients("cgosclient.py")
def test_cgos(pasted, tmp_path):
    """One game of a server of our own: two moves with analysis, and its record in the folder that the page makes."""
    config = pasted("cgos.md")[0]
    (tmp_path / "sgf").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(ANSWER_S)
        config = config.replace("the server's address", "127.0.0.1").replace("its port", str(server.getsockname()[1]))
        config = re.sub("a (name|password) of your choice", "keima", config)
        (tmp_path / "keima.cfg").write_text(config)
        words = [find_program("cgosclient.py"), "keima.cfg"]
        with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            client, _ = server.accept()
            client.settimeout(ANSWER_S)
            with client, client.makefile("rw", encoding="utf-8", newline="\n") as lines:

                def ask(line: str) -> str:
                    print(line, file=lines, flush=True)
                    return lines.readline().strip()

                assert ask("protocol genmove_analyze").startswith("e1 cgosPython")
                assert [ask("username"), ask("password")] == ["keima", "keima"]
                print("setup 1 9 7.0 60000 keima(1500?) other(1500?)", file=lines)
                replies = []
                for vertex in ("e5", "c3"):
                    print(f"play b {vertex} 60000", file=lines)
                    replies.append(ask("genmove w 60000"))
                assert ask("gameover 2026-11-22 W+Resign") == "ready"
                (tmp_path / "kill.txt").touch()
                print("info the end", file=lines, flush=True)
                output = process.communicate(timeout=ANSWER_S)[0].decode()
    for reply in replies:
        move, _, analysis = reply.partition(" ")
        assert re.fullmatch("[a-hj][1-9]", move), output
        assert '"winrate":' in analysis and '"ownership":' in analysis
    (record,) = (tmp_path / "sgf").glob("*.sgf")
    assert "PW[keima]" in record.read_text()


@pytest.mark.clients("node")
def test_the_engine_code_of_sabaki(pasted, tmp_path):
    """Path and arguments from the page's table, its initial commands, moves and an analysis."""
    node = find_program("node")
    if subprocess.run([node, "-e", "require('@sabaki/gtp')"], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("needs the module @sabaki/gtp")
    page = (ROOT / "docs" / "clients" / "sabaki.md").read_text(encoding="utf-8")
    path = re.search(r"^\| path \| `/path/to/keima([^`]*)`", page, re.MULTILINE)[1]
    arguments = re.search(r"^\| arguments \| `([^`]*)` \|", page, re.MULTILINE)[1]
    initial = re.search(r"semicolons between:\n`([^`]*)`", page)[1]
    words = [node, str(ROOT / "tests" / "data" / "sabaki.js"), str(tmp_path / "keima") + path, arguments, initial]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=2 * ANSWER_S)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert not any(error for error, _ in said["replies"]), said
    replies = [content for _, content in said["replies"]]
    assert replies[0] == "Keima"
    assert re.fullmatch("[A-HJ][1-9]", replies[-4]) and re.fullmatch("[A-HJ][1-9]", replies[-2])
    head, *infos = said["updates"]
    assert head == "=" and len(infos) >= 2
    assert all(info.startswith("info move ") for info in infos if info)
