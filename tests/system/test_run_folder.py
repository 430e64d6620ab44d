"""Folders of runs: finished items are stored once, also after a kill; settings must not change; lines are appended."""

import json

import numpy as np
import pytest

from engine.system.run_folder import (
    NumberSet,
    RunFolder,
    add_line,
    open_manifest,
    read_blocks,
    read_lines,
    refuse_foreign,
)

ASKED = {"format": "made 1", "options": {"size": 9, "time": {"main_s": 60.0, "kind": None}}}


def opened(path, asked=ASKED):
    """A folder whose blocks are words."""
    return RunFolder(path, "words", asked, {"rows": 0}, bytes.decode)


def shelve(folder, **more):
    """Write a shard of all words that are held."""
    words = " ".join(folder.held)
    folder.add_shard(lambda path: path.write_text(words), {"words": len(folder.held)}, **more)


def test_what_is_done_is_kept_once(tmp_path):
    folder = opened(tmp_path)
    assert folder.append([3, 0], b"one") == "one" and folder.append([], b"part") == "part"
    assert folder.append([3], b"again") is None
    folder.close()
    folder = opened(tmp_path)
    assert folder.held == ["one", "part"] and folder.done.numbers().tolist() == [0, 3]
    shelve(folder)
    assert folder.held == [] and folder.append([0], b"again") is None
    folder.append([1], b"two")
    shelve(folder)
    folder.close()
    folder = opened(tmp_path)
    assert [shard["file"] for shard in folder.manifest["shards"]] == ["words-00000.npz.xz", "words-00001.npz.xz"]
    assert folder.done.ranges() == folder.in_shards.ranges() == [[0, 1], [3, 3]] and folder.held == []
    folder.close()


def test_a_kill_at_any_byte_of_the_journal_keeps_its_whole_blocks(tmp_path):
    folder = opened(tmp_path)
    ends = [0]
    for number in range(3):
        folder.append([number], b"word" * (number + 1))
        ends.append((tmp_path / "journal.bin").stat().st_size)
    folder.close()
    content = (tmp_path / "journal.bin").read_bytes()
    cuts = {content[:cut]: sum(end <= cut for end in ends[1:]) for cut in range(len(content) + 1)}
    damaged = {content + bytes(512): 3, content[:-1] + b"x": 2, content[::-1]: 0}
    for left, count in (cuts | damaged).items():
        (tmp_path / "journal.bin").write_bytes(left)
        folder = opened(tmp_path)
        assert folder.held == ["word" * (number + 1) for number in range(count)] and len(folder.done) == count
        folder.append([7], b"next")
        folder.close()
        assert [block.body for block in read_blocks(tmp_path / "journal.bin")][count:] == [b"next"]


@pytest.mark.parametrize("name", ["words.json", "journal.bin"])
def test_a_kill_between_shard_manifest_and_journal_doubles_nothing(tmp_path, name):
    folder = opened(tmp_path)
    folder.append([0], b"one")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shelve(folder)
    folder.close()
    # The shard was written, and before the kill the manifest or not even that.
    for left in {name, "journal.bin"}:
        (tmp_path / left).write_bytes(before[left])
    folder = opened(tmp_path)
    assert folder.held == ([] if name == "journal.bin" else ["one"])
    folder.append([1], b"two")
    shelve(folder)
    folder.close()
    shards = json.loads((tmp_path / "words.json").read_text())["shards"]
    assert [(tmp_path / shard["file"]).read_text() for shard in shards] == (
        ["one", "two"] if name == "journal.bin" else ["one two"]
    )


def test_what_no_shard_takes_stays_in_the_journal(tmp_path):
    folder = opened(tmp_path)
    for number, word in enumerate((b"one", b"two", b"three")):
        folder.append([number], word)
    left = read_blocks(tmp_path / "journal.bin")[1:]
    shelve(folder, numbers=np.array([0]), left=lambda: left)
    folder.close()
    folder = opened(tmp_path)
    assert folder.held == ["two", "three"] and folder.in_shards.ranges() == [[0, 0]] and len(folder.done) == 3
    folder.close()


def test_a_set_of_numbers_is_one():
    order = np.random.default_rng(5).permutation(600).tolist()
    numbers, twin = NumberSet([[0, 4], [10, 12]]), {0, 1, 2, 3, 4, 10, 11, 12}
    for number in order:
        numbers.add([number, 11])
        twin |= {number, 11}
        assert len(numbers) == len(twin) and all((one in numbers) == (one in twin) for one in range(605))
        assert numbers.has(np.arange(602)).tolist() == [one in twin for one in range(602)]
        assert numbers.numbers().tolist() == sorted(twin) == NumberSet(numbers.ranges()).numbers().tolist()
        assert numbers.missing(20).tolist() == sorted(set(range(20)) - twin)
    assert numbers.ranges() == [[0, 599]] and not len(NumberSet([]))


@pytest.mark.parametrize("begun", [None, {"rows": 0}])
def test_settings_are_written_once_and_compared_after(tmp_path, begun):
    path = tmp_path / "run.json"
    for _ in range(2):
        # JSON has no tuples: those of an option with several values come back as lists.
        assert open_manifest(path, ASKED | {"labels": ("first",)}, begun)["format"] == "made 1"
    assert list(tmp_path.iterdir()) == [path]
    other = {"format": "made 1", "labels": ["first"], "options": {"size": 9, "time": {"main_s": 5.0, "kind": None}}}
    with pytest.raises(ValueError, match=r"begun with time.main_s 60.0, not 5.0; choose another folder$"):
        open_manifest(path, other, begun)
    del other["options"]["time"]
    with pytest.raises(ValueError, match=r"begun with size 9, not 7, time.main_s 60.0, not None; choose"):
        open_manifest(path, other | {"options": {"size": 7}}, begun)


def test_settings_of_work_that_was_never_begun_give_way(tmp_path):
    path = tmp_path / "match.json"
    for settings in ({"first": "a typo"}, {"first": "right"}):
        open_manifest(path, settings, is_begun=False)
    assert json.loads(path.read_text()) == {"first": "right"}


@pytest.mark.parametrize("text", ["no json", "[]", "[" * 100_000, '{"format": "made 1"}'])
@pytest.mark.parametrize("begun", [None, {"rows": 0}])
def test_a_damaged_manifest_is_one_line(tmp_path, text, begun):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"run.json: not a manifest of this command|format") as caught:
        open_manifest(tmp_path / "run.json", {"format": "made 1"} if begun else {"format": "2"}, begun)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "names",
    [(), ("run.json",), ("run.json", "letter.txt"), ("run.lock", "run.json.partial"), (".games-1.partial",)],
)
def test_a_run_begins_where_there_is_nothing_else(tmp_path, names):
    refuse_foreign(tmp_path / "new", "run.json", "runs")
    for name in names:
        (tmp_path / name).write_text("")
    refuse_foreign(tmp_path, "run.json", "runs", also=("games",))


@pytest.mark.parametrize("name", ["letter.txt", "letter.partial", "run.json.old", "games.json"])
def test_a_folder_of_something_else_is_refused(tmp_path, name):
    (tmp_path / name).write_text("dear")
    with pytest.raises(ValueError, match="already there, expected a new or empty folder, or one of runs"):
        refuse_foreign(tmp_path, "run.json", "runs")


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("dear")
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        refuse_foreign(tmp_path / "file", "run.json", "runs")


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
    with pytest.raises(ValueError, match=r"lines.jsonl: line 2 is not a number$"):
        read_lines(tmp_path / "lines.jsonl", json.loads, "number")
