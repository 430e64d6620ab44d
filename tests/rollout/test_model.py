"""Files of pattern policies: round trip, damaged files refused in one line, tables."""

import json

import numpy as np
import pytest

from engine.rollout.model import (
    FORMAT,
    LARGEST,
    STATIC_UNIT,
    PatternModel,
    load_both,
    load_patterns,
    load_rollout,
    rollout_tables,
    save_patterns,
)
from engine.rollout.policy import FACTOR_BITS, MOST_FACTOR
from engine.rollout.vocabulary import (
    CORNER_NEIGHBOUR,
    EDGE_NEIGHBOUR,
    FIRST_CELL,
    N_CELLS,
    RESPONSE,
    SAVE,
    SINGLE,
    Vocabulary,
    find,
    unfold,
)
from tests.rollout import twin
from weights import PATTERNS


def model(is_tree):
    """A small policy with random weights."""
    words = twin.small_vocabulary(is_tree)
    theta = np.random.default_rng(1).normal(0, 1, words.starts[-1]).astype(np.float32)
    return PatternModel(words, theta, {"games": ["a.npz.xz"], "rate": 0.25})


@pytest.fixture
def path(tmp_path):
    """A file with a rollout policy."""
    save_patterns(tmp_path / "rollout.npz", model(False))
    return tmp_path / "rollout.npz"


def refused(path, words=""):
    """Check that a file is refused in one line that names it."""
    with pytest.raises(ValueError) as caught:
        load_patterns(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert words in message


@pytest.mark.parametrize("kind", ["rollout", "tree"])
def test_a_policy_is_read_as_it_was_written(tmp_path, kind):
    path, written = tmp_path / "policy.npz", model(kind == "tree")
    save_patterns(path, written)
    read = load_patterns(path)
    assert read.kind == kind
    assert read.record == written.record
    for name, patterns in written.words._asdict().items():
        own = getattr(read.words, name)
        assert own.dtype == np.int64
        assert (own == patterns).all()
    assert read.theta.dtype == np.float32
    assert (read.theta == written.theta.astype(np.float16)).all()
    assert [file.name for file in tmp_path.iterdir()] == ["policy.npz"]


@pytest.mark.parametrize("kind", ["rollout", "tree"])
def test_shipped_policies_are_read(kind):
    # Whether they are any good is measured elsewhere; that they fit into memory and tables is checked here.
    shipped = load_patterns(PATTERNS[kind])
    assert shipped.kind == kind
    assert len(shipped.theta) == shipped.words.starts[-1]
    for patterns in shipped.words:
        assert (np.diff(patterns) > 0).all()


def test_truncated_files_are_refused(path):
    whole = path.read_bytes()
    for length in (0, 1, 10, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(path)


def test_damaged_bytes_are_refused_or_do_no_harm(path):
    # A byte of padding or a date may change unnoticed; nothing else may come out than the policy or one clear line.
    whole, harmless = path.read_bytes(), load_patterns(path)
    random, refusals = np.random.default_rng(2), 0
    for place in random.integers(0, len(whole), 150).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(damaged)
        try:
            read = load_patterns(path)
        except ValueError as error:
            refusals += 1
            assert str(error).startswith(f"{path}: ")
            assert "\n" not in str(error)
        else:
            assert (read.theta == harmless.theta).all()
            assert all((one == other).all() for one, other in zip(read.words, harmless.words, strict=True))
    assert refusals > 100


@pytest.mark.parametrize(("offset", "bit"), [(10, 6), (8, 0), (6, 7)])
def test_a_directory_that_asks_for_what_zip_cannot_do_is_refused(path, offset, bit):
    """Another compression, a password, a later version: the archive raises errors of its own."""
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"PK\x01\x02") + offset] ^= 1 << bit
    path.write_bytes(damaged)
    refused(path)


def test_other_files_are_refused(tmp_path):
    refused(tmp_path / "missing.npz")
    refused(tmp_path)
    text, array = tmp_path / "text.npz", tmp_path / "array.npz"
    text.write_text("no policy\n" * 30)
    refused(text)
    with array.open("wb") as file:
        np.save(file, np.arange(3))
    refused(array)
    np.savez(tmp_path / "other.npz", games=np.arange(3))
    refused(tmp_path / "other.npz")


def write(path, header, changed):
    """Write a policy file with another header (None: the right one) and some arrays changed."""
    whole = model(False)
    names = ("fine", "coarse", "answers", "nakade", "diamonds")
    arrays = {name: np.diff(words, prepend=0) for name, words in zip(names, whole.words, strict=True)}
    arrays["theta"] = whole.theta.astype(np.float16)
    header = {"format": FORMAT, "kind": "rollout", "record": {}} if header is None else header
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(path, **(arrays | changed))


NAN = np.full(model(False).words.starts[-1], np.nan, np.float16)


