"""Bugs that other programs' reinforcement learning had, looked for from the games to the weights and the labels.

Colours and signs, rewards behind passes, opponents that are never drawn: each went unseen for months somewhere, since
training goes on without an error. What one module alone can get wrong, its own tests look for.
"""

import numpy as np
import pytest
import torch

from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK, PASS, WHITE, point_of
from engine.go.position import META_TO_MOVE, is_legal_move, new_position, play_move
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.nets.model import load_model
from engine.records.games import read_games
from engine.selfplay.bulk import BulkPlay
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.reinforce import POOL, Reinforce, ReinforceOptions, member_of
from engine.selfplay.values import ValuePlan
from engine.train.batches import BatchBuilder
from engine.train.policy_gradient import PolicyGradient, _log_probabilities, learners_moves
from engine.train.ranks import Ranks
from tests.selfplay.runs import distribution

CENTRE, LAST = 12, 25
"""Of 5x5: the point that no symmetry moves, and the pass"""
CPU = torch.device("cpu")


class Biased(UniformNetwork):
    """Logits that do not depend on the position: some moves', and 0."""

    def __init__(self, **logits):
        super().__init__("alphago-48")
        self.logits = np.zeros(26, np.float32)
        self.logits[CENTRE], self.logits[LAST] = logits.get("centre", 0.0), logits.get("last", 0.0)

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        return output._replace(policy=np.tile(self.logits, (len(planes), 1)))


EAGER, SHY = Biased(centre=50.0), Biased(centre=-50.0)
"""Networks that begin in the centre always, and never"""


def learning(start, out, **given):
    """A run on 5x5."""
    few = {"size": 5, "updates": 50, "games": 8, "pool_every": 1, "check_every": 50, "save_every": 50, "rate": 0.01}
    options = ReinforceOptions(distribution(4.5), **few | given)
    return Reinforce(start, {"name": "start", "sha256": "0"}, options, out, CPU, None, 1, Ranks())


def weights(run):
    """All of them, as one vector."""
    return torch.cat([value.detach().flatten() for value in run.learner.model.parameters()])


def test_the_learner_has_each_colour_in_half_of_the_games_and_the_rewards_of_its_own(start, tmp_path):
    """RocAlphaGo rewarded as if the learner were always Black; takeGo swapped the players as games ended."""
    run = learning(start, tmp_path / "out", games=20)
    finished = run._games(EAGER, SHY, np.arange(20), 1)
    experience = run._experience(finished)
    games = experience.games
    openings = games.moves[games.offsets[:-1]] == CENTRE
    assert ((experience.learner == BLACK) == openings).all() and openings.sum() == 10
    moves = learners_moves(experience, is_pass_last=True)
    for game in range(20):
        has_won = games.result[game] == (1 if openings[game] else -1)
        assert set(moves.outcomes[moves.rows == game].tolist()) == {1.0 if has_won else -1.0}
    won = [games.result[game] == (1 if openings[game] else -1) for game in range(20)]
    assert run._win_rate(finished) == np.mean(won) and 0 < sum(won) < 20


def test_colours_alternate_from_game_to_game_in_bulk_too(tmp_path):
    options = BulkOptions(distribution(4.5), size=5)
    with (
        InferenceServer(EAGER, threads=1) as one,
        InferenceServer(SHY, threads=1) as other,
    ):
        bulk = BulkPlay([one, other], Plan(options), [{"name": "a"}, {"name": "b"}], tmp_path)
        bulk.run(12, at_once=5, groups=2, report=lambda: None, every_s=0.001)
        bulk.close()
    games = read_games(tmp_path / "games-00000.npz.xz")
    assert ((games.moves[games.offsets[:-1]] == CENTRE) == (games.number % 2 == 0)).all()


