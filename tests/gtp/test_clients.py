"""One conversation a client, line by line as the client itself sends them to the real process.

The lines were observed on the wire (GoGui 1.6, gtp2ogs 9, Sabaki 0.60) or follow the client's public description
(kgsGtp). Clients ask only for commands that ``list_commands`` names; so do these tests where a command is optional.
"""

import json
import re
import time

import pytest

from tests.gtp.process import ANSWER_S, Engine, line_of

VERTEX = re.compile("= ([A-HJ][1-9]|PASS|resign)")
SCORE = re.compile(r"= ([BW]\+\d+(\.5)?|0)")


@pytest.fixture
def listed(shared_engine):
    """The commands that the engine says it has."""
    return set(shared_engine.ask("list_commands")[2:].split("\n"))


def agree(engine, *commands):
    """Send commands of which each must succeed and say nothing."""
    for command in commands:
        assert engine.ask(command) == "=", command


# --- GoGui ---


def test_gogui_twogtp(engine, listed):
    """Every game begins with the board set up twice; komi comes only once in the life of the process."""
    assert engine.ask("protocol_version") == "= 2"
    assert engine.ask("name") == "= Keima"
    assert re.fullmatch(r"= \d+\.\d+\.\d+", engine.ask("version"))
    assert {"boardsize", "clear_board", "komi", "genmove", "play", "final_score", "time_settings"} <= listed
    agree(engine, "komi 6.5")
    for _ in range(2):
        agree(engine, *2 * ("boardsize 9", "clear_board"), "time_settings 600 0 0")
        assert engine.ask("get_komi") == "= 6.5"
        agree(engine, "play B C3")
        assert VERTEX.fullmatch(engine.ask("genmove w"))
        agree(engine, "play B PASS", "play W PASS")
        assert re.fullmatch(r"= \d+\.\d+", engine.ask("cputime"))
        assert SCORE.fullmatch(engine.ask("final_score"))
    assert engine.ask("gogui-interrupt") in ("=", "? unknown command")
    if "gogui-play_sequence" in listed:
        agree(engine, "clear_board", "gogui-play_sequence b C3 w D4 b E5")


def test_the_window_of_gogui(engine, listed):
    for _ in range(2):
        assert engine.ask("name") == "= Keima"
        assert engine.ask("protocol_version") == "= 2"
    agree(engine, "boardsize 9", "clear_board", "komi 6.5", "time_settings 600 0 0", "time_left b 600 0")
    assert VERTEX.fullmatch(engine.ask("genmove b"))
    agree(engine, "undo", "play b E5", "undo", "clear_board")
    for command in ("gogui-analyze_commands", "gogui-title"):
        assert engine.ask(command).startswith("=" if command in listed else "? unknown command")
    assert engine.ask("final_status_list dead").startswith("=")
    # The comment arrives while the command runs; it is never answered, the command always.
    engine.send("genmove w\n# interrupt\n")
    assert VERTEX.fullmatch(engine.reply())


def test_gogui_regress(engine, tmp_path):
    """Commands have numbers, answers repeat them, and comments between them are passed over."""
    sgf = tmp_path / "position 1.sgf"
    sgf.write_text("(;GM[1]SZ[9]AB[cc][gc]AW[cg]PL[W];W[gg];B[ee])")
    engine.send(f"loadsgf {sgf}\n# a comment\n10 reg_genmove w\n#? [D4|E4]\n\n20 reg_genmove w\n30 final_score\n")
    assert engine.reply() == "="
    for number in (10, 20):
        assert re.fullmatch(rf"={number} [A-J][1-9]", engine.reply())
    assert engine.reply().startswith("=30 ")


# --- OGS ---


def gtp2ogs(engine, text):
    """A line as gtp2ogs ends it."""
    engine.send(text + "\r\n")
    return engine.reply()


def test_gtp2ogs(engine, listed):
    def agrees(*commands):
        assert [gtp2ogs(engine, command) for command in commands] == ["="] * len(commands)

    assert gtp2ogs(engine, "list_commands").startswith("= protocol_version\n")
    kinds = gtp2ogs(engine, "kata-list_time_settings")
    assert "fischer-capped" in kinds.split()
    agrees("boardsize 9", "clear_board", "komi 6.5", "play white c4", "play black pass")
    for color in ("black", "white"):
        agrees("kata-time_settings fischer-capped 60 10 120 -1", "time_left black 48 0", "time_left white 60 0")
        assert VERTEX.fullmatch(gtp2ogs(engine, f"genmove {color}"))
    agrees("play black pass", "play white pass")
    assert VERTEX.fullmatch(gtp2ogs(engine, "genmove black"))
    assert re.match(r"= \n", gtp2ogs(engine, "showboard"))


