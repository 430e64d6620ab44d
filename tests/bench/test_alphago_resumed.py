"""``keima alphago`` resumes: what has ended is known by what it made and of what, and how long the rest may take."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.alphago import runner, stages
from bench.alphago.command import _about
from bench.alphago.presets import TOUR
from bench.alphago.runner import Observer, Record, run_stage
from bench.alphago.stages import Way, all_stages
from engine.system.programs import keima
from tests.bench.small_stage import stage_of


class Unrun:
    """A command that is not run: it only makes what it is said to make."""

    def __init__(self, arguments, core, log, printed):
        self.returncode, self._arguments = 0, arguments
        STARTED.append(arguments)

    def poll(self):
        for command in MAKES:
            if keima(*command.words) == self._arguments:
                command.makes.parent.mkdir(parents=True, exist_ok=True)
                (command.makes.with_suffix(".part") if command.prints else command.makes).touch()
        return self.returncode


STARTED: list = []
MAKES: list = []


def all_of(way):
    """The commands of all stages, which the runner then makes the products of."""
    made = all_stages(way)
    MAKES[:] = [command for stage in made for command in stage.commands]
    return made


@pytest.mark.parametrize("change", ["relative", "link", "moved", "device", "games"])
def test_what_has_ended_is_known_however_it_is_spelled(tmp_path, monkeypatch, change):
    """The folder may be moved meanwhile, and another device be chosen; but other games are other games."""
    monkeypatch.setattr(runner, "start_child", Unrun)
    monkeypatch.setattr(runner, "sha256_of", lambda path: path.name)
    monkeypatch.setattr(stages, "find_gnugo", lambda: "/usr/games/gnugo")
    monkeypatch.chdir(tmp_path)
    STARTED.clear()
    out, device = tmp_path / "a", "cpu"
    (people := tmp_path / "kgs").mkdir()
    (people / "1.sgf").write_text("(;)")
    record = Record.of(out)
    for stage in all_of(Way(out, TOUR, (people,), device, 1)):
        assert run_stage(stage, record, 1, False, Observer())
    ran = len(STARTED)
    if change == "relative":
        out, people = Path("a"), Path("../" + tmp_path.name) / "kgs"
    elif change == "link":
        (tmp_path / "b").symlink_to(out)
        out = tmp_path / "b"
    elif change == "moved":
        out = out.rename(tmp_path / "b")
    elif change == "device":
        device = "cuda"
    else:
        (people / "2.sgf").write_text("(;)")
    for stage in all_of(Way(out, TOUR, (people,), device, 1)):
        assert run_stage(stage, Record.of(out), 1, False, Observer()) == (change == "games" and stage.name == "games")
        assert Record.of(out).spent(stage) > 0
    assert (len(STARTED) > ran) == (change == "games")


def test_what_an_earlier_version_ended_has_ended(tmp_path):
    """It wrote the texts of commands, and of files their checksums alone."""
    stage = stage_of(tmp_path, "0")
    command = replace(stage.commands[0], name="what it is")
    command.makes.touch()
    record = Record(tmp_path / "alphago.json", {command.text: 3.0}, {command.text})
    assert record.has_ended(command) and record.spent(replace(stage, commands=(command,))) == 3.0
    runner._enter(record, command, 1.0, True)
    assert record.ended == {"what it is"} and record.seconds == {"what it is": 4.0}


def test_a_match_goes_on_where_its_engines_are_spelled_otherwise(tmp_path, monkeypatch):
    """Half of it may have been played before the folder was moved."""
    monkeypatch.setattr(runner, "sha256_of", lambda path: path.name)

    def match_of(way):
        return all_stages(way)[-1].commands[0]

    before = match_of(Way(tmp_path / "a", TOUR, (tmp_path,), "cpu", 1))
    before.makes.parent.mkdir(parents=True)
    runner._check_files(before)
    settings = {role: before.words[before.words.index(f"--{role}") + 1] for role in ("first", "second")} | {"size": 7}
    (before.makes.parent / "match.json").write_text(json.dumps(settings))
    (tmp_path / "a").rename(tmp_path / "b")
    after = match_of(Way(tmp_path / "b", TOUR, (tmp_path,), "cuda", 1))
    runner._check_files(after)
    found = json.loads((after.makes.parent / "match.json").read_text())
    assert found["first"] in after.words and found["second"] in after.words and found["size"] == 7
    assert found["first"] != settings["first"]
    other = match_of(Way(tmp_path / "b", replace(TOUR, seconds=9.0), (tmp_path,), "cuda", 1))
    runner._check_files(other)
    assert json.loads((after.makes.parent / "match.json").read_text()) == found


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "under a minute"), (150, "about 2 min"), (7200, "about 2.0 h"), (5000, "about 83 min")]
)
def test_the_time_that_is_left_is_said_in_words(seconds, words):
    """A tour had 0.0 h left from beginning to end."""
    assert _about(seconds) == words