def test_behind_passes_moves_and_rewards_stay_with_their_player(start, tmp_path):
    """The learner passes in the middle of games, its opponent never does."""
    run = learning(start, tmp_path / "out", games=10, passes="free")
    finished = run._games(Biased(last=2.5), Biased(last=-50.0), np.arange(10), 1)
    experience = run._experience(finished)
    games, moves = experience.games, learners_moves(experience, is_pass_last=False)
    at = games.offsets[moves.rows] + moves.plies
    is_pass = games.moves == LAST
    # Once the board is full the opponent passes too: only what comes before is the learner's alone.
    early = np.flatnonzero(
        is_pass & (np.arange(len(is_pass)) < np.repeat(games.offsets[:-1] + 20, np.diff(games.offsets)))
    )
    assert len(early) > 20 and set(early.tolist()) <= set(at.tolist())
    sign = np.where(experience.learner == BLACK, 1, -1)
    assert (moves.outcomes == (sign * games.result)[moves.rows]).all()
    assert set((moves.plies % 2)[moves.rows == 0].tolist()) == {0} and set(
        (moves.plies % 2)[moves.rows == 1].tolist()
    ) == {1}


def with_results(run, change):
    """A run whose games have other results, which ``change`` makes of them and the learner's signs."""
    play = run._games

    def games(*given):
        found = []
        for one in play(*given):
            sign = np.where(one.games.number % 2 == 0, 1, -1)
            result = change(one.games.result, sign).astype(np.int8)
            found.append(one._replace(games=one.games._replace(result=result)))
        return found

    run._games = games
    return run


@pytest.mark.parametrize("given", [{}, {"clip": 0.5}])
def test_opposite_results_move_the_weights_in_opposite_directions(start, tmp_path, given):
    moved = []
    for name, change in (("as-is", lambda result, sign: result), ("opposite", lambda result, sign: -result)):
        run = with_results(learning(start, tmp_path / name, **given), change)
        before = weights(run).clone()
        run._update()
        moved.append(weights(run) - before)
    assert moved[0].abs().max() > 1e-5
    torch.testing.assert_close(moved[0], -moved[1], rtol=1e-3, atol=1e-7)


def log_probability(model, experience):
    """What the learner's moves are worth to a network, all of them."""
    gradient, moves = PolicyGradient(model, ENCODERS["alphago-48"], is_pass_last=True), learners_moves(experience, True)
    *inputs, played = gradient._inputs(gradient._builder, experience, moves, slice(None))
    with torch.no_grad():
        logs = _log_probabilities(model, *inputs, torch.ones(len(played), 1))
    return float(logs.gather(1, played[:, None]).sum())


@pytest.mark.parametrize("outcome", [1, -1])
def test_games_won_make_the_learners_moves_more_probable_and_lost_ones_less(start, tmp_path, outcome):
    run = with_results(learning(start, tmp_path / "out"), lambda result, sign: outcome * sign)
    lived = []
    run._experience = lambda finished, found=run._experience: lived.append(found(finished)) or lived[0]
    before = load_model(start)[0].eval()
    run._update()
    old, new = (log_probability(model, lived[0]) for model in (before, run.learner.model))
    assert (new > old) == (outcome == 1) and abs(new - old) > 1e-3


def test_every_update_plays_the_member_drawn_with_the_weights_it_had_then(start, tmp_path):
    """bokego's pool was never drawn from."""
    run = learning(start, tmp_path / "out", updates=12, games=2)
    drawn, had, load = [], {0: weights(run).clone()}, run._member
    run._member = lambda entered: drawn.append(entered) or load(entered)
    run.check = dict
    run.run(lambda: False, lambda step, metrics: had.__setitem__(step, weights(run).clone()))
    assert drawn == [member_of(update, update + 1, seed=1) for update in range(12)]
    assert len(set(drawn)) > 4
    for entered in (0, 5, 12):
        model = load_model(tmp_path / "out" / POOL / f"{entered:06}.safetensors")[0]
        held = torch.cat([value.detach().flatten() for value in model.parameters()])
        torch.testing.assert_close(held, had[entered], rtol=0, atol=0)
    assert not torch.equal(had[0], had[12])


