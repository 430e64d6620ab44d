"""The command line: every option of the engine, with the default that engine/config.py gives it."""

import errno
import sys
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass, fields

import click
import pytest
from click.testing import CliRunner

from bench.match.command import command as match
from bench.speed.benchmark import command as benchmark
from bench.speed.gpu import command as gpu
from bench.speed.inference import command as inference
from bench.strength.regress import command as regress
from engine.config import PlayOptions, SearchOptions
from engine.config.declaration import Checked, option
from gtp.cli import KeimaCommand
from gtp.cli.analysis import analysis
from gtp.cli.arguments import NewFile
from gtp.cli.gtp import gtp
from gtp.cli.options import ExecutorOptions, options_of
from gtp.cli.review import review
from tests.conftest import ROOT


@pytest.mark.parametrize("kind", [PlayOptions, SearchOptions])
def test_without_options_everything_has_its_default(kind):
    values = gtp.make_context("gtp", []).params
    assert {item.name: values[item.name] for item in fields(kind)} == {item.name: item.default for item in fields(kind)}


@dataclass
class Switches(Checked):
    """One of each kind."""

    heading = "Switches"

    on: bool = option(True, "on by itself")
    off: bool = option(False, "off by itself")


@pytest.mark.parametrize(
    ("words", "on", "off"), [([], True, False), (["--no-on"], False, False), (["--on", "--off"], True, True)]
)
def test_switches_that_are_on_can_be_switched_off(words, on, off):
    command = click.Command("x", callback=lambda **_: None)
    command = options_of(Switches)(command)
    assert command.make_context("x", words).params == {"on": on, "off": off}


def test_an_option_of_earlier_versions_is_answered_by_what_is_instead():
    answer = CliRunner().invoke(gtp, ["--reply-chance", "0.3"])
    assert "option reply-chance was removed: use reply-probability" in answer.output
    answer = CliRunner().invoke(gtp, ["--mercy", "0.3"])
    assert answer.exit_code == 2
    assert "option mercy was removed: rollouts are played to the end" in answer.output
    for words in (
        ["--transpositions"],
        ["--no-transpositions", "--visits", "5"],
        ["--transpositions", "--visits", "5"],
    ):
        assert "option transpositions was removed: it gained nothing" in CliRunner().invoke(gtp, words).output


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "engine.system.on_ray", None)
    (wanted,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["cluster"]
    said = f"^--ray needs Ray: pip install '{wanted}' beside Keima"
    with ExitStack() as stack, pytest.raises(ValueError, match=said):
        ExecutorOptions("local", 0).open(stack, chunk=1)


@pytest.mark.parametrize("flag", ["--weights", "-model"])
def test_a_shipped_player_brings_its_options_to_analyses(monkeypatch, flag):
    seen = []

    def load(settings, *_):
        seen.append(settings.search.rollout_weight)
        raise SystemExit

    monkeypatch.setattr("gtp.cli.analysis.load_engine", load)
    for name in ("Output", "Sender"):
        monkeypatch.setattr(f"gtp.cli.analysis.{name}", lambda *_: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    CliRunner().invoke(analysis, [flag, "alphago-9"])
    CliRunner().invoke(analysis, [flag, "alphago-9", "--rollout-weight", "0.2"])
    assert seen == [0.5, 0.2]


def test_a_shipped_player_brings_its_options_to_commands_that_have_none_of_them(monkeypatch, tmp_path):
    """They measured and checked another search than the one that plays: without rollouts, by other patterns."""
    seen = []

    def load(options, *_):
        seen.append((options.rollout_weight, options.threads))
        raise SystemExit

    monkeypatch.setattr("engine.play.factory.load_parts", load)
    (tmp_path / "mine.toml").write_text("rollout-weight = 0.25\nthreads = 3\n")
    for words in ([], ["--config", str(tmp_path / "mine.toml")]):
        CliRunner().invoke(benchmark, ["--weights", "alphago-9", "--no-write", *words])
    assert seen == [(0.5, 0), (0.25, 3)]


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (
            match,
            ["--first", "a", "--second", "b", "--json", f"{__file__}/x.json"],
            "test_cli.py is not a writable folder",
        ),
        (regress, ["--engine", "a", "--json", f"{__file__}/x.json", __file__], "test_cli.py is not a writable folder"),
        (match, ["--first", "a", "--second", "b", "--patience", "nan"], "nan is not in the range 1.0 or more"),
        (match, ["--first", "a", "--second", "b", "--patience", "inf"], "inf is not in the range 1.0 or more"),
        (review, ["--out", "x", "--seconds", "nan", __file__], "nan is not in the range 0.0 to 86400.0"),
        (gpu, ["--seconds", "nan"], "nan is not in the range 0.001 to 3600.0"),
        (inference, ["--seconds", "nan"], "nan is not in the range 0.001 to 3600.0"),
    ],
)
def test_what_would_be_found_out_at_the_end_is_refused_at_the_start(command, words, message):
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2 and message in result.output


def test_a_file_of_statistics_may_lie_in_a_folder_that_is_still_to_be_made(tmp_path):
    """As in the first example of docs/match.md."""
    path = tmp_path / "runs" / "a.json"
    assert NewFile().convert(str(path), None, None) == path and not path.parent.exists()
    words = ["--first", "false", "--second", "false", "--games", "1", "--json", str(path)]
    CliRunner().invoke(match, words)
    assert "games" in path.read_text()


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ValueError("size is 1,\nexpected 2 or more"), 1, "Error: size is 1, expected 2 or more\n"),
        (RuntimeError("out of memory"), 1, "Error: out of memory\n"),
        (click.exceptions.Exit(130), 130, ""),
        (BrokenPipeError(errno.EPIPE, "closed"), 1, ""),
    ],
)
def test_an_error_ends_a_command_with_one_line_and_an_exit_keeps_its_status(error, status, said):
    """keima zero, stopped by Ctrl-C, ended with status 1: click's Exit is a RuntimeError."""

    @click.command(cls=KeimaCommand)
    def command():
        raise error

    answer = CliRunner().invoke(command)
    assert (answer.exit_code, answer.stderr) == (status, said)
