"""Regrets: a search as deep as its reference loses next to nothing on average, options are compared, errors told."""

import json

from click.testing import CliRunner

from bench.strength.regret import command

SMALL = ["--positions", "3", "--deep", "24", "--visits", "6", "--size", "7", "--repeats", "1", "--komi", "9"]


def test_sides_are_compared_with_the_first_on_the_same_positions():
    result = CliRunner().invoke(command, ["", "name=broad c-puct=9", *SMALL])
    assert result.exit_code == 0, result.output
    plain, broad = (json.loads(line) for line in result.stdout.splitlines())
    assert plain["name"] == "default" and plain["more_than_first"] == 0.0
    assert broad["name"] == "broad"
    assert abs(broad["more_than_first"] - (broad["regret"] - plain["regret"])) < 3e-5
    assert all(0.0 < row["top_share"] <= 1.0 for row in (plain, broad))


def test_an_option_that_is_none_is_refused_in_one_line():
    result = CliRunner().invoke(command, ["depth=3"])
    assert result.exit_code == 1
    assert "'depth=3': expected OPTION=VALUE" in result.output and result.output.count("\n") == 1
