"""REINFORCE: who learns, from which moves, in which direction; the gradient against one computed move by move."""

import copy

import numpy as np
import pytest
import torch

import engine.nets.compute.precision
import engine.nets.network
from bench.reliability.rules_twin import Twin
from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK, PASS, WHITE, other, point_of
from engine.go.position import META_TO_MOVE, apply_rules, is_legal_move, new_position, play_move
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.records.games import select
from engine.records.schema import join
from engine.selfplay.games import GameBatch, Player, Setups
from engine.selfplay.table import NEVER, GameConfig
from engine.train.policy_gradient import Experience, PolicyGradient, learners_moves
from tests.nets.models import network_of, toy
from tests.selfplay.twin import fills_eye

SIZE = 7


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """In float32, as the definition that gradients are compared with."""
    monkeypatch.setattr(engine.nets.compute.precision, "prefers_bfloat16", lambda _: False)


def made(architecture, seed=1):
    """A small network of random weights, and its encoder."""
    encoder = ENCODERS[ARCHITECTURES[architecture].encoder]
    shape = {"size": SIZE} if architecture == "alphago-policy" else {}
    shape |= {"globals": encoder.globals} if encoder.globals else {}
    return toy(architecture, seed, planes=encoder.planes, **shape), encoder


def played(model, count=6, passes="last"):
    """Games of a network against itself; the learner has Black in even ones."""
    position = new_position(SIZE)
    apply_rules(position, RULE_SETS["tromp-taylor"], 0.5)

    def set_up(numbers):
        k = len(numbers)
        return Setups(np.repeat(position.rules[None], k, 0), temperatures=np.where(numbers % 3, 1.0, 0.5))

    network = network_of(model, new_spec(model, "learner"), reduced=False, by_program=False)
    with InferenceServer(network, threads=1) as server:
        player = Player(server, GameConfig(120, 5, sensible_moves=NEVER if passes == "last" else 0))
        found = list(GameBatch([player], SIZE, count, set_up).play(iter(range(count))))
    games = join([one.games for one in found])
    symmetries = np.concatenate([one.symmetries for one in found])
    setups = set_up(games.number)
    learner = np.where(games.number % 2 == 0, BLACK, WHITE).astype(np.uint8)
    return Experience(games, symmetries, setups.rules, setups.temperatures, learner)


def only(experience, game):
    """The experience of one game."""
    games = experience.games
    at = slice(games.offsets[game], games.offsets[game + 1])
    rest = (one[game : game + 1] for one in experience[2:])
    return Experience(select(games, np.array([game])), experience.symmetries[at], *rest)


def gradient(model, encoder, experience, is_pass_last=True, **options):
    """All gradients as one vector."""
    model = copy.deepcopy(model)
    PolicyGradient(model, encoder, is_pass_last, **options).backward(experience)
    return torch.cat([value.grad.flatten() for value in model.parameters() if value.grad is not None])


def log_probability(model, encoder, experience, game, ply, is_pass_last):
    """Log-probability of a move that was played, from the rules alone; with it the entropy there."""
    games, size = experience.games, SIZE
    moves = games.moves[games.offsets[game] : games.offsets[game + 1]].tolist()
    position, twin = new_position(size, 130), Twin(size)
    position.rules[:] = experience.rules[game]
    for move in moves[:ply]:
        color = int(position.meta[META_TO_MOVE])
        play_move(position, PASS if move == size**2 else point_of(move, size), color)
        twin.play(None if move == size**2 else divmod(move, size), color)
    color = int(position.meta[META_TO_MOVE])
    planes = np.zeros((1, encoder.planes, size, size), np.float32)
    globals_ = np.zeros((1, encoder.globals), np.float32)
    symmetry = int(experience.symmetries[games.offsets[game] + ply])
    encode(position, symmetry, encoder.new_scratch(size), planes[0], globals_[0])
    logits = model(torch.from_numpy(planes), torch.from_numpy(globals_)).policy[0]
    weights = {}
    for index in range(size**2):
        point = point_of(index, size)
        cell = divmod(index, size)
        legal = cell not in twin.stones and is_legal_move(position, point, color)
        if legal and is_pass_last:
            after = Twin(size)
            after.stones, after.situations = dict(twin.stones), list(twin.situations)
            after.play(cell, color)
            legal = cell in after.stones and not fills_eye(twin, cell, color)
        if legal:
            weights[index] = logits[symmetry_table(size)[symmetry][index]] / experience.temperatures[game]
    if not is_pass_last:
        of_pass = logits[size**2] if len(logits) > size**2 else logits.min() - engine.nets.network.PASS_GAP
        weights[size**2] = of_pass / experience.temperatures[game]
    logs = torch.log_softmax(torch.stack(list(weights.values())), dim=0)
    return logs[list(weights).index(moves[ply])], -(logs.exp() * logs).sum()