BLACKS = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 1), (2, 2), (3, 0), (3, 1), (4, 1)]
WHITES = [(3, 2), (4, 2), (0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (1, 4), (3, 4)]
"""A board that is solved: Black lives with four eyes and owns 13 points, White with three and owns 12

    . X X O .
    X . X O O
    . X X O .
    X X O O O
    . X O O .
"""
SCRIPT = [5 * row + column for pair in zip(BLACKS, WHITES, strict=True) for row, column in pair]


class Scripted(UniformNetwork):
    """Plays one game, whichever symmetry it is shown under; of other positions it knows nothing."""

    def __init__(self, moves):
        super().__init__("alphago-48")
        self.known, encoder, position = {}, ENCODERS["alphago-48"], new_position(5, 60)
        for move in moves:
            color, planes = int(position.meta[META_TO_MOVE]), np.zeros((encoder.planes, 5, 5), np.float32)
            for symmetry in range(8):
                encode(position, symmetry, encoder.new_scratch(5), planes, np.zeros(0, np.float32))
                self.known[planes.tobytes()] = int(symmetry_table(5)[symmetry][move])
            assert is_legal_move(position, point_of(move, 5), color)
            play_move(position, point_of(move, 5), color)

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        for row, shown in enumerate(planes):
            if (move := self.known.get(shown.tobytes())) is not None:
                output.policy[row, move] = 100.0
        return output


def value_targets(games, rows, plies):
    """What a value network learns, and who is to move there."""
    nothing = np.zeros(len(rows), np.int64)
    batch = BatchBuilder(ENCODERS["alphago-49"]).from_games(games, rows, plies, nothing.astype(bool), nothing)
    assert (batch.value_known == 1).all()
    return batch.value.tolist()


def played(networks, plan, out, count=4):
    """The games of a plan."""
    servers = [InferenceServer(network, threads=1) for network in networks]
    bulk = BulkPlay(servers, plan, [{"name": "a"}] * len(servers), out)
    bulk.run(count, at_once=3, groups=1, report=lambda: None, every_s=0.001)
    bulk.close()
    for server in servers:
        server.close()
    return read_games(out / "games-00000.npz.xz")


@pytest.mark.parametrize("to_move", [BLACK, WHITE])
@pytest.mark.parametrize(("komi", "black"), [(0.5, 1), (1.5, -1), (1.0, 0)])
def test_labels_of_a_board_solved_by_hand_are_right_for_the_side_to_move(tmp_path, komi, black, to_move):
    """The random move can only fill one of its player's eyes; enough are left, and the score stays."""
    script = SCRIPT if to_move == WHITE else [*SCRIPT, 6]
    plan = ValuePlan(BulkOptions(distribution(komi), size=5))
    plan.random_plies = lambda wanted: np.full(len(wanted), len(script) + 1)
    games = played([Scripted(script), UniformNetwork("alphago-48")], plan, tmp_path)
    assert (games.position == len(script) + 1).all() and (games.margin == abs(1 - komi)).all()
    assert set(games.moves[games.offsets[1:] - 1].tolist()) == {LAST}, "nothing is left to play"
    expected = black if to_move == BLACK else -black
    assert value_targets(games, np.arange(4), games.position.astype(np.int64)) == [expected] * 4


@pytest.mark.parametrize(("komi", "black"), [(0.5, 1), (1.5, -1)])
def test_labels_of_a_whole_game_solved_by_hand_alternate_with_the_side_to_move(tmp_path, komi, black):
    games = played([Scripted(SCRIPT)], Plan(BulkOptions(distribution(komi), size=5)), tmp_path, 1)
    assert len(games.moves) == 20 and games.moves[-2:].tolist() == [LAST, LAST] and PASS == 0
    assert value_targets(games, np.zeros(20, np.int64), np.arange(20)) == [black, -black] * 10
