"""The bench of games in bulk: names and form of its lines."""

import json

from click.testing import CliRunner

from bench.speed.selfplay import command

UNITS = {
    "/alone": "evaluations/s", "": "evaluations/s", "/share": "ratio", "/games": "games/s", "/search": "evaluations/s",
    "/search/share": "ratio", "/search/games": "games/s", "/search/rows": "rows/s",
}  # fmt: skip


def test_every_board_has_its_figures():
    options = ["--device", "cpu", "--seconds", "0.3", "--repeats", "1", "--threads", "1", "--at-once", "2"]
    done = CliRunner().invoke(command, [*options, "--network", "keima-4x48", "--size", "9"])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["name"]: line["unit"] for line in lines} == {f"keima-4x48/9{end}": of for end, of in UNITS.items()}
    assert all(line["value"] > 0 for line in lines if line["unit"] != "games/s" and line["unit"] != "rows/s")
