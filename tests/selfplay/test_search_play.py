"""A folder of self-play rows: what was killed goes on, nothing is lost or there twice, shards are whole."""

import json
import math
from dataclasses import replace
from itertools import islice
from operator import length_hint

import numpy as np
import pytest

from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.schema import join
from engine.records.search_rows import SEARCH_ROWS, read_search_rows, write_search_rows
from engine.selfplay.search_games import Origin, SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import JOURNAL, MANIFEST, SearchPlay, played_here
from engine.system.executor import Execution

OPTIONS = SearchPlayOptions(size=3, visits=12, fast_visits=4, full_share=0.5, komi=2.0)


@pytest.fixture
def server():
    with InferenceServer(HashNetwork("keima-1"), threads=1) as server:
        yield server


def rows_in(play, folder):
    """All rows of the shards, by game and ply."""
    found = {}
    for shard in play.shards:
        rows = read_search_rows(folder / shard["file"])
        assert shard["rows"] == len(rows.game)
        for r, game in enumerate(rows.game.tolist()):
            key = int(rows.games.number[game]), int(rows.ply[r])
            assert key not in found
            found[key] = (rows.policy[r].tolist(), int(rows.step[game]), float(rows.value_black[r]))
    return found


def assert_same(one, other):
    for name in one._fields:
        pair = getattr(one, name), getattr(other, name)
        if name == "games":
            for field in ("size", "komi", "offsets", "moves", "result", "margin", "ending", "number"):
                assert np.array_equal(*(getattr(games, field) for games in pair), equal_nan=field == "margin"), field
        else:
            assert np.array_equal(*pair), name


def played(server, numbers, options=OPTIONS):
    return join(list(SelfPlay(server, options, 4, Origin(1 << 63, 5)).play(iter(numbers))))


def test_rows_are_read_as_they_were_written(server, tmp_path):
    rows = played(server, range(8), replace(OPTIONS, resign=0.45, resign_count=1))
    write_search_rows(tmp_path / "rows.npz.xz", rows)
    assert_same(read_search_rows(tmp_path / "rows.npz.xz"), rows)
    assert_same(SEARCH_ROWS.unpack(SEARCH_ROWS.pack(rows)), rows)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"ply": lambda rows: rows.ply + 1000}, "an impossible ply"),
        ({"policy": lambda rows: 0 * rows.policy}, "an impossible target"),
        ({"game": lambda rows: rows.game[::-1].copy()}, "an impossible order of rows"),
        ({"weight": lambda rows: rows.weight * np.nan}, "an impossible number"),
        ({"policy": lambda rows: rows.policy[:, :5]}, "ownership or targets are of another board size"),
    ],
)
def test_rows_that_contradict_their_games_are_refused(server, tmp_path, changes, what):
    rows = played(server, range(4))
    bad = rows._replace(**{name: change(rows) for name, change in changes.items()})
    write_search_rows(tmp_path / "rows.npz.xz", bad)
    with pytest.raises(ValueError, match=f"a damaged shard of self-play rows .{what}"):
        read_search_rows(tmp_path / "rows.npz.xz")