def test_gtp2ogs_replays_whole_games_and_lets_one_colour_move_often(engine):
    moves = ["play black e5", "play white c3", "play black g7", "play black c7", "play black g3", "play white e3"]
    for count in range(1, len(moves) + 1):
        for command in ("boardsize 9", "clear_board", "komi 6.5", *moves[:count]):
            assert gtp2ogs(engine, command) == "="
    assert VERTEX.fullmatch(gtp2ogs(engine, "genmove white"))
    assert VERTEX.fullmatch(gtp2ogs(engine, "genmove white"))


@pytest.mark.parametrize("stones", range(2, 10))
def test_gtp2ogs_counts_the_stones_of_a_free_handicap(engine, stones):
    points = gtp2ogs(engine, f"place_free_handicap {stones}")[2:].split()
    assert len(points) == len(set(points)) == stones
    assert VERTEX.fullmatch(gtp2ogs(engine, "genmove white"))


@pytest.mark.parametrize("size", ["9 13", "19 9", "5 25"])
def test_gtp2ogs_is_told_that_a_board_is_not_square(engine, size):
    assert gtp2ogs(engine, f"boardsize {size}") == f"? unacceptable size: {size.replace(' ', 'x')} is not square"
    assert gtp2ogs(engine, "boardsize 7 7") == "="
    assert "\n 7 . . . . . . . 7\n" in engine.ask("showboard")


@pytest.mark.parametrize("color", ["black", "white"])
def test_a_game_is_resumed_after_two_passes(engine, color):
    agree(engine, "play black e5", "play white pass", "play black pass")
    agree(engine, "undo", "undo", "play white c3", "play black pass", "play white pass")
    assert VERTEX.fullmatch(engine.ask(f"genmove {color}"))
    agree(engine, "play black c7", "play white g7", "undo")
    assert VERTEX.fullmatch(engine.ask(f"genmove {color}"))


@pytest.mark.parametrize(
    "clock",
    [
        ("time_left black -3 0", "time_left white -3.5 5"),
        ("time_settings -60 -30 -5", "time_left black 10 0"),
        ("time_settings 0 30 1", "time_left black 0 0"),
        ("time_settings 0 0 0",),
        ("time_settings 60 10 0",),
        ("time_settings 0 5 3", "time_left black 5 -1"),
        ("kata-time_settings fischer -10 1", "time_left black -9 0"),
        ("kata-time_settings fischer-capped 60 10 30 -1", "time_left black 0 0"),
        ("kata-time_settings byoyomi 0 5 1", "time_left black -0.25 1"),
        ("kata-time_settings canadian 0 0 0", "time_left black 0 25"),
        ("kgs-time_settings byoyomi 300 30 5", "time_left black 30 9"),
        ("kgs-time_settings absolute 1", "time_left black 0.001 0"),
        ("kgs-time_settings none", "time_left black 5 0"),
    ],
)
def test_odd_clocks_are_taken_for_what_they_can_mean(engine, clock):
    """FIELD: clocks run below zero, overtime without stones, one colour's seconds sent for the other's."""
    agree(engine, *clock)
    assert VERTEX.fullmatch(engine.ask("genmove black"))


# --- Sabaki ---


def test_sabaki_sends_its_beginning_without_waiting(listed):
    """Komi comes before the size, and nothing waits for an answer; the first answers come while the player loads."""
    beginning = ("name", "version", "protocol_version", "list_commands", "komi 0", "boardsize 9", "clear_board")
    with Engine("--visits", "4") as engine:
        engine.send("".join(f"{number} {command}\n" for number, command in enumerate(beginning)))
        replies = [engine.reply() for _ in beginning]
        assert [reply.partition(" ")[0] for reply in replies] == [f"={number}" for number in range(len(beginning))]
        assert set(replies[3].partition(" ")[2].split("\n")) == listed
        assert "analyze" not in listed  # Sabaki would read its win rates as another engine's.
        assert engine.ask("get_komi") == "= 0"
        agree(engine, "play B E5", "play W C3")
        assert VERTEX.fullmatch(engine.ask("genmove B"))
        agree(engine, "undo")
        engine.send("17 quit\n")
        assert engine.reply() == "=17"
        assert engine.process.wait(ANSWER_S) == 0


# --- LizGoban, Lizzie ---


def test_those_that_analyse_know_when_the_engine_is_ready_and_by_which_name_to_call_it():
    """LizGoban asks nothing before a line says "GTP ready"; Lizzie analyses with scores if the name begins so."""
    with Engine("--name", "KataGo-Keima") as engine:
        assert engine.ask("0 name") == "=0 KataGo-Keima"
        assert re.fullmatch(r"=1 \d+\.\d+\.\d+", engine.ask("1 version"))
        engine.ready()
        while b"GTP ready" not in b"".join(engine.errors):  # Told by another thread than the one that answers.
            time.sleep(0.01)
        _, _, errors = engine.end()
    # Lizzie reads standard error too, and takes lines that begin so for replies and reports.
    assert errors.splitlines()[-1].endswith(": GTP ready")
    assert not re.search(r"^(=|\?|info|play|komi=|opp_komi=)| -> ", errors, re.M)


# --- q5Go ---


