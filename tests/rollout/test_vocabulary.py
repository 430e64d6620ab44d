"""Vocabularies: folding, numbers of patterns and their images, tables that kernels search."""

import numpy as np
import pytest

from engine.rollout.patterns import DIAMOND_IMAGES, N_CODES, permuted
from engine.rollout.vocabulary import (
    CELL_BITS,
    DIAMOND_PLACE,
    FIRST_CELL,
    N_CELLS,
    N_NAKADE,
    SAVE,
    SINGLE,
    UNSEEN,
    Vocabulary,
    find,
    folded_nakade,
    folded_responses,
    number,
    unfold,
)
from tests.rollout import twin

NOTHING = np.zeros(0, np.int64)


@pytest.fixture(scope="module")
def words():
    return twin.small_vocabulary(True)


@pytest.fixture(scope="module")
def numbers(words):
    return unfold(words)


def test_places_follow_one_another(words):
    lengths = [len(patterns) for patterns in words]
    assert min(lengths) > 0
    assert list(words.starts) == [0, *np.cumsum(lengths), sum(lengths) + SINGLE]
    assert words.is_tree
    assert not twin.small_vocabulary(False).is_tree


def test_folded_nakade_is_the_twins():
    # Every set of captured points, bit by bit in the order of rows.
    folded = folded_nakade()
    assert len(folded) == N_NAKADE
    for pattern in range(0, N_NAKADE, 7):
        cells = frozenset(cell for i, cell in enumerate(twin.THIRTEEN) if pattern >> i & 1)
        assert folded[pattern] == twin.fold_nakade(cells)


def test_folded_answers_are_the_twins():
    random = np.random.default_rng(4)
    diamonds, liberties = random.integers(0, 1 << 36, 300), random.integers(1, 4, 300)
    cells = random.integers(0, N_CELLS, 300)
    folded = folded_responses(diamonds | (liberties << 36), cells)
    for i, response in enumerate(folded.tolist()):
        assert response == twin.fold_response(int(diamonds[i]), int(liberties[i]), twin.FAR[cells[i]])


def test_an_answer_to_an_empty_diamond_folds_by_its_offset():
    # Four corners, four edges and four far points: without stones around they are three responses, not twelve.
    folded = folded_responses(np.full(N_CELLS, 3 << 36), np.arange(N_CELLS))
    kinds = [sorted(offset) for offset in np.abs(twin.FAR).tolist()]
    for one in range(N_CELLS):
        for other in range(N_CELLS):
            assert (folded[one] == folded[other]) == (kinds[one] == kinds[other])


def test_patterns_are_numbered_and_strangers_are_not():
    known = np.array([3, 10, 12])
    assert number(np.array([12, 3, 4, 100, 10]), known).tolist() == [2, 0, -1, -1, 1]
    assert number(np.array([1, 2]), NOTHING).tolist() == [-1, -1]


def test_every_sensible_code_has_the_places_of_its_patterns(words, numbers):
    places = twin.Places(words)
    random = np.random.default_rng(6)
    strangers = random.integers(0, N_CODES, 3000)
    relatives = np.concatenate([[image for code in words.fine.tolist() for image in twin.images(code, False)]])
    empty = words.coarse[:200]
    for code in np.concatenate([strangers, relatives, empty]).tolist():
        expected = []
        if twin.is_sensible(code):
            expected.append(places.coarse.get(twin.fold(twin.coarse(code)), places.single + UNSEEN))
            expected.append(places.fine.get(twin.fold(code)))
            expected.append(places.single + SAVE if twin.is_rescue(code) else None)
        own = numbers.square_places[numbers.square[code]].tolist()
        assert sorted(p for p in own if p >= 0) == sorted(p for p in expected if p is not None), oct(code)
        assert (numbers.square[code] > 0) == twin.is_sensible(code)
    assert (numbers.square_places[0] == -1).all()
    assert numbers.single == places.single


def test_answers_are_found_under_every_symmetry(words, numbers):
    places = twin.Places(words)
    random = np.random.default_rng(7)
    for response in random.choice(words.responses, 60, replace=False).tolist():
        context = np.array([response >> CELL_BITS])
        for image in {int(permuted(context, table)[0]) for table in DIAMOND_IMAGES}:
            row = find(numbers.contexts.keys, image)
            assert row < len(numbers.contexts.keys) - 1
            diamond, liberties = image & ((1 << 36) - 1), image >> 36
            folded = [twin.fold_response(diamond, liberties, offset) for offset in twin.FAR]
            assert numbers.contexts.values[row, FIRST_CELL:].tolist() == [
                places.responses.get(one, -1) for one in folded
            ]
    missing = find(numbers.contexts.keys, 0)
    assert missing == len(numbers.contexts.keys) - 1
    assert (numbers.contexts.values[missing, FIRST_CELL:] == -1).all()


def diamond_place(numbers, code):
    """Where the weight of a diamond stands, -1 = nowhere."""
    return numbers.diamonds.values[find(numbers.diamonds.keys, code), DIAMOND_PLACE]


def test_diamonds_and_nakade_are_found_under_every_symmetry(words, numbers):
    places = twin.Places(words)
    for code, place in list(places.diamonds.items())[::9]:
        for image in twin.images(code, True):
            assert diamond_place(numbers, image) == place
    for code in np.random.default_rng(8).integers(0, 1 << 36, 200).tolist():
        assert diamond_place(numbers, code) == places.diamonds.get(twin.fold_far(code), -1)
    folded = folded_nakade().tolist()
    assert numbers.nakade.tolist() == [places.nakade.get(pattern, -1) for pattern in folded]


def test_a_vocabulary_may_be_empty():
    words = Vocabulary(*(NOTHING for _ in Vocabulary._fields))
    numbers = unfold(words)
    assert words.starts == (0, 0, 0, 0, 0, 0, SINGLE)
    code = 0  # An empty board around the point.
    assert numbers.square_places[numbers.square[code]].tolist() == [UNSEEN, -1, -1]
    assert (numbers.contexts.values[find(numbers.contexts.keys, 3 << 36), FIRST_CELL:] == -1).all()
    assert diamond_place(numbers, 0) == -1
    assert (numbers.nakade == -1).all()


def test_more_patterns_than_numbers_are_refused():
    words = Vocabulary(np.arange(1 << 16), NOTHING, NOTHING, NOTHING, NOTHING)
    with pytest.raises(ValueError, match="65539 numbers for 3x3 patterns, expected 65536 at most"):
        unfold(words)
