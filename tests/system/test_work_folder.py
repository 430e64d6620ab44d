"""Folders of finished work: settings that must not change, and lines that grow."""

import json

import pytest

from engine.system.work_folder import add_line, read_lines, same_settings


def test_settings_are_written_once_and_compared_after(tmp_path):
    path, settings = tmp_path / "match.json", {"size": 9, "time": {"main_s": 60.0, "kind": None}}
    for _ in range(2):
        # JSON has no tuples: those of an option with several values come back as lists.
        same_settings(tmp_path / "learner.json", {"labels": ("first", "second")}, "learner")
        same_settings(path, settings, "match")
    (tmp_path / "learner.json").unlink()
    assert json.loads(path.read_text()) == settings and list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"holds a match with other settings: time.main_s was 60.0 and is 5.0; choose"):
        same_settings(path, {"size": 9, "time": {"main_s": 5.0, "kind": None}}, "match")
    with pytest.raises(ValueError, match=r"size was 9 and is None, komi was None and is 7.5; choose another folder"):
        same_settings(path, {"komi": 7.5, "time": settings["time"]}, "match")


def test_settings_of_work_that_was_never_begun_give_way(tmp_path):
    path = tmp_path / "match.json"
    for settings in ({"first": "a typo"}, {"first": "right"}):
        same_settings(path, settings, "match", is_begun=False)
    assert json.loads(path.read_text()) == {"first": "right"}


@pytest.mark.parametrize("text", ["no json", "[]", "[" * 100_000])
def test_a_damaged_file_of_settings_is_one_line(tmp_path, text):
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(ValueError, match=r"campaign.json: not the settings of a campaign"):
        same_settings(tmp_path / "campaign.json", {}, "campaign")


@pytest.mark.parametrize("torn", ["", '{"ga', "{"])
def test_a_line_cut_short_is_passed_over_and_goes_with_the_next_one(tmp_path, torn):
    path = tmp_path / "lines.jsonl"
    assert read_lines(path, json.loads, "number") == []
    add_line(path, "1")
    with path.open("a") as file:
        file.write(torn)
    assert read_lines(path, json.loads, "number") == [1]
    add_line(path, "2")
    assert path.read_text() == "1\n2\n"


def test_nothing_but_a_torn_line_is_cut_too(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"ga')
    add_line(path, "1")
    assert path.read_text() == "1\n"


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "lines.jsonl").write_text("1\n[\n3\n")
    with pytest.raises(ValueError, match=r"lines.jsonl: line 2 is no number$"):
        read_lines(tmp_path / "lines.jsonl", json.loads, "number")
