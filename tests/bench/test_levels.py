"""Measuring levels: the path, the ranks on it, runs that continue, the table, and the habits that no person has."""

import math
import random
import tomllib
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from bench.strength import levels
from bench.strength.level_games import Block, Result, finished_games
from bench.strength.level_habits import faults
from bench.strength.levels import (
    GNU_GO,
    PATH,
    Anchor,
    Board,
    Games,
    Played,
    at,
    elo_of,
    measured,
    places,
    play_size,
    text_of,
)
from engine.config import RANKS
from engine.features.encoder import KEIMA
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex
from engine.go.position import META_N_MOVES, begin, new_position
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.play import levels as play_levels


def test_the_path_grows_stronger_and_its_ends_are_its_rungs():
    for weak, strong in pairwise(PATH):
        assert weak.visits <= strong.visits
        assert weak.temperature >= strong.temperature
        assert weak.least <= strong.least
        assert weak.locality >= strong.locality
    assert [at(float(i)) for i in range(len(PATH))] == list(PATH)
    between = at(9.5)
    assert (between.visits, between.locality) == (round(math.sqrt(PATH[9].visits * PATH[10].visits)), 0.0)


def test_ranks_follow_from_the_ratings_of_the_server():
    assert elo_of("11k") == 0.0
    elo = [elo_of(name) for name in RANKS]
    steps = np.diff(elo)
    assert elo == sorted(elo)
    # OGS' ranks are 36 Elo apart at 20k and 100 at 5d.
    assert (round(steps[0]), round(steps[-1])) == (36, 96)


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Games whose winners are drawn by an Elo of 110 points a rung, GNU Go being rung 5."""
    played, drawn = [], random.Random(1)
    places_of = {text_of(at(i / 50)): i / 50 for i in range(50 * (len(PATH) - 1) + 1)}

    def place(level):
        known = places_of.get(text_of(level))
        if known is None:
            known = min((i / 500 for i in range(500 * (len(PATH) - 1) + 1)), key=lambda x: distance(at(x), level))
            places_of[text_of(level)] = known
        return known

    def distance(one, two):
        return sum(abs(math.log(a + 1e-6) - math.log(b + 1e-6)) for a, b in zip(one, two, strict=True))

    def result(difference, games):
        share = 1.0 / (1.0 + 10.0 ** (-110.0 * difference / 400.0))
        won = sum(drawn.random() < share for _ in range(games))
        return Result(won, 0, games - won)

    def block(_, one: Block):
        played.append(one)
        if len(played) == world_of.stop:
            raise KeyboardInterrupt
        gives = 4 * 55.0 / 110.0 if one.handicap else 0.0
        return result(place(one.first) + gives - place(one.second), one.games)

    def anchor(_server, _size, level, _anchor, start, games):
        return result(place(level) - 5.0, games)

    monkeypatch.setattr(levels, "play_block", block)
    monkeypatch.setattr(levels, "play_anchor", anchor)

    class world_of:  # noqa: N801
        stop = 0
        blocks = played
        folder = tmp_path

        @staticmethod
        def open():
            return Games(tmp_path, object(), Console(stderr=True, quiet=True))

    return world_of


@pytest.mark.timeout(120)
def test_ranks_are_found_on_the_path_and_a_run_continues_after_any_end(world, monkeypatch):
    anchors = [Anchor(GNU_GO, "gnugo"), Anchor(levels.PACHI, "pachi")]
    monkeypatch.setattr(levels, "LEVEL_GAMES", {9: 60})
    monkeypatch.setattr(levels, "NO_SEARCH_GAMES", {9: 60})
    monkeypatch.setattr(levels, "RUNG_GAMES", {9: 400})
    monkeypatch.setattr(levels, "CHUNK", {9: 200})
    monkeypatch.setattr(levels, "ANCHOR_GAMES", {9: 100})
    world.stop = 9
    with pytest.raises(KeyboardInterrupt):
        play_size(world.open(), 9, world.folder, anchors)
    before = list(world.blocks[:-1])
    with (world.folder / "games.jsonl").open("ab") as file:
        file.write(b'{"size": 9, "fir')
    play_size(world.open(), 9, world.folder, anchors)
    # The block that was cut off was played again, the others were not.
    assert len({(one.first, one.second, one.start) for one in world.blocks}) == len(world.blocks) - 1
    assert before == world.blocks[:8]
    games = world.open()
    found = places(games, 9, world.folder)
    # 110 Elo a rung, GNU Go at rung 5; the errors of eight matches add up.
    for name, place in found.items():
        assert place == pytest.approx(5.0 + elo_of(name) / 110.0, abs=1.0), name
    count = len(world.blocks)
    play_size(world.open(), 9, world.folder, anchors)
    assert len(world.blocks) == count


def test_the_table_written_is_the_one_that_play_reads(world, tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "LEVEL_GAMES", {9: 20})
    monkeypatch.setattr(levels, "NO_SEARCH_GAMES", {9: 20})
    play_size(world.open(), 9, world.folder, [Anchor(GNU_GO, "gnugo")])
    games = world.open()
    found = places(games, 9, world.folder)
    made = {name: at(place) for name, place in found.items()}
    board = Board(games, made, measured(games, 9, found), next(iter(made)))
    path, picture = tmp_path / "levels.toml", tmp_path / "levels.svg"
    levels.write_table(path, "0" * 64, {9: board})
    tomllib.loads(path.read_text(encoding="utf-8"))
    monkeypatch.setattr(play_levels, "LEVELS", path)
    read = play_levels.table.__wrapped__()
    assert {name: one.settings for name, one in read.boards[9].items()} == made
    for one in read.boards[9].values():
        assert one.low < one.elo < one.high
    levels.draw_picture(picture, {9: board})
    assert "<svg" in picture.read_text(encoding="utf-8")
    text = "\n".join(levels.report({9: board}))
    assert all(f"| {name} |" in text for name in made)


def test_ranks_at_the_bottom_that_games_do_not_tell_apart_are_no_levels(world, tmp_path):
    made = {name: at(place) for name, place in zip(RANKS, np.linspace(2.0, 6.0, 9), strict=False)}
    names, games = [*made], Games(tmp_path, None, Console(stderr=True, quiet=True))
    games.played.append(Played(9, made[names[0]], GNU_GO, 0, 0, Result(2, 0, 2)))
    for (strong, weak), won in {(2, 0): 50, (4, 2): 80, (6, 4): 50, (8, 6): 80}.items():
        games.played.append(Played(9, made[names[strong]], made[names[weak]], 0, 0, Result(won, 0, 100 - won)))
    lowest = levels.lowest_told_apart(games, 9, made)
    assert levels.lowest_told_apart(Games(tmp_path, None, Console(stderr=True, quiet=True)), 9, made) == names[0]
    assert lowest == names[2]
    board = Board(games, made, measured(games, 9, {name: float(i) for i, name in enumerate(made)}), lowest)
    assert [*board.in_table()] == names[2:]
    text = "\n".join(levels.report({9: board}))
    assert f"| ({names[1]}) |" in text and f"| {names[2]} |" in text


def test_handicap_games_begin_with_the_stones_and_white_to_move():
    weak = PATH[0]
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as server:
        (finished,) = finished_games(server, Block(9, weak, weak, 4, 3, 1))
    moves = finished.games.moves.tolist()
    assert moves[1:7:2] == [81, 81, 81]
    assert len({move for move in moves[0:7:2] if move != 81}) == 4
    assert moves[7] != 81
    assert finished.games.komi[0] == 0.5


BOARD = """
    . X . X . . .
    X X X X . O .
    . X O O O O .
    . . . . . . .
    . O X . . . .
    O X X O . . .
    . O O . . . .
