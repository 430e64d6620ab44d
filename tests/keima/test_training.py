"""Training from Python: data from records, a network from data, a resumed run."""

import random

import pytest

import keima


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Forty random games as SGF files, and the shards of them."""
    folder, choose = tmp_path_factory.mktemp("training"), random.Random(1)
    (folder / "sgf").mkdir()
    for number in range(40):
        board = keima.Board(7)
        for _ in range(30):
            board.play(choose.choice(board.legal_moves[:-1]))
        record = keima.Record(board)
        record.result = choose.choice(("B+R", "W+R"))
        (folder / "sgf" / f"{number}.sgf").write_text(record.to_sgf(), encoding="utf-8")
    counts = keima.build_data([folder / "sgf"], folder / "data", sizes=(7,), validation_share=0.2, test_share=0.0)
    return folder / "data", counts


def test_records_become_data(data):
    _, counts = data
    assert sum(counts.values()) == 40 and counts["validation"] > 0


def test_a_network_learns_and_resumes(data, tmp_path):
    folder, _ = data
    words = {
        "games": [folder / "train"], "validation": folder / "validation.npz.xz", "device": "cpu", "threads": 1,
        "shape": {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 8},
    }  # fmt: skip
    options = keima.TrainOptions(steps=4, batch=8, warmup=1, validate_every=2, save_every=2)
    path = keima.train(tmp_path / "run", options=options, **words)
    with keima.Network(path) as network:
        assert network.evaluate(keima.Board(7)).policy.sum() == pytest.approx(1.0, abs=1e-3)
    more = keima.TrainOptions(steps=6, batch=8, warmup=1, validate_every=2, save_every=2)
    assert keima.train(tmp_path / "run", options=more, **words).exists()
    with pytest.raises(ValueError, match="no training data for boards of 13x13"):
        keima.train(tmp_path / "other", options=options, boards={13: 1.0}, **words)
    with pytest.raises(ValueError, match="--rules and --komi need --teacher"):
        keima.train(tmp_path / "other", options=options, rules={"chinese": 1}, komi={"5.5..9.5": 2}, **words)


def test_wrong_words_are_refused(tmp_path):
    with pytest.raises(ValueError, match="kind is 'nose', expected one of dual, policy, value"):
        keima.train(tmp_path, validation="x", kind="nose")
    with pytest.raises(ValueError, match="network is 'nose', expected one of keima-resnet"):
        keima.train(tmp_path, validation="x", network="nose")
    with pytest.raises(ValueError):
        keima.build_data([], tmp_path / "out")
