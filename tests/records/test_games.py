"""Packed shards: what is written reads back, version 1 reads as ever, damage is one clear error."""

import io
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.geometry import BLACK, WHITE, index_of
from engine.go.sgf import read_sgf
from engine.records.games import GAMES, MAX_MOVES, Games, offsets_of, read_games, select, write_games
from engine.records.replay import check_game
from engine.records.schema import join
from tests.memory import at_most_mib


@st.composite
def games_strategy(draw):
    """Games of arbitrary numbers within the bounds of the format; they need not be playable."""
    sizes = draw(st.lists(st.integers(2, 25), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = len(sizes)
    moves = [rng.integers(0, size * size + 1, rng.integers(0, 40)).astype(np.uint16) for size in sizes]
    stones = [rng.integers(0, 2 * size * size, rng.integers(0, 5)).astype(np.uint16) for size in sizes]
    return Games(
        size=np.array(sizes, np.int64),
        komi=rng.choice(np.array([np.nan, -7.5, 0, 6.5, 7.5, 100], np.float32), count),
        offsets=np.cumsum([0, *map(len, moves)]).astype(np.int64),
        moves=np.concatenate(moves),
        result=rng.integers(-1, 2, count).astype(np.int8),
        territory=rng.random(count) < 0.5,
        margin=rng.choice(np.array([np.nan, 0, 0.5, 112.5], np.float32), count),
        ending=rng.integers(0, 6, count).astype(np.uint8),
        first=rng.integers(1, 3, count).astype(np.uint8),
        setup_offsets=np.cumsum([0, *map(len, stones)]).astype(np.int64),
        setup=np.concatenate(stones),
        handicap=rng.integers(0, 256, count).astype(np.uint8),
        date=rng.integers(0, 20301231, count).astype(np.int32),
        rank_black=rng.integers(-30, 30, count).astype(np.int8),
        rank_white=rng.integers(-30, 30, count).astype(np.int8),
        main_time=rng.integers(-1, 10**6, count).astype(np.int32),
    )


def assert_same(found, expected):
    for name in Games._fields:
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other, err_msg=name)


@settings(max_examples=40)
@given(games_strategy())
def test_what_is_written_reads_back(tmp_path_factory, games):
    path = tmp_path_factory.getbasetemp() / "round-trip.npz.xz"
    write_games(path, games)
    assert_same(read_games(path), games)


def test_the_same_games_make_the_same_bytes_and_leave_nothing_else(tmp_path):
    games = plain_games()
    for name in ("a.npz.xz", "b.npz.xz"):
        write_games(tmp_path / name, games)
    assert (tmp_path / "a.npz.xz").read_bytes() == (tmp_path / "b.npz.xz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz.xz", "b.npz.xz"]


def plain_games(count=3, length=20):
    rng = np.random.default_rng(1)
    return Games(
        np.full(count, 9, np.int64), np.full(count, 7.0, np.float32), np.arange(count + 1, dtype=np.int64) * length,
        np.concatenate([rng.permutation(81)[:length] for _ in range(count)]).astype(np.uint16),
        np.ones(count, np.int8), np.zeros(count, bool),
    )  # fmt: skip


def test_arrays_left_out_say_that_nothing_is_known():
    games = plain_games()
    assert np.isnan(games.margin).all() and games.margin.dtype == np.float32
    assert games.starts_even().all()
    assert (games.setup_offsets.tolist(), len(games.setup)) == ([0, 0, 0, 0], 0)
    assert games._replace(first=np.array([1, 2, 1], np.uint8)).starts_even().tolist() == [True, False, True]


@settings(max_examples=25)
@given(games_strategy(), st.integers(0, 1000))
def test_joining_and_selecting_keep_games_whole(games, seed):
    rows = np.random.default_rng(seed).permutation(len(games.size))
    again = join([select(games, rows[:1]), select(games, rows[1:])])
    for at, row in enumerate(rows.tolist()):
        for offsets, joined in (("offsets", "moves"), ("setup_offsets", "setup")):
            low, high = getattr(games, offsets)[[row, row + 1]]
            start, end = getattr(again, offsets)[[at, at + 1]]
            assert getattr(again, joined)[start:end].tolist() == getattr(games, joined)[low:high].tolist()
        assert (again.size[at], again.date[at]) == (games.size[row], games.date[row])
    mask = games.size > 9
    assert_same(select(games, mask), select(games, np.flatnonzero(mask)))


def first_version(moves_of_games, **more):
    """A shard of version 1, packed move by move."""
    steps, row, column = [], 0, 0
    for moves in moves_of_games:
        for move in moves:
            at = (19, 0) if move == 361 else divmod(move, 19)
            steps.append(((at[0] - row) % 20, (at[1] - column) % 19))
            row, column = at
    count = len(moves_of_games)
    arrays = {
        "delta": np.array(steps, np.uint8),
        "length": np.array([len(moves) for moves in moves_of_games], np.uint16),
        "result": np.ones(count, np.int8),
        "komi": np.full(count, 6.5, np.float16),
        "source": np.arange(count, dtype=np.uint8),
    }
    return packed(arrays | more)


def packed(arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return lzma.compress(file.getvalue(), preset=0)


def test_version_one_reads_as_ever(tmp_path):
    moves = [[0, 360, 361, 18], [72, 361, 361], [180]]
    path = tmp_path / "old.npz.xz"
    path.write_bytes(first_version(moves))
    games = read_games(path)
    assert games.moves.tolist() == [*moves[0], *moves[1], *moves[2]] and games.offsets.tolist() == [0, 4, 7, 8]
    assert games.size.tolist() == [19] * 3 and games.territory.tolist() == [True, False, False]
    assert np.isnan(games.margin).all() and games.starts_even().all()
    margin = np.array([np.nan, 3.5, 0.5], np.float16)
    path.write_bytes(first_version(moves, margin=margin, date=np.array([20160101, 0, 20110203], np.int32)))
    games = read_games(path)
    np.testing.assert_array_equal(games.margin, np.array([np.nan, 3.5, 0.5], np.float32))
    assert games.ending.tolist() == [2, 1, 1] and games.date.tolist() == [20160101, 0, 20110203]


def test_version_two_reads_as_the_table_of_its_columns_says(tmp_path):
    """Packed number by number, as the program wrote it before columns were declared by the record's fields."""
    arrays = {
        "size": np.array([9, 25], np.uint8), "length": np.array([3, 2], np.uint16),
        # 9x9: row 2, column 3; a pass (row 25, column 0); row 0, column 8. 25x25: row 24, column 24; a pass.
        "delta": np.array([[2, 3], [23, 22], [1, 8], [24, 16], [1, 1]], np.uint8),
        "first": np.array([1, 2], np.uint8), "setup_length": np.array([0, 2], np.uint16),
        "setup": np.array([0, 2 * 624 + 1], np.uint16), "result": np.array([1, -1], np.int8),
        "ending": np.array([1, 2], np.uint8), "margin": np.array([0.5, np.nan], np.float16),
        "komi": np.array([7.5, np.nan], np.float16), "territory": np.array([True, False]),
        "handicap": np.array([0, 2], np.uint8), "date": np.array([20161229, 0], np.int32),
        "rank_black": np.array([29, -30], np.int8), "rank_white": np.array([0, 9], np.int8),
        "main_time": np.array([-1, 3600], np.int32),
    }  # fmt: skip
    more = {"number": np.array([7, 1 << 40]), "position": np.array([2, -1], np.int16), "version": np.array(2, np.uint8)}
    moves = [21, 81, 8, 624, 625]
    for left_out in ((), ("number", "position")):
        path = tmp_path / "x.npz.xz"
        path.write_bytes(packed(arrays | {name: value for name, value in more.items() if name not in left_out}))
        games = read_games(path)
        assert games.moves.tolist() == moves and games.offsets.tolist() == [0, 3, 5]
        assert games.setup.tolist() == [0, 1249] and games.setup_offsets.tolist() == [0, 0, 2]
        for name in arrays.keys() - {"length", "delta", "setup_length", "setup"}:
            np.testing.assert_array_equal(getattr(games, name), arrays[name], err_msg=name)
        assert games.number.tolist() == ([-1, -1] if left_out else [7, 1 << 40])
        assert games.position.tolist() == ([-1, -1] if left_out else [2, -1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": np.uint8(3)}, "version 3"),
        ({"size": np.array([9, 9, 26], np.uint8)}, "impossible board size"),
        ({"size": np.array([9, 9, 3], np.uint8)}, "a move is off the board"),
        ({"size": np.array([9, 9], np.uint8)}, "damaged"),
        ({"result": np.array([0, 2, 0], np.int8)}, "impossible result"),
        ({"first": np.array([0, 1, 1], np.uint8)}, "impossible colour"),
        ({"ending": np.array([7, 1, 1], np.uint8)}, "impossible ending"),
        ({"length": np.array([20, 20, 19], np.uint16)}, "damaged"),
        ({"setup_length": np.array([0, 1, 0], np.uint16)}, "setup has 0 entries, expected 1"),
        ({"setup": np.array([162], np.uint16), "setup_length": np.array([0, 1, 0], np.uint16)}, "impossible stone"),
        ({"date": np.array([1, 2], np.int32)}, "date has 2 entries, expected 3"),
        ({"date": np.array(["a", "b", "c"])}, "date holds <U1, expected <i4"),
        ({"rank_black": None}, "it lacks rank_black"),
        ({"komi": np.array([7.5, np.inf, np.nan], np.float16)}, "impossible komi"),
        ({"margin": np.array([1, 2, -np.inf], np.float16)}, "impossible margin"),
    ],
)
def test_damage_is_one_clear_error(tmp_path, change, words):
    path = tmp_path / "x.npz.xz"
    write_games(path, plain_games())
    with lzma.open(path) as file:
        arrays = dict(np.load(io.BytesIO(file.read())))
    path.write_bytes(packed({name: value for name, value in (arrays | change).items() if value is not None}))
    with pytest.raises(ValueError, match=words) as caught:
        read_games(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("lengths", [np.zeros(40 << 20, np.uint8), np.full(100000, 65535, np.uint16)])
def test_a_small_file_that_would_fill_the_memory_is_refused_first(tmp_path, lengths):
    path = tmp_path / "x.npz.xz"
    empty = {name: np.zeros(len(lengths), kind) for name, (kind, _) in GAMES.known.items()}
    whole = {"version": np.uint8(2), "delta": np.zeros((3, 2), np.uint8), "setup": np.zeros(0, np.uint16)}
    path.write_bytes(packed(empty | whole | {"length": lengths} if len(lengths) == 100000 else {"length": lengths}))
    with at_most_mib(48):
        with pytest.raises(ValueError, match=r"more than 16,777,216 bytes|number of moves") as caught:
            read_games(path)
        assert str(path) in str(caught.value)


def test_positions_of_long_games_read_back(tmp_path):
    """They pack so well, each a game with all moves before it, that they were once taken for a bomb."""
    whole = np.random.default_rng(5).integers(0, 361, (90, 700)).astype(np.uint16)
    plies = np.tile(np.arange(500, 700), 90)
    moves = np.concatenate([one[:ply] for one in whole for ply in range(500, 700)])
    write_games(tmp_path / "x.npz.xz", Games(size=np.full(len(plies), 19), offsets=offsets_of(plies), moves=moves))
    assert read_games(tmp_path / "x.npz.xz").moves.sum() == moves.sum()


def test_a_cut_file_is_one_clear_error(tmp_path):
    path = tmp_path / "x.npz.xz"
    write_games(path, plain_games())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="not a readable"):
        read_games(path)


def test_a_game_too_long_is_refused(tmp_path):
    moves = np.full(MAX_MOVES + 1, 81, np.uint16)
    games = Games(
        np.array([9]), np.array([7.5]), np.array([0, len(moves)]), moves, np.array([1], np.int8), np.array([True])
    )
    with pytest.raises(ValueError, match=f"at most {MAX_MOVES}"):
        write_games(tmp_path / "x.npz.xz", games)


def indices(text):
    """Setup codes and moves of SGF text, by way of the reader."""
    game = read_sgf(text.encode())
    codes = [2 * index_of(point, game.size) for point in game.black]
    codes += [2 * index_of(point, game.size) + 1 for point in game.white]
    moves = [index_of(point, game.size) for _, point in game.moves]
    return game.size, np.array(codes, np.uint16), game.moves[0][0], np.array(moves, np.uint16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(;SZ[5];B[cc];W[])", ""),
        ("(;SZ[5];B[cc];W[cc])", "move 2 at cc is illegal"),
        ("(;SZ[5]AB[aa]AW[ab][ba];B[cc])", "no legal position"),
        ("(;SZ[5]AB[bc][cb][cd]AW[dc][eb][ed][cc];B[])", ""),
        # A ko: Black takes at dc, White may not take back at once, but after a move elsewhere.
        ("(;SZ[5]AB[cb][bc][cd]AW[db][ed][dd][ec][cc];B[dc];W[cc])", "move 2 at cc is illegal"),
        ("(;SZ[5]AB[cb][bc][cd]AW[db][ed][dd][ec][cc];B[dc];W[aa];B[ee];W[cc])", ""),
        # One stone alone may not fill its last liberty, two may (some rules allow it).
        ("(;SZ[5]AW[ab][ba];B[aa])", "move 1 at aa is illegal"),
        ("(;SZ[5]AW[ac][bb][ba]AB[aa];B[ab])", ""),
    ],
)
def test_impossible_games_are_found(text, words):
    if not words:
        check_game(*indices(text))
        return
    with pytest.raises(ValueError, match=words):
        check_game(*indices(text))


def test_every_game_is_checked_from_an_empty_board():
    for first in (BLACK, WHITE, BLACK):
        check_game(9, np.array([2 * 40], np.uint16), first, np.array([41, 42, 81], np.uint16))
    with pytest.raises(ValueError, match="at most"):
        check_game(9, np.zeros(0, np.uint16), BLACK, np.full(MAX_MOVES + 1, 81, np.uint16))


@pytest.mark.shared
def test_real_shards_of_version_one_read_the_same(shared_path):
    path = shared_path / "data" / "validation.npz.xz"
    games = read_games(path)
    with lzma.open(path) as file:
        arrays = np.load(io.BytesIO(file.read()))
        delta, lengths = arrays["delta"][:3000].tolist(), arrays["length"][:10].tolist()
        for name in ("margin", "komi"):
            np.testing.assert_array_equal(getattr(games, name), arrays[name].astype(np.float32))
        np.testing.assert_array_equal(games.date, arrays["date"])
    row = column = 0
    for move, (down, right) in zip(games.moves.tolist(), delta, strict=False):
        row, column = (row + down) % 20, (column + right) % 19
        assert move == (361 if row == 19 else row * 19 + column)
    assert np.diff(games.offsets)[:10].tolist() == lengths
    assert len(games.size) == 10000 and np.isnan(games.margin).sum() == 7077