"""


def found(vertex, to_move=BLACK, reply="pass", owner=0.0, n_moves=20, text=BOARD):
    board = parse(text).board
    size = int(board.meta[0])
    position = new_position(size, 200)
    position.board.buffer[:] = board.buffer
    begin(position, to_move)
    position.meta[META_N_MOVES] = n_moves
    point, answer = (PASS if one == "pass" else from_vertex(one, size) for one in (vertex, reply))
    return list(faults(position, point, answer, np.full(size * size, owner)))


def test_what_no_person_does_is_named():
    assert found("A7", owner=1.0) == ["eye filled"]
    assert found("A4", owner=1.0) == []
    assert found("A4", owner=1.0, text="\n".join([". . X . O . ."] * 7)) == ["own territory"]
    assert found("E4") == []
    assert found("pass") == ["pass too early"]
    assert found("pass", owner=0.9) == []
    assert found("G1", n_moves=4) == []


def test_a_big_chain_left_in_atari_is_named():
    text = "\n".join(["O O O . . . .", "X X X . . . .", "O O O O . . ."] + [". . . . . . ."] * 4)
    assert found("G1", reply="D6", text=text) == ["atari ignored"]
    assert found("D6", reply="G1", text=text) == []
    # Black is saved by nothing if the extension has no room.
    closed = text.replace("X X X . . . .", "X X X . O . .")
    assert found("G1", reply="D6", text=closed) == []


def test_a_self_atari_is_named():
    text = "\n".join([". X . O . . .", "O O O O . . .", ". . . . . . ."] + [". . . . . . ."] * 4)
    assert found("A7", text=text) == ["self-atari"]
    assert found("A7", to_move=WHITE, text=text) == []
