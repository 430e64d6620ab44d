"""Games from openings: each opening twice with colours changed, a run goes on, and what cannot be an opening."""

import numpy as np
import pytest
from click.testing import CliRunner

from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.games import Games, offsets_of, read_games, write_games
from engine.selfplay.bulk import BulkPlay
from engine.selfplay.plan import BulkOptions, OpenedPlan
from gtp.cli import main
from tests.selfplay.runs import distribution

SIZE, AREA = 5, 25
GREEDY = BulkOptions(distribution(0.5), size=SIZE, least_share=1.0, seed=3)
IDENTITIES = [{"name": name, "sha256": name} for name in ("one", "other")]
OPENINGS = [[12, 6, 8], [11, AREA, 13], [7]]


def shard(path, games, size=SIZE):
    """Write some games, each a list of policy indices."""
    lengths = [len(moves) for moves in games]
    write_games(path, Games(
        size=np.full(len(games), size), offsets=offsets_of(lengths), moves=np.concatenate(games).astype(np.uint16)
    ))  # fmt: skip
    return path


@pytest.fixture(scope="module")
def servers():
    with (
        InferenceServer(HashNetwork("alphago-48"), threads=1) as one,
        InferenceServer(HashNetwork("alphago-48"), threads=1) as other,
    ):
        yield [one, other]


def moves_of(out):
    """The moves of all games in a folder, by number."""
    games = [read_games(path) for path in sorted(out.glob("*.npz.xz"))]
    return {
        int(number): part.moves[part.offsets[k] : part.offsets[k + 1]].tolist()
        for part in games for k, number in enumerate(part.number)
    }  # fmt: skip


def test_each_opening_is_played_by_both_colours(servers, tmp_path):
    plan = OpenedPlan(GREEDY, 2, [shard(tmp_path / "openings.npz.xz", OPENINGS)])
    play = BulkPlay(servers, plan, IDENTITIES, tmp_path / "out")
    play.run(14, 4, 2, lambda: None)
    play.close()
    found = moves_of(tmp_path / "out")
    assert sorted(found) == list(range(14))
    for number, moves in found.items():
        opening = OPENINGS[number // 2 % len(OPENINGS)]
        assert moves[: len(opening)] == opening and len(moves) > len(opening)
    setups = plan.set_up(np.arange(4))
    assert setups.openings.rows.tolist() == [0, 0, 1, 1] and setups.players is None, "colours follow the number"


def test_of_one_network_every_game_has_the_next_opening_cut_off_where_asked(servers, tmp_path):
    plan = OpenedPlan(GREEDY, 1, [shard(tmp_path / "openings.npz.xz", OPENINGS)], moves=2)
    play = BulkPlay(servers[:1], plan, IDENTITIES[:1], tmp_path / "out")
    play.run(4, 4, 1, lambda: None)
    play.close()
    found = moves_of(tmp_path / "out")
    assert [found[n][:2] for n in range(2)] == [opening[:2] for opening in OPENINGS[:2]]
    assert found[2][0] == 7 and found[3][:2] == OPENINGS[0][:2]


def test_a_folder_goes_on_with_its_openings_alone(servers, tmp_path):
    for name, openings in (("one", OPENINGS), ("other", OPENINGS[:2])):
        shard(tmp_path / f"{name}.npz.xz", openings)
    BulkPlay(servers, OpenedPlan(GREEDY, 2, [tmp_path / "one.npz.xz"]), IDENTITIES, tmp_path / "out").close()
    BulkPlay(servers, OpenedPlan(GREEDY, 2, [tmp_path / "one.npz.xz"]), IDENTITIES, tmp_path / "out").close()
    with pytest.raises(ValueError, match="openings"):
        BulkPlay(servers, OpenedPlan(GREEDY, 2, [tmp_path / "other.npz.xz"]), IDENTITIES, tmp_path / "out")


def test_a_built_folder_means_its_training_games(tmp_path):
    """Games that go on from held-out ones would be trained on, and the test would no longer be one."""
    (tmp_path / "train").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    for number, name in enumerate(("train/train-000.npz.xz", "validation.npz.xz", "test.npz.xz")):
        shard(tmp_path / name, OPENINGS[number : number + 1])
    openings = OpenedPlan(GREEDY, 1, [tmp_path]).set_up(np.arange(3)).openings
    assert openings.plies.tolist() == [3, 3, 3]
    assert openings.record.moves.tolist() == OPENINGS[0]


@pytest.mark.parametrize(("games", "size", "said"), [
    ([[12], [12, 12]], SIZE, "game 2 of 2 cannot be an opening (move 2 at cc is illegal)"),
    ([[12]], 7, "game 1 of 1 cannot be an opening (board size 7x7, expected 5x5)"),
    ([[12, AREA, AREA, 6]], SIZE, "game 1 of 1 cannot be an opening (two passes end it within the opening)"),
    ([list(range(12))], SIZE, "game 1 of 1 cannot be an opening (it has 12 moves, and the move limit is 12)"),
])  # fmt: skip
def test_what_is_no_opening_is_one_line(games, size, said, tmp_path):
    path = shard(tmp_path / "openings.npz.xz", games, size)
    asked = ["data", "play", "default", "--size", str(SIZE), "--komi", "0.5", "--limit", "12", "--games", "2"]
    result = CliRunner().invoke(main, [*asked, "--openings", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code and said in " ".join(result.output.split())