def test_q5go(shared_network_engine):
    """Its own patterns: it draws a score where a move has both its mean and its deviation, with space behind each."""
    engine = shared_network_engine
    for number, command in enumerate(("boardsize 9", "clear_board", "komi 6.5", "kata-set-rules japanese"), 1):
        assert engine.ask(f"{number} {command}") == f"={number}"
    assert engine.ask("5 known_command kata-analyze") == "=5 true"
    engine.send("6 kata-analyze black 100\n")
    assert line_of(engine) == "=6"
    while "scoreStdev" not in (update := line_of(engine)):
        assert update.startswith("info move ")
    for move in update.split("info move ")[1:]:
        for pattern in (r"^(\S+)\s+", r"\s+visits\s+(\d+)\s+", r"\s+winrate\s+(\S+)\s+", r"\s+scoreMean\s+(\S+)\s+",
                        r"\s+scoreStdev\s+(\S+)\s+", r"\s+pv\s+(.*)$"):  # fmt: skip
            assert re.search(pattern, move)
    engine.send("7 known_command known_command\n")
    while line_of(engine):
        pass
    assert engine.reply() == "=7 true"
    assert engine.ask("kata-set-rules chinese") == "="


# --- KGS ---


def test_kgsgtp(engine, listed):
    assert {"kgs-rules", "kgs-time_settings", "time_left", "final_status_list", "undo"} <= listed
    assert "kgs-chat" not in listed  # Newer versions of kgsGtp end when it is.
    assert engine.ask("known_command kgs-chat") == "= false"
    for rules in ("chinese", "aga", "new_zealand", "japanese"):
        agree(engine, "boardsize 9", f"kgs-rules {rules}", "clear_board", "komi 6.5")
        agree(engine, "kgs-time_settings byoyomi 60 10 5", "time_left b 60 0", "time_left w 60 0")
        agree(engine, "play b E5", "time_left w 10 5", "time_left b 10 4")
        assert VERTEX.fullmatch(engine.ask("genmove w"))
        agree(engine, "undo", "play w C3", "play b pass", "play w pass")
        assert engine.ask("final_status_list dead").startswith("=")
        assert engine.ask("final_status_list alive").startswith("=")
    for kind in ("none", "absolute 60", "canadian 60 30 5"):
        agree(engine, f"kgs-time_settings {kind}")
    agree(engine, "clear_board", "set_free_handicap C3 G7 C7", "time_settings 0 1 0")
    if "kgs-genmove_cleanup" in listed:
        assert VERTEX.fullmatch(engine.ask("kgs-genmove_cleanup w"))
    if "kgs-game_over" in listed:
        agree(engine, "kgs-game_over")


# --- CGOS ---


def test_cgos(engine):
    """A new game whenever the server says so; games are replayed after a lost connection."""
    agree(engine, "boardsize 9", "komi 7.0", "time_settings 300 0 0")
    agree(engine, "cgos-opponent_name Gnugo-3.7.10-a1", "cgos-opponent_rating 1800", "clear_board")
    agree(engine, "play b E5", "play w C3", "play b G3", "time_left b 280 0", "time_left w 290 0")
    begin, line, move = engine.ask("cgos-genmove_analyze w").split("\n")
    assert begin == "=" and move.startswith("play ")
    found = json.loads(line)
    assert 0.0 <= found["winrate"] <= 1.0 and found["visits"] >= 1 and len(found["ownership"]) == 81
    assert {"move", "winrate", "prior", "visits", "pv"} <= found["moves"][0].keys()
    assert move == f"play {found['moves'][0]['move']}"
    engine.send("cgos-analyze b 5\n")
    assert line_of(engine) == "="
    assert json.loads(line_of(engine))["moves"]
    engine.send("cgos-gameover B+Resign\n")
    while line_of(engine):
        pass
    assert engine.reply() == "="
    for said in (b"opponent: Gnugo-3.7.10-a1", b"opponent's rating: 1800", b"result: B+Resign"):
        # Told by another thread than the one that answers.
        while not any(line.strip() == said for line in engine.errors):
            time.sleep(0.01)


# --- LizGoban, as it finds out what an engine can do ---


def test_lizgobans_probes(engine, listed):
    """It asks each command once; those that it believes in, it uses ever after."""
    assert {"kata-search_cancellable", "set_position", "kata-raw-nn", "kata-get-models"} <= listed
    for probe in (
        "kata-analyze 1 pvVisits true", "kata-analyze 1 ownershipStdev true", "kata-analyze 1 movesOwnership true",
        "kata-analyze 1 rootInfo true", "lz-analyze 1 allow B D4 1", "kata-search_analyze_cancellable B",
        "kata-analyze B interval 1 allow B D4,E5 1 allow W D4,E5 1",
    ):  # fmt: skip
        engine.send(f"{probe}\nname\n")
        assert engine.reply().startswith("=") and engine.reply() == "= Keima"
    agree(engine, "set_position", "set_position b D4 w E5", "play b C3")
    assert VERTEX.fullmatch(engine.ask("kata-search_cancellable w"))
