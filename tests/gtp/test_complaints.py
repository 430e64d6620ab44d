"""What users of Go programs complain of once the game runs, put to the real process; most with the default network."""

import re

import pytest

from engine.go import diagram
from engine.go.board import is_eye
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points, to_vertex
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black, result_text
from tests.playing import DEAD_STONES, SEKI_AT_C3

VERTEX = re.compile("= [A-HJ][1-9]")
COLORS = {BLACK: "b", WHITE: "w"}

RING = """
    . . . . O . . . .
    . O O O O O O O .
    . O X X X X X O .
    . O X . X O X O .
    O O X X X . X O O
    . O X . O . X O .
    . O X X X X X O .
    . O O O O O O O .
    . . . . O . . . .
"""
"""Black's cyclic chain lives on the two white stones inside."""

DEAD_RING = """
    . . . . . O . . . . .
    . O O O O O O O O O .
    . O X X X X X X X O .
    . O X O O . O O X O .
    . O X O . O . O X O .
    O O X O O O O O X O O
    . O X O . O . O X O .
    . O X O O . O O X O .
    . O X X X X X X X O .
    . O O O O O O O O O .
    . . . . . O . . . . .
"""
"""Black's cyclic chain has no eye, and what it encloses has four."""


def stones_of(text):
    """Arguments of gogui-setup for a diagram; and its size."""
    board = diagram.parse(text).board
    size = int(board.meta[0])
    points = on_board_points(size).tolist()
    words = [f"{COLORS[board.color[point]]} {to_vertex(point, size)}" for point in points if board.color[point]]
    return " ".join(words), size


def set_up(ask, text, *commands):
    """Put a diagram on the board after some commands; Black is to move."""
    stones, size = stones_of(text)
    for command in (f"boardsize {size}", "clear_board", *commands, f"gogui-setup {stones}"):
        assert ask(command) == "=", command


def vertices(reply):
    """The vertices of a reply."""
    return set(reply[1:].split())


# --- endings ---


@pytest.mark.parametrize("rules", ["chinese", "chinese-ogs", "japanese"])
def test_an_early_pass_is_not_answered_by_a_pass(network, rules):
    """Opponents who passed at move two were answered by a pass, and won or lost what had not been played."""
    for command in (f"kata-set-rules {rules}", "kata-set-param visits 16", "play b E5", "play w pass"):
        assert network(command) == "="
    assert VERTEX.fullmatch(network("genmove b"))


@pytest.mark.parametrize("first", ["b", "w"])
def test_nobody_fills_territory_in_a_finished_handicap_game(network, first):
    """Under Japanese rules with handicap the engine went on in its own territory, a point a move, and did not pass."""
    for command in ("kata-set-rules japanese", "komi 0.5", "set_free_handicap C3 C7", "kata-set-param visits 16"):
        assert network(command) == "="
    for row in range(1, 10):
        for column, color in (("E", "w"), ("C", "b"), ("F", "w"), ("D", "b")):
            if f"{column}{row}" not in ("C3", "C7"):
                assert network(f"play {color} {column}{row}") == "="
    second = "w" if first == "b" else "b"
    assert [network(f"genmove {color}") for color in (first, second)] == ["= pass", "= pass"]
    assert network("final_score") == "= W+9.5"


def test_where_every_stone_counts_the_dead_are_captured_first(network):
    """Games won on the board were lost by passing: the server took nothing off. Here every dead stone decides."""
    set_up(network, DEAD_STONES, "kata-set-rules tromp-taylor", "komi 14.5", "kata-set-param visits 32")
    answers = []
    while "= pass" not in answers and len(answers) < 30:
        answers.append(network("genmove b"))
        network("play w pass")
    assert answers[-1] == "= pass"
    final = Game(9, rules_named("tromp-taylor"), 14.5)
    left = diagram.parse(network("showboard")[2:]).board
    points = on_board_points(9).tolist()
    stones = [[point for point in points if left.color[point] == color] for color in (BLACK, WHITE)]
    final.setup_stones(*stones, BLACK)
    assert final_score_black(final.position) == 0.5


@pytest.mark.parametrize("rules", ["chinese", "japanese", "aga"])
def test_two_passes_do_not_change_the_score(network, rules):
    """A game estimated as won turned into a lost one as soon as both had passed."""
    set_up(network, DEAD_STONES, f"kata-set-rules {rules}", "komi 6.5")
    before = network("final_score")
    assert before.startswith("= B+")
    for color in "bw":
        assert network(f"play {color} pass") == "="
    assert network("final_score") == before


def test_after_two_passes_strict_rules_count_every_stone(network):
    """An estimate of who should have won is no result where no stone may be taken off without being captured."""
    set_up(network, DEAD_STONES, "kata-set-rules tromp-taylor", "komi 6.5")
    assert network("final_score").startswith("= B+")
    assert len(network("final_status_list dead").split("\n")) == 2
    for color in "bw":
        assert network(f"play {color} pass") == "="
    final = Game(9, rules_named("tromp-taylor"), 6.5)
    stones = diagram.parse(DEAD_STONES).board
    points = on_board_points(9).tolist()
    final.setup_stones(
        *([point for point in points if stones.color[point] == color] for color in (BLACK, WHITE)), BLACK
    )
    assert network("final_score") == f"= {result_text(final_score_black(final.position))}"
    assert network("estimate_score").startswith(network("final_score"))
    assert network("final_status_list dead") == network("final_status_list seki") == "="