@pytest.mark.parametrize(
    ("header", "changed", "words"),
    [
        ({"format": "keima-patterns-9", "kind": "rollout", "record": {}}, {}, "keima-patterns-9"),
        ({"kind": "rollout", "record": {}}, {}, ""),
        ({"format": FORMAT, "kind": "rollout"}, {}, ""),
        ([1, 2], {}, ""),
        (None, {"header": np.frombuffer(b"{ no json", np.uint8)}, ""),
        (None, {"header": np.frombuffer(b"\xff\xfe{}", np.uint8)}, ""),
        (None, {"theta": np.zeros(3, np.float16)}, "do not fit"),
        (None, {"theta": NAN}, "do not fit"),
        (None, {"theta": np.array(["a", "b"])}, ""),
        (None, {"fine": np.array([0.5, 0.5])}, ""),
        (None, {"fine": np.array([{}], dtype=object)}, ""),
    ],
)
def test_files_with_other_contents_are_refused(tmp_path, header, changed, words):
    path = tmp_path / "policy.npz"
    write(path, None, {})
    assert load_patterns(path).kind == "rollout"
    write(path, header, changed)
    refused(path, words)


def test_a_search_needs_one_policy_of_each_kind(tmp_path):
    rollout, tree = tmp_path / "rollout.npz", tmp_path / "tree.npz"
    save_patterns(rollout, model(False))
    save_patterns(tree, model(True))
    both = load_both(rollout, tree)
    assert both.numbers.is_tree
    assert len(both.theta) == model(True).words.starts[-1]
    # The small policies know the same 3x3 patterns, so they share the one large table.
    assert both.numbers.square is both.tables.square
    assert load_rollout(rollout) is both.tables
    for paths in ((tree, rollout), (tree, tree), (rollout, rollout)):
        wrong = paths[0] if paths[0] == tree else paths[1]
        with pytest.raises(ValueError, match="expected a") as caught:
            load_both(*paths)
        assert str(caught.value).startswith(f"{wrong}: ")


def test_weights_are_exponentials_of_scores():
    own = model(False)
    numbers, tables = unfold(own.words), rollout_tables(own)
    scores = np.array([own.theta[row[row >= 0]].sum() for row in numbers.square_places])
    expected = np.clip(STATIC_UNIT * np.exp(scores - np.median(scores[1:])), 1, LARGEST)
    assert tables.static[0] == 0
    np.testing.assert_allclose(tables.static[1:], expected[1:], atol=0.6, rtol=1e-5)


def test_factors_are_exponentials_of_scores():
    own = model(False)
    numbers, tables, unit = unfold(own.words), rollout_tables(own), 1 << FACTOR_BITS
    single = own.theta[numbers.single :]
    corners = [i for i, offset in enumerate(twin.NEAR) if 0 not in offset]
    assert (tables.contexts.keys[:, 0] >= 0).sum() == (numbers.contexts.keys[:, 0] >= 0).sum()
    for key in [*numbers.contexts.keys[numbers.contexts.keys[:, 0] >= 0, 0][::17].tolist(), 1 << 50]:
        responses = numbers.contexts.values[find(numbers.contexts.keys, key), FIRST_CELL:]
        factors = tables.contexts.values[find(tables.contexts.keys, key), FIRST_CELL:]
        for cell in range(N_CELLS):
            score = 0.0 if cell >= 8 else single[CORNER_NEIGHBOUR if cell in corners else EDGE_NEIGHBOUR]
            if responses[cell] >= 0:
                score += single[RESPONSE] + own.theta[responses[cell]]
            assert abs(factors[cell] - min(unit * np.exp(score), MOST_FACTOR)) < 0.6
    for pattern, place in enumerate(numbers.nakade.tolist()):
        assert abs(tables.nakade[pattern] - unit * np.exp(own.theta[place] if place >= 0 else 0.0)) < 0.6
    assert abs(tables.save[0] - unit * np.exp(single[SAVE])) < 0.6


def test_without_weights_all_sensible_moves_are_equal():
    words = Vocabulary(*(np.zeros(0, np.int64) for _ in Vocabulary._fields))
    tables = rollout_tables(PatternModel(words, np.zeros(SINGLE, np.float32), {}))
    assert set(tables.static.tolist()) == {0, STATIC_UNIT}
    assert (tables.contexts.values[-1, FIRST_CELL:] == 1 << FACTOR_BITS).all()
    assert (tables.nakade == 1 << FACTOR_BITS).all()


@pytest.mark.parametrize(
    ("name", "words"),
    [("fine", [1 << 24]), ("coarse", [-1]), ("answers", [5, 3]), ("answers", [13]), ("nakade", [1 << 13])],
)
def test_patterns_that_cannot_be_are_refused(path, tmp_path, name, words):
    """They would be looked up outside of the tables."""
    with np.load(path) as saved:
        arrays = dict(saved)
    other = tmp_path / "other.npz"
    np.savez(other, **(arrays | {name: np.diff(np.array(words), prepend=0)}))
    refused(other, "a response outside" if words == [13] else f"an invalid pattern in {name}")
