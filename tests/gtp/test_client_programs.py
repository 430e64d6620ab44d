"""Clients set up from their pages in docs/clients by copy and paste: those that run without a window play."""

import re
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
