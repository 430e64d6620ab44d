"""Reviews of real and unusual records with made-up analyses: no crash, no loss of data."""

import random
import zipfile

import numpy as np
import pytest

from engine.go.geometry import other, point_of
from engine.go.rules import RULE_SETS
from engine.go.sgf import read_sgf
from engine.insight.review.annotate import annotate
from engine.insight.review.games import game_to_review, sources
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.turns import Candidate, Turn
from engine.insight.review.writing import page_of

MOST_BYTES = 600 << 10
"""Of a page"""
EVERY = 8
"""One of so many samples; all of them were tried when this was written"""


def made_up(game, seed):
    """Turns as large as real ones."""
    chance, size, turns = random.Random(seed), game.record.size, []
    spread = np.random.default_rng(seed)
    for n in range(len(game.steps) + 1):
        color = game.steps[n].color if n < len(game.steps) else other(game.steps[-1].color)
        moves = [
            Candidate(
                point_of(chance.randrange(size * size + 1), size), 40 - k, round(chance.random(), 4),
                round(chance.gauss(0, 9), 2), 0.1, [point_of(chance.randrange(size * size), size) for _ in range(12)],
            )
            for k in range(8)
        ]  # fmt: skip
        owners = spread.uniform(-1, 1, size * size).round(2).astype(np.float16)
        policy = spread.uniform(0, 1, size * size + 1).astype(np.float16)
        turns.append(Turn(n, color, 100, 0.5, round(chance.gauss(0, 9), 2), 20.0, moves, owners, policy))
    return turns


@pytest.mark.shared
def test_samples_are_reviewed_without_loss(shared_path, tmp_path):
    """Some of the samples; setup, handicap, variations and broken encodings are among them."""
    with zipfile.ZipFile(shared_path / "data" / "sgf_samples.zip") as archive:
        archive.extractall(tmp_path)
    refused, reviewed = [], 0
    found = list(sources([tmp_path], tmp_path / "out", lambda name, problem: refused.append((name, problem))))
    for number, source in enumerate(found):
        if number % EVERY:
            continue
        game = game_to_review(source.record, RULE_SETS["chinese"], 7.5)
        review = review_of(source.name, game, made_up(game, number), AnalysisSettings("made up", 100, 0.0))
        tree = source.tree()
        annotate(tree, review)
        written = tree.to_bytes()
        again = read_sgf(written)
        assert (again.moves, again.black, again.white) == (
            source.record.moves,
            source.record.black,
            source.record.white,
        )
        annotate(tree, review)
        assert tree.to_bytes() == written, source.name
        page = page_of(review)
        assert len(page.encode()) < MOST_BYTES, f"{source.name}: {len(page.encode())}"
        reviewed += 1
    assert reviewed >= 100 // EVERY and len(refused) < 10, refused