def test_a_network_without_search_ends_its_games_and_keeps_its_eyes(network):
    """Networks that played without search would not stop: they filled their own eyes until all was lost."""
    for command in ("kata-set-param policy-only true", "kata-set-param resign-below -1"):
        assert network(command) == "="
    game = Game(9)
    while not game.is_over and game.n_moves < 162:
        point = from_vertex(network(f"genmove {COLORS[game.to_move]}")[2:], 9)
        assert point == PASS or not is_eye(game.position.board, point, game.to_move)
        game.play(game.to_move, point)
    assert game.is_over


def test_a_mirrored_game_ends(network):
    """Opponents who mirror every move were helped by symmetric answers to the very end."""
    assert network("kata-set-param resign-below -1") == "="
    answers = []
    while answers[-2:] != ["= pass", "= pass"] and len(answers) < 162:
        answers.append(network("genmove b"))
        point = answers[-1][2:]
        mirrored = "pass" if point == "pass" else "ABCDEFGHJ"[8 - "ABCDEFGHJ".index(point[0])] + str(10 - int(point[1]))
        if network(f"play w {mirrored}") == "=":
            answers.append(f"= {mirrored}")
        else:
            answers.append(network("genmove w"))
    assert all(VERTEX.fullmatch(answer) or answer == "= pass" for answer in answers)
    assert answers[-2:] == ["= pass", "= pass"]
    assert re.fullmatch(r"= [BW]\+\d+\.5", network("final_score"))


# --- stones dead, alive and in seki ---


@pytest.mark.parametrize(("text", "dead"), [(RING, "E4 F6"), (DEAD_RING, None)], ids=["alive", "dead"])
def test_a_ring_is_judged_by_what_is_in_it(network, text, dead):
    """Cyclic chains were taken for alive whatever they enclosed, and games lost by that."""
    set_up(network, text)
    board = diagram.parse(text).board
    size = int(board.meta[0])
    black = {to_vertex(point, size) for point in on_board_points(size).tolist() if board.color[point] == BLACK}
    assert vertices(network("final_status_list dead")) == (set(dead.split()) if dead else black)
    alive = vertices(network("final_status_list alive"))
    assert black <= alive if dead else not black & alive


def test_stones_in_seki_are_neither_dead_nor_without_a_name(network):
    """One finished game in twenty was scored wrongly, mostly where groups lived in seki."""
    set_up(network, SEKI_AT_C3)
    assert network("final_status_list dead") == "="
    assert network("final_status_list seki") == "= A5 B5 E5 B4 C4 D4 E4 A3 B3 D3 D2 D1\nA2 B2 C2 B1 C1"
    assert network("final_score") == "= B+6.5"


# --- boards, komi, ladders ---


@pytest.mark.parametrize("size", range(2, 26))
def test_every_size_is_played(ask, size):
    """Users of small and odd boards got moves that were not on them, or none."""
    for command in (f"boardsize {size}", "clear_board", "kata-set-param visits 2"):
        assert ask(command) == "="
    assert from_vertex(ask("genmove b")[2:], size) > 0
    assert from_vertex(ask("genmove w")[2:], size) >= 0


@pytest.mark.parametrize("size", [5, 25])
def test_where_the_network_does_not_play_rollouts_do(network, size):
    """Boards beside the usual sizes ended the engine or were refused."""
    assert network(f"boardsize {size}") == "="
    assert from_vertex(network("genmove b")[2:], size) > 0
    assert network("gogui-title") == "= Keima"


def test_the_network_knows_what_komi_means(network):
    """Networks of one komi took lost games for won ones at any other."""
    chances = []
    for komi in (-7.5, 0.5, 7.5):
        assert network(f"komi {komi}") == "="
        chances.append(float(re.search(r"whiteWin (\S+)", network("kata-raw-nn 0"))[1]))
    assert chances[0] < chances[1] < chances[2] and chances[2] - chances[0] > 0.2


# Five white stones in atari that cut Black in two; a ladder from E6 runs towards Q16.
PREY = "w E1 w E2 w E3 w E4 w E5 b D1 b D2 b D3 b D4 b D5 b D6 b F1 b F2 b F3 b F4 b F5"
AROUND = "w C3 w C5 w C8 w B6 w H2 w H3 w H4 w D16 w O3 b C12 b K16 b L3 b Q4"


@pytest.mark.parametrize(("far_corner", "escapes"), [("b Q16 w R14", False), ("w Q16 b O17", True)])
def test_a_ladder_is_seen_to_its_end(network, far_corner, escapes):
    """Networks ran out of ladders that worked, move by move, or gave up stones that a breaker had saved."""
    for command in ("boardsize 19", f"gogui-setup {PREY} {AROUND} {far_corner}", "gogui-setup_player w"):
        assert network(command) == "="
    assert ("SQUARE E6" in network("keima-ladders w")) == escapes
    assert network("kata-set-param visits 50") == "="
    assert (network("reg_genmove w") == "= E6") == escapes
