"""The bench of encoders: the names and form of its lines, clear mistakes."""

import json

import pytest
from click.testing import CliRunner

from bench.speed.features import command
from engine.features.encoder import ENCODERS


def test_every_encoder_has_a_figure_on_every_board():
    answer = CliRunner().invoke(command, ["--seconds", "0.01", "--repeats", "1"])
    assert answer.exit_code == 0, answer.output
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert all(list(line) == ["name", "value", "unit"] for line in lines)
    assert [line["name"] for line in lines] == [f"features/{name}/{size}" for size in (19, 9) for name in ENCODERS]
    assert all(line["unit"] == "us" and line["value"] > 0 for line in lines)
    assert "measuring features/alphago-49/19" in answer.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--size", "1"], "1 is not in the range 2<=x<=25"), (["--repeats", "0"], "0 is not in the range")],
)
def test_a_bad_option_is_one_clear_line(options, message):
    answer = CliRunner().invoke(command, options)
    assert answer.exit_code == 2 and answer.stdout == ""
    errors = [line for line in answer.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1 and message in errors[0]
