"""The bench of policy games: names and form of its lines."""

import json

from click.testing import CliRunner

from bench.speed.selfplay import command


def test_every_board_has_its_four_figures():
    options = ["--device", "cpu", "--seconds", "0.2", "--repeats", "1", "--threads", "1", "--at-once", "2"]
    done = CliRunner().invoke(command, [*options, "--network", "keima-6x64", "--size", "9"])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [f"keima-6x64/9{end}" for end in ("/alone", "", "/share", "/games")]
    assert [line["unit"] for line in lines] == ["evaluations/s", "evaluations/s", "ratio", "games/s"]
    assert all(line["value"] > 0 for line in lines[:3])