@pytest.mark.parametrize(
    ("architecture", "passes"), [("alphago-policy", "last"), ("alphago-policy", "free"), ("keima-resnet", "free")]
)
def test_the_gradient_is_that_of_the_definition(architecture, passes, monkeypatch):
    # Where the head lacks the pass, it is now as probable as the last choice, so that it is played.
    monkeypatch.setattr(engine.nets.network, "PASS_GAP", 0.0)
    model, encoder = made(architecture)
    experience, is_pass_last = played(model, 3, passes), passes == "last"
    assert is_pass_last or (experience.games.moves[learners_moves(experience, False).plies] == SIZE**2).any()
    slow, total = copy.deepcopy(model).eval(), 0.0
    for game in range(3):
        learner = experience.learner[game]
        length = int(np.diff(experience.games.offsets)[game])
        reward = int(experience.games.result[game]) * (1 if learner == BLACK else -1)
        for ply in range(length):
            move = experience.games.moves[experience.games.offsets[game] + ply]
            if (BLACK if ply % 2 == 0 else WHITE) == learner and not (is_pass_last and move == SIZE**2):
                log, entropy = log_probability(slow, encoder, experience, game, ply, is_pass_last)
                total = total - (reward * log + 0.01 * entropy) / 3
    total.backward()
    expected = torch.cat([value.grad.flatten() for value in slow.parameters() if value.grad is not None])
    found = gradient(model, encoder, experience, is_pass_last, entropy=0.01)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_opposite_results_move_the_weights_in_opposite_directions():
    model, encoder = made("alphago-policy")
    experience = played(model)
    opposite = experience._replace(games=experience.games._replace(result=-experience.games.result))
    found = gradient(model, encoder, experience)
    assert found.abs().max() > 0
    torch.testing.assert_close(gradient(model, encoder, opposite), -found)


def test_every_game_of_a_batch_teaches_equally():
    model, encoder = made("alphago-policy")
    experience = played(model)
    alone = torch.stack([gradient(model, encoder, only(experience, game)) for game in range(6)])
    assert (alone.abs().amax(dim=1) > 0).all()
    torch.testing.assert_close(gradient(model, encoder, experience), alone.mean(dim=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("learner", [BLACK, WHITE])
@pytest.mark.parametrize("winner", [BLACK, WHITE])
def test_a_won_game_makes_its_moves_more_probable_and_a_lost_one_less(learner, winner):
    model, encoder = made("alphago-policy")
    experience = only(played(model), 0)
    result = np.array([1 if winner == BLACK else -1], np.int8)
    experience = experience._replace(
        games=experience.games._replace(result=result), learner=np.array([learner], np.uint8)
    )
    teacher = PolicyGradient(model, encoder, is_pass_last=True)
    plies, logs = learners_moves(experience, True).plies.tolist(), []
    assert teacher.backward(experience).moves == len(plies) > 0
    with torch.no_grad():
        for step in (0.0, 1e-3):
            for value in model.parameters():
                value -= step * value.grad
            logs.append(sum(float(log_probability(model, encoder, experience, 0, ply, True)[0]) for ply in plies))
    assert (logs[1] > logs[0]) == (winner == learner)


def test_only_the_learners_moves_count_and_passes_change_nothing():
    """Behind a pass in the middle of a game colours still alternate."""
    model, _ = made("keima-resnet")
    experience = played(model, 8, "free")
    games = experience.games
    middle = [g for g in range(8) if SIZE**2 in games.moves[games.offsets[g] : games.offsets[g + 1] - 4]]
    assert middle, "no game with an early pass"
    for is_pass_last in (False, True):
        moves = learners_moves(experience, is_pass_last)
        for game in range(8):
            plies = moves.plies[moves.rows == game]
            colors = np.where(plies % 2 == 0, BLACK, WHITE)
            assert (colors == experience.learner[game]).all()
            sign = 1 if experience.learner[game] == BLACK else -1
            assert (moves.outcomes[moves.rows == game] == sign * games.result[game]).all()
            chosen = games.moves[games.offsets[game] + plies]
            everything = games.moves[games.offsets[game] : games.offsets[game + 1]]
            own = everything[0 if experience.learner[game] == BLACK else 1 :: 2]
            assert chosen.tolist() == [move for move in own.tolist() if not (is_pass_last and move == SIZE**2)]


def test_both_colours_learn():
    model, _ = made("alphago-policy")
    experience = played(model)
    assert set(experience.learner.tolist()) == {BLACK, WHITE}
    moves = learners_moves(experience, True)
    assert set(moves.rows.tolist()) == set(range(6))
    reversed_ = experience._replace(learner=np.array([other(int(one)) for one in experience.learner], np.uint8))
    both = [set(zip(*learners_moves(one, True)[:2], strict=True)) for one in (experience, reversed_)]
    n_moves = (experience.games.moves != SIZE**2).sum()
    assert not both[0] & both[1] and len(both[0] | both[1]) == n_moves


def test_a_baseline_is_taken_off():
    model, encoder = made("alphago-policy")
    value_model, _ = made("keima-resnet", seed=2)
    network = network_of(value_model, new_spec(value_model, "value"), reduced=False)
    experience = played(model)
    moves = learners_moves(experience, True)
    plain = PolicyGradient(model, encoder, True).advantages(experience, moves)
    assert plain.tolist() == moves.outcomes.tolist()
    less = PolicyGradient(model, encoder, True, baseline=network).advantages(experience, moves)
    values = plain - less
    assert values.std() > 1e-3 and (np.abs(values) < 1).all()


def test_the_divergence_from_the_start_is_nothing_at_first():
    model, encoder = made("alphago-policy")
    experience = played(model)
    start = copy.deepcopy(model)
    sums = PolicyGradient(model, encoder, True, start=start).backward(experience)
    assert sums.measured == sums.moves and abs(sums.divergence) < 1e-4 and sums.entropy > 0
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn_like(value))
    assert PolicyGradient(model, encoder, True, start=start).backward(experience).divergence > 1e-3
