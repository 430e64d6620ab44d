"""The bench of training prints its figures, of whatever size."""

import json

import numpy as np
from click.testing import CliRunner

from bench.speed.training import command, made_games
from engine.go.geometry import point_of
from engine.go.position import META_TO_MOVE, is_legal_move, new_position, play_move


def test_games_made_for_the_bench_are_legal():
    games = made_games()
    for g in range(len(games.size)):
        position = new_position(19)
        for move in games.moves[games.offsets[g] : games.offsets[g + 1]]:
            point = int(point_of(np.int64(move), 19))
            assert is_legal_move(position, point, position.meta[META_TO_MOVE])
            play_move(position, point, position.meta[META_TO_MOVE])


def test_every_figure_is_one_json_line():
    options = ["--network", "keima-6x64", "--batch", "2", "--seconds", "0.05", "--repeats", "2", "--device", "cpu"]
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 0, result.output
    figures = {one["name"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert figures["batches/keima-2/19"]["unit"] == figures["step/keima-6x64/2"]["unit"] == "positions/s"
    assert all(one["value"] > 0 for one in figures.values())
    assert len(figures) == 3
