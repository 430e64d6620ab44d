"""``keima data``: from files to shards that can be trusted."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from filelock import FileLock

from engine.records.archive import Document
from engine.records.duplicates import fingerprints, first_of_each, split_of
from engine.records.filters import Filters
from engine.records.games import Games, offsets_of, read_games, write_games
from engine.records.gather import DocumentBatch, gather, read_batch
from engine.records.schema import join
from gtp.cli import main
from tests.records.made import games_of


def transformed(places, size, symmetry):
    """Columns and rows of a game under a symmetry: a corner for each, axes swapped from the fifth on."""
    flip_column, flip_row, swap = symmetry & 1, symmetry & 2, symmetry & 4
    for column, row in places:
        column, row = (size - 1 - column if flip_column else column), (size - 1 - row if flip_row else row)
        yield (row, column) if swap else (column, row)


def sgf(places, size=9, head="RE[B+R]"):
    """SGF of moves, None for a pass, Black first."""
    moves = "".join(
        f";{'BW'[n % 2]}[{'' if place is None else ''.join(chr(97 + part) for part in place)}]"
        for n, place in enumerate(places)
    )
    return f"(;SZ[{size}]{head}{moves})"


def random_places(seed, count=50, size=9):
    """Distinct points; two eyes' worth of the board stays empty, so that few are captured and none is illegal."""
    cells = np.random.default_rng(seed).permutation(size * size)[:count]
    return [(int(cell % size), int(cell // size)) for cell in cells]


def lawful(count, first_seed=0, moves=50):
    """Random games that replay, as columns and rows."""
    found, seed = [], first_seed
    while len(found) < count:
        places = random_places(seed, moves)
        seed += 1
        try:
            games_of(sgf(places))
        except ValueError:
            continue
        found.append(places)
    return found


LAWFUL = lawful(40)


def data(*arguments):
    return CliRunner().invoke(main, ["data", *map(str, arguments)])


def built(out, *arguments):
    """The manifest of a build that must succeed."""
    answer = data("build", *arguments, "--out", out, "--size", 9, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def whole(out):
    return join([read_games(file) for file in sorted(out.rglob("*.npz.xz"))])


@pytest.fixture
def archive(tmp_path):
    """A zip archive of forty games, one of them broken and one no Go."""
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w") as file:
        for n, places in enumerate(LAWFUL):
            file.writestr(f"year/{n:02d}.sgf", sgf(places))
        file.writestr("year/broken.sgf", "(;SZ[9];B[aa]")
        file.writestr("year/chess.sgf", "(;GM[3])")
    return path


def test_images_of_a_game_and_of_its_beginning_have_one_fingerprint():
    places = LAWFUL[0]
    images = [list(transformed(places, 9, symmetry)) for symmetry in range(8)]
    longer = [[*image[:40], *image[41:]] for image in images]
    keys = fingerprints(games_of(*map(sgf, images), *map(sgf, longer)), 45)
    assert len(set(map(tuple, images))) == 8
    assert [len(np.unique(keys[:8, column])) for column in range(3)] == [1, 1, 1]
    assert np.unique(keys[8:, 1]).tolist() == [keys[0, 1]]
    assert not set(keys[8:, 0].tolist()) & set(keys[:8, 0].tolist())
    assert not set(keys[8:, 2].tolist()) & set(keys[:8, 2].tolist())


def test_fingerprints_tell_boards_beginnings_and_colours_apart_and_forget_last_passes():
    texts = (
        "(;SZ[9];B[cc];W[cd])", "(;SZ[9];B[cc];W[cd];B[];W[])", "(;SZ[9];B[gg];W[gf])", "(;SZ[9];B[cc];W[dd])",
        "(;SZ[9]AB[cc];W[cd])", "(;SZ[9];W[cc];B[cd])", "(;SZ[7];B[cc];W[cd])", "(;SZ[9]AB[ee]AW[ce];B[cc];W[cd])",
        "(;SZ[9]AB[ee]AW[ec];B[cc];W[dc])", "(;SZ[9]AB[ee]AW[ec];B[cc];W[cd])",
    )  # fmt: skip
    keys = fingerprints(games_of(*texts), 0)[:, 0].tolist()
    assert keys[0] == keys[1] == keys[2] and keys[7] == keys[8]
    assert len(set(keys)) == 7


def test_a_position_after_a_pass_is_not_the_one_before_it():
    """Of games of which one position may be learnt from; the last move of each stands for one that is not known."""
    games = games_of("(;SZ[9];B[cc];W[])", "(;SZ[9];B[cc];W[];B[])", "(;SZ[9];B[cc];W[];B[])", "(;SZ[9];B[gg];W[])")
    keys = fingerprints(games._replace(position=np.array([1, 2, 1, 1], np.int16)), 0)[:, 0].tolist()
    assert keys[0] == keys[2] == keys[3] != keys[1]


def test_of_equal_keys_the_longest_then_the_first_stays():
    keys = np.array([7, 3, 7, 3, 7, 2**64 - 1], np.uint64)
    assert first_of_each(keys, np.array([5, 2, 9, 2, 9, 1])).tolist() == [False, True, True, False, False, True]
    assert first_of_each(np.zeros(0, np.uint64), np.zeros(0, np.int64)).tolist() == []


def test_splits_follow_the_shares_and_stay_when_games_are_added():
    keys = np.random.default_rng(1).integers(0, 2**63, 20000, np.uint64)
    split = split_of(keys, 5, 0.1, 0.2)
    assert np.bincount(split) / 20000 == pytest.approx([0.7, 0.1, 0.2], abs=0.01)
    np.testing.assert_array_equal(split_of(keys[:100], 5, 0.1, 0.2), split[:100])
    assert (split_of(keys, 6, 0.1, 0.2) != split).mean() > 0.3
    assert not split_of(keys, 5, 0, 0).any() and (split_of(keys, 5, 0, 1) == 2).all()


def test_a_build_keeps_every_game_once_and_its_manifest_tells_the_truth(tmp_path, archive):
    (tmp_path / "more").mkdir()
    for n in range(3):
        (tmp_path / "more" / f"{n}.sgf").write_text(sgf(transformed(LAWFUL[n], 9, 3 + n)))
    out = tmp_path / "out"
    manifest = built(out, archive, tmp_path / "more", "--games-per-shard", 10, "--validation-share", 0.2)
    assert sum(manifest["games"].values()) == 40 and manifest["removed"]["same moves as another game"] == 3
    assert [source["files"] for source in manifest["sources"]] == [42, 3]
    assert [source["unreadable"] for source in manifest["sources"]] == [2, 0]
    assert [name[-10:] for name, _ in manifest["unreadable_first"]] == ["broken.sgf", "/chess.sgf"]
    for shard in manifest["shards"]:
        path = out / shard["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == shard["sha256"]
        games = read_games(path)
        assert (len(games.size), len(games.moves)) == (shard["games"], shard["moves"])
        assert shard["games"] <= 10 or shard["split"] != "train"
    played = sorted(whole(out).moves.reshape(40, 50).tolist())
    assert played == sorted([row * 9 + column for column, row in places] for places in LAWFUL)
    assert {path.name for path in tmp_path.iterdir()} == {"games.zip", "more", "out"}


def test_games_are_in_random_order_and_a_build_repeats_itself(tmp_path, archive):
    first = built(tmp_path / "a", archive, "--seed", 4)
    again = built(tmp_path / "b", archive, "--seed", 4)
    other = built(tmp_path / "c", archive, "--seed", 5)
    assert first["shards"] == again["shards"] and first["shards"] != other["shards"]
    order = [LAWFUL.index([(m % 9, m // 9) for m in game]) for game in whole(tmp_path / "a").moves.reshape(40, 50)]
    assert order != sorted(order)


def test_held_out_games_that_are_too_few_to_measure_on_are_said(tmp_path, archive):
    shares = ("--validation-share", 0.05, "--test-share", 0.5, "--size", 9)
    for more in ((), ("--json",)):
        answer = data("build", archive, "--out", tmp_path / f"out{len(more)}", *shares, *more)
        games = json.loads((tmp_path / f"out{len(more)}" / "manifest.json").read_text(encoding="utf-8"))["games"]
        assert games["validation"] == 1 and games["test"] >= 10
        told = [line for line in answer.stderr.splitlines() if "too few" in line]
        expected = "1 game in validation.npz.xz: too few to measure on; increase --validation-share from 0.05"
        assert told == [f"{expected}, or add games"]
    assert "no test.npz.xz: too few" in data("build", archive, "--out", tmp_path / "none", "--size", 9).stderr


def test_games_with_one_opening_share_a_split(tmp_path):
    texts = []
    for n, places in enumerate(LAWFUL[:20]):
        texts += [sgf(places), sgf(transformed(places[:42], 9, n % 8)), sgf(transformed(places[:45], 9, (n + 3) % 8))]
    (tmp_path / "all.sgf").write_text("\n".join(texts))
    built(tmp_path / "out", tmp_path / "all.sgf", "--validation-share", 0.3, "--test-share", 0.3)
    keys = [set(fingerprints(read_games(file), 0)[:, 1].tolist()) for file in (tmp_path / "out").rglob("*.npz.xz")]
    assert len(keys) == 3 and sum(map(len, keys)) == len(set.union(*keys)) == 20
    manifest = built(tmp_path / "distinct", tmp_path / "all.sgf", "--distinct-moves", 30)
    assert manifest["removed"]["same first 30 moves as a longer game"] == 40
    assert np.diff(whole(tmp_path / "distinct").offsets).tolist() == [50] * 20


def test_positions_of_one_searched_game_share_a_split(tmp_path):
    """They are of all lengths below the opening's and have left the game at different moves."""
    moves = np.array([[9 * row + column for column, row in places] for places in LAWFUL])
    plies = np.tile([20, 24, 28, 60], len(moves))
    number = np.repeat(np.arange(len(moves)), 4)
    rows = [np.r_[game[:ply], 81] for game, ply in zip(moves[number], np.minimum(plies, 50), strict=True)]
    write_games(tmp_path / "x.npz.xz", Games(
        size=np.full(len(rows), 9), offsets=offsets_of([len(row) for row in rows]),
        moves=np.concatenate(rows).astype(np.uint16), number=number, position=np.minimum(plies, 50).astype(np.int16),
    ))  # fmt: skip
    built(tmp_path / "out", tmp_path / "x.npz.xz", "--validation-share", 0.3, "--test-share", 0.3, "--results", "any")
    splits = [read_games(file) for file in (tmp_path / "out").rglob("*.npz.xz")]
    numbers = [set(games.number.tolist()) for games in splits]
    assert len(numbers) == 3 and sum(map(len, numbers)) == len(set.union(*numbers)) == len(moves)
    # Another run has games of the same numbers, which are other games.
    write_games(tmp_path / "y.npz.xz", games_of(*(sgf(random_places(seed, 20)) for seed in range(900, 903))))
    known = read_games(tmp_path / "y.npz.xz")._replace(
        number=np.arange(3), position=np.full(3, 19, np.int16), result=np.zeros(3, np.int8)
    )
    write_games(tmp_path / "y.npz.xz", known)
    kept = built(tmp_path / "b", tmp_path / "x.npz.xz", "--results", "any", "--without", tmp_path / "y.npz.xz")
    assert sum(kept["games"].values()) == len(np.unique(fingerprints(read_games(tmp_path / "x.npz.xz"), 0)[:, 0]))


def test_games_of_other_shards_are_kept_apart(tmp_path, archive):
    write_games(tmp_path / "held.npz.xz", games_of(*(sgf(transformed(places, 9, 5)) for places in LAWFUL[:7])))
    manifest = built(tmp_path / "out", archive, "--without", tmp_path / "held.npz.xz")
    assert manifest["removed"]["same first 40 moves as a game to keep apart from"] == 7
    assert sum(manifest["games"].values()) == 33


def test_shards_are_sources_too(tmp_path, archive):
    first = built(tmp_path / "a", archive)
    again = built(tmp_path / "b", tmp_path / "a")
    assert again["games"] == first["games"]
    np.testing.assert_array_equal(np.sort(whole(tmp_path / "a").moves), np.sort(whole(tmp_path / "b").moves))


def test_an_impossible_game_in_a_shard_is_named_and_left_out(tmp_path):
    games = games_of(*map(sgf, LAWFUL[:3]))
    games.moves[games.offsets[1] + 1] = games.moves[games.offsets[1]]
    write_games(tmp_path / "x.npz.xz", games)
    manifest = built(tmp_path / "out", tmp_path / "x.npz.xz")
    [[name, reason]] = manifest["unreadable_first"]
    assert name.endswith("x.npz.xz, game 2") and "move 2" in reason
    assert sum(manifest["games"].values()) == 2


def test_workers_change_nothing(tmp_path, archive, monkeypatch):
    monkeypatch.setattr("engine.records.gather.BATCH_FILES", 8)
    one, two = (list(gather([archive], Filters(sizes=(9,)), 0, workers)) for workers in (1, 2))
    assert len(one) == len(two) == 6
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.keys, second.keys)
        assert (first.found, first.problems, first.removed) == (second.found, second.problems, second.removed)


def test_encodings_and_collections_go_through(tmp_path):
    texts = [sgf(places, head=f"RE[B+R]PB[許功蓋{n}]") for n, places in enumerate(LAWFUL[:6])]
    (tmp_path / "a.sgf").write_bytes((texts[0].replace("PB", "CA[big5]PB") + texts[1]).encode("big5"))
    (tmp_path / "b.sgf").write_bytes(texts[2].encode("utf-16"))
    (tmp_path / "c.sgf").write_bytes(texts[3].encode("gb18030"))
    (tmp_path / "d.sgf").write_bytes((texts[4] + texts[5][:-1]).encode() + b"\xff")
    answer = data("build", tmp_path, "--out", tmp_path / "out", "--size", 9)
    assert answer.exit_code == 0 and "d.sgf, game 2: SGF: unexpected end" in answer.output
    assert len(whole(tmp_path / "out").size) == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ZIP", "--size", 13], "no game is left of 42 found (2 could not be read; 40 board size not 13)"),
        (["ZIP", "--out", "ZIP"], "exists, expected"),
        (["ZIP", "--out", "none/out"], "there is no folder"),
        (["nothing.sgf"], "does not exist"),
        (["ZIP", "--without", "ZIP"], "not a readable .npz.xz shard"),
        (["ZIP", "--min-rank", "strong"], "not a rank, expected one like 3k, 6d or 1p"),
        (["ZIP", "--from", "2016-13"], "not a date, expected 2016"),
        (["ZIP", "--from", "2017", "--to", "2016"], "no date is in the range"),
        (["ZIP", "--validation-share", 0.6, "--test-share", 0.6], "expected at most 1 together"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_built_is_one_clear_line(tmp_path, archive, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    arguments = [str(archive) if word == "ZIP" else word for word in arguments]
    answer = data("build", *(["--out", "out"] if "--out" not in arguments else []), *arguments)
    assert answer.exit_code != 0 and words in answer.output.replace("\n", " "), answer.output
    assert "Traceback" not in answer.output
    assert [path.name for path in tmp_path.iterdir()] == ["games.zip"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_a_build_that_stops_leaves_nothing(tmp_path, archive, monkeypatch, error):
    def stop(path, games):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr("engine.records.shards.write_games", stop)
    answer = data("build", archive, "--out", tmp_path / "out", "--size", 9)
    assert answer.exit_code == (130 if error is KeyboardInterrupt else 1)
    assert [path.name for path in tmp_path.iterdir()] == ["games.zip"]


def test_what_killed_builds_have_left_is_removed_and_what_another_builds_is_not(tmp_path, archive):
    for name in (".out-dead.partial", ".out-other.partial", ".output-1.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "moves").write_bytes(b"half")
    with FileLock(tmp_path / ".out-other.lock"):
        built(tmp_path / "out", archive)
    left = {path.name for path in tmp_path.iterdir() if path.suffix == ".partial"}
    assert left == {".out-other.partial", ".output-1.partial"}
    assert not list(tmp_path.glob(".out-dead*"))


def test_a_mistake_of_ours_names_the_file_and_goes_on(tmp_path, archive, monkeypatch):
    def fail(text):
        raise IndexError("oops")

    monkeypatch.setattr("engine.records.sgf_records.date_of", fail)
    [found] = gather([archive], Filters(sizes=(9,)), 0, 1)
    assert found.games is None and ("IndexError: oops" in reason for _, reason in found.problems)


def test_show_counts_what_is_there(tmp_path):
    texts = [
        sgf(LAWFUL[0], head="RE[W+2.5]KM[6.5]RU[Japanese]BR[5d]WR[6d]DT[2015-01-01]"),
        sgf(LAWFUL[1], head="RE[Draw]KM[7]DT[2016]"), "(;SZ[13]HA[2]AB[cc][kk]KM[0]RE[B+T];W[ee])", "(;SZ[9];W[ee])",
    ]  # fmt: skip
    path = tmp_path / "x.npz.xz"
    write_games(path, games_of(*texts))
    facts = json.loads(data("show", path, "--json").output)["x.npz.xz"]
    assert (facts["games"], facts["moves"], facts["sizes"]) == (4, 102, {"9": 3, "13": 1})
    assert facts["begins"] == {"even": 2, "handicap": 1, "another position": 1} and facts["handicaps"] == {"2": 1}
    assert facts["winners"] == {"white": 1, "drawn": 1, "black": 1, "none": 1}
    assert facts["endings"] == {"counted": 2, "time": 1, "unknown": 1} and facts["with_margin"] == 2
    assert facts["komi"] == {"6.5": 1, "7": 1, "0": 1, "?": 1} and facts["counted_by_territory"] == 1
    assert (facts["first_date"], facts["last_date"], facts["dates_unknown"]) == (20150101, 20160000, 2)
    assert facts["ranks"] == {"?": 6, "5d": 1, "6d": 1}
    table = data("show", path).output
    assert "even: 2" in table and "20150101" in table


def test_show_adds_shards_up_and_checks_them_against_the_manifest(tmp_path, archive):
    out = tmp_path / "out"
    built(out, archive, "--games-per-shard", 7, "--test-share", 0.2)
    found = json.loads(data("show", out, "--json").output)
    assert sum(facts["games"] for facts in found.values()) == 40 and next(iter(found)) == "train"
    shard = out / "train" / "train-000.npz.xz"
    write_games(shard, games_of(sgf(LAWFUL[0])))
    assert "changed since it was built" in data("show", out).output
    shard.unlink()
    assert "missing" in data("show", out).output
    (out / "manifest.json").write_text("{}")
    assert "not a manifest" in data("show", out).output
    (tmp_path / "none").mkdir()
    assert "no shard" in data("show", tmp_path / "none").output


@pytest.mark.shared
def test_the_real_samples_become_what_their_manifest_says(tmp_path, shared_path):
    samples = shared_path / "data" / "sgf_samples.zip"
    out = tmp_path / "out"
    arguments = ("--results", "any", "--max-handicap", 9, "--setups", "--validation-share", 0.1, "--json")
    answer = data("build", samples, "--out", out, *arguments)
    assert answer.exit_code == 0, answer.output
    with zipfile.ZipFile(samples) as archive:
        columns, *lines = (line.split("\t") for line in archive.read("MANIFEST.tsv").decode("utf-8").splitlines())
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    twice = {row["file"] for row in rows if "same-colour-twice" in row["traits"]}
    unread = {name.split("/")[-1] for name, _ in json.loads(answer.stdout)["unreadable_first"]}
    # The other two begin with two moves of Black's, a handicap.
    assert len(unread) == 6 and unread < twice and len(twice) == 8
    kept = [row for row in rows if row["file"] not in unread]
    games = whole(out)
    lengths = [int(row["main_line_moves"]) - 2 * (row["file"] in twice) for row in kept]
    assert sorted(np.diff(games.offsets).tolist()) == sorted(lengths)
    winners = [row["RE"][:1].upper() for row in kept]
    assert np.bincount(games.result + 1).tolist() == [winners.count("W"), winners.count("D"), winners.count("B")]
    numbers = [row["RE"][2:] for row in kept if "+#" in row["traits"] and row["RE"][2:] != "0.0"]
    numbers += ["0" for winner in winners if winner == "D"]
    assert sorted(games.margin[np.isfinite(games.margin)].tolist()) == sorted(map(float, numbers))
    assert (games.handicap > 0).sum() == 2 + sum("setup-stones" in row["traits"] for row in kept)


def test_a_file_of_very_many_games_is_joined_as_it_is_read_and_given_up_where_most_are_broken(monkeypatch):
    monkeypatch.setattr("engine.records.gather.JOINED_ROWS", 2)
    monkeypatch.setattr("engine.records.gather.MAX_BROKEN", 3)
    sound = b"(;FF[4]SZ[5]RE[B+R];B[aa];W[bb];B[%s])"
    data = b"".join(sound % move for move in (b"cc", b"dd", b"ee", b"cd", b"dc"))
    found = read_batch(DocumentBatch(0, [Document("many.sgf", data)]), Filters(sizes=(5,), min_moves=1), 0)
    assert found.found == 5 and not found.problems
    assert found.games.moves.reshape(5, 3)[:, 2].tolist() == [12, 18, 24, 17, 13]
    data += b"(;FF[4]SZ[5]RE[B+R];B[aa];W[aa])" * 5
    found = read_batch(DocumentBatch(0, [Document("many.sgf", data)]), Filters(sizes=(5,), min_moves=1), 0)
    assert (found.found, len(found.games.size), len(found.problems)) == (8, 5, 4)
    assert found.problems[-1] == ("many.sgf", "3 games of this file cannot be read: the rest is skipped")