@pytest.mark.parametrize("zeros", [0, 512])
def test_a_run_that_is_killed_goes_on_with_what_was_finished(server, tmp_path, zeros):
    """Also where power failed, which leaves zeros at the end on some file systems."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    play = SearchPlay(whole, OPTIONS, 40)
    play.play(played_here(server, OPTIONS, Origin(1, 10), 4), 24, lambda: None)
    play.cut()
    expected = rows_in(play, whole)
    play = SearchPlay(broken, OPTIONS, 40)
    play.play(played_here(server, OPTIONS, Origin(1, 10), 4), 12, lambda: None)
    finished = play.games
    # Killed: nothing is closed, and the last block is torn.
    content = (broken / JOURNAL).read_bytes()
    (broken / JOURNAL).write_bytes(content + (bytes(zeros) or content[:50]))
    play = SearchPlay(broken, OPTIONS, 40)
    assert 12 == finished <= play.games
    assert play.folder.done.missing(12).tolist() == []
    play.play(played_here(server, OPTIONS, Origin(1, 10), 4), 24, lambda: None)
    play.cut()
    assert rows_in(play, broken) == expected
    assert {number for number, _ in expected} <= set(range(24))
    play.close()


def test_a_kill_between_shard_and_journal_doubles_nothing(server, tmp_path):
    play = SearchPlay(tmp_path, OPTIONS)
    play.play(played_here(server, OPTIONS, Origin(), 4), 6, lambda: None)
    content = (tmp_path / JOURNAL).read_bytes()
    manifest = (tmp_path / MANIFEST).read_bytes()
    play.cut()
    rows = play.rows
    # The list of shards was written, the journal not emptied yet.
    (tmp_path / JOURNAL).write_bytes(content)
    again = SearchPlay(tmp_path, OPTIONS)
    assert (again.games, again.rows) == (6, rows)
    # The shard was written, but not entered yet: it is written anew.
    (tmp_path / JOURNAL).write_bytes(content)
    (tmp_path / MANIFEST).write_bytes(manifest)
    again = SearchPlay(tmp_path, OPTIONS)
    again.cut()
    assert (again.games, again.rows, len(again.shards)) == (6, rows, 1)


def test_rows_name_the_network_that_played(server, tmp_path):
    play = SearchPlay(tmp_path, OPTIONS)
    play.play(played_here(server, OPTIONS, Origin(1, 10), 4), 6, lambda: None)
    play.play(played_here(server, OPTIONS, Origin(2, 20), 4), 12, lambda: None)
    play.cut()
    rows = read_search_rows(tmp_path / play.shards[0]["file"])
    early = rows.games.number < 6
    assert set(rows.step[early].tolist()) == {10}
    assert set(rows.network[~early].tolist()) == {2}
    assert [play.shards[0][name] for name in ("first_step", "last_step")] == [10, 20]


def test_forgotten_shards_are_not_played_again(server, tmp_path):
    play = SearchPlay(tmp_path, OPTIONS, 20)
    play.play(played_here(server, OPTIONS, Origin(), 4), 20, lambda: None)
    count, games = len(play.shards), play.games
    for path in play.forget(1):
        path.unlink()
    again = SearchPlay(tmp_path, OPTIONS, 20)
    assert (len(again.shards), again.games, again.folder.done.missing(20).tolist()) == (count - 1, games, [])
    again.play(played_here(server, OPTIONS, Origin(), 4), 30, lambda: None)
    again.cut()
    names = [shard["file"] for shard in json.loads((tmp_path / MANIFEST).read_text())["shards"]]
    assert len(set(names)) == len(names)


class Drawing:
    """An executor that takes a thousand numbers, if it may, before it delivers anything."""

    def work(self, job, files, numbers, *_):
        self.told, self.drawn = length_hint(numbers), list(islice(numbers, 1000))


def test_no_more_games_are_begun_than_the_rows_are_worth_before_any_has_ended(tmp_path):
    executor, play = Drawing(), SearchPlay(tmp_path, OPTIONS)
    play.play_rows(Execution(executor, None, {}), 100, lambda: None)
    games = math.ceil(100 / (OPTIONS.full_share * OPTIONS.size**2))
    assert executor.drawn == list(range(games))
    assert executor.told == games, "so that many actors share them evenly"


def test_games_without_rows_say_nothing_of_how_many_are_needed(server, tmp_path):
    none = replace(OPTIONS, full_share=0.0)
    play = SearchPlay(tmp_path, OPTIONS)
    play.play(played_here(server, none, Origin(), 4), 3, lambda: None)
    assert (play.games, play.all_rows) == (3, 0)
    executor = Drawing()
    play.play_rows(Execution(executor, None, {}), 100, lambda: None)
    assert executor.told == len(executor.drawn) == math.ceil(100 / (OPTIONS.full_share * OPTIONS.size**2))


class Delivering:
    """An executor that has a hundred games in play, and delivers eight at a time, always the same ones."""

    def __init__(self, rows):
        self.body = SEARCH_ROWS.pack(rows)

    def work(self, job, files, numbers, enter, *_):
        playing = []
        for number in numbers:
            playing.append(number)
            if len(playing) == 108:
                enter((playing[:8], self.body))
                del playing[:8]
        for k in range(0, len(playing), 8):
            enter((playing[k : k + 8], self.body))


def test_games_are_worth_the_rows_that_those_of_the_same_network_have(server, tmp_path):
    """A random network's games have many rows. Reckoned with those, too few of the later games are begun."""
    play = SearchPlay(tmp_path, OPTIONS)
    many, few = (played(server, range(8), replace(OPTIONS, full_share=share)) for share in (1.0, 0.2))
    assert len(many.game) > 3 * len(few.game)
    play.play_rows(Execution(Delivering(many), None, {}), 2000, lambda: None)
    wanted = play.all_rows + 1000
    for _ in range(2):
        play.play_rows(Execution(Delivering(few), None, {}), wanted, lambda: None)
    assert play.all_rows >= wanted


def test_a_folder_whose_first_start_was_killed_is_begun_in(tmp_path):
    (tmp_path / f"{MANIFEST}.partial").write_text("{")
    assert SearchPlay(tmp_path, OPTIONS).games == 0


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        SearchPlay(tmp_path, OPTIONS)


def test_a_run_goes_on_with_its_own_seed_and_perhaps_other_visits(tmp_path):
    SearchPlay(tmp_path, OPTIONS).close()
    SearchPlay(tmp_path, replace(OPTIONS, visits=24)).close()
    with pytest.raises(ValueError, match="begun with seed 1, not 2"):
        SearchPlay(tmp_path, replace(OPTIONS, seed=2))
