"""The player without a front end: budgets, passing, resignation, results. Rollouts alone unless a test needs more."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import engine.loading
import engine.player
from engine.clock import absolute, fischer
from engine.config import PlayOptions, SearchOptions
from engine.features.encoder import KEIMA
from engine.go import diagram
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points, other, point_at, to_vertex
from engine.go.scoring import final_score_black
from engine.nets.checkpoint import save_network
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet, ResNetShape
from engine.player import RESIGN, Player
from engine.settle import settle

SEARCH = SearchOptions(threads=1, seed=1)
FEW = PlayOptions(visits=64, seconds=0.0)

DEAD_STONES = """
    . . . X O . . . .
    . O . X O . O . .
    . . X X O O . . .
    X X . X X O . O .
    . . X . X O O . .
    . X . . X X O . .
    . . . X . X O O .
    . O . X . X X O .
    . . . X . . X O .
"""
"""Black has 45 points and three dead white stones in them; counted as they stand these make Black's regions dame."""

TWO_EYES = """
    . X O O .
    X X O O O
    X X O . O
    X X O O O
    . X O O O
"""
"""Black's only moves fill its eyes, White's too"""


def position(player, text, to_move):
    """Set a player's board up from a diagram."""
    board = diagram.parse(text).board
    size = int(board.meta[0])
    player.new_game(size)
    points = on_board_points(size).tolist()
    stones = {color: [point for point in points if board.color[point] == color] for color in (BLACK, WHITE)}
    player.game.setup_stones(stones[BLACK], stones[WHITE], to_move)
    return player


@pytest.fixture
def make():
    """Players that are closed at the end."""
    players = []

    def make_player(options=FEW, **settings):
        known = {name: settings.pop(name) for name in ("seed", "uniform_rollouts") if name in settings}
        search = replace(SEARCH, **known)
        players.append(Player(search, options, size=settings.pop("size", 9), **settings))
        return players[-1]

    yield make_player
    for player in players:
        player.close()


@pytest.fixture(scope="module")
def tiny_network(tmp_path_factory):
    """A file with a network of random weights for boards of 7 to 9."""
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    spec = NetworkSpec("tiny", KEIMA.name, 7, 9, has_score=True, has_ownership=True)
    save_network(path, ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, 1, 8)), spec, {})
    return path


def test_visits_are_the_budget_that_was_asked_for(make):
    player = make(PlayOptions(visits=40, seconds=0.0))
    player.genmove(BLACK)
    assert 1 < player.report.visits <= 40


def test_seconds_are(make):
    player = make(PlayOptions(seconds=0.3))
    player.warm_up()
    player.genmove(BLACK)
    assert player.report.seconds < 0.6


def test_the_clock_overrules_seconds_and_is_charged(make):
    player = make(PlayOptions(seconds=60.0))
    player.warm_up()
    player.clock.configure(absolute(4.0))
    begin = time.perf_counter()
    player.genmove(BLACK)
    taken = time.perf_counter() - begin
    assert taken < 1.0
    assert player.clock.budget(BLACK, 1, 81).soft_s < player.clock.budget(WHITE, 1, 81).soft_s


def test_on_an_almost_empty_clock_a_move_is_answered_at_once(make, monkeypatch):
    player = position(make(), WALLS, BLACK)
    player.clock.configure(absolute(600.0))
    player.clock.set_left(BLACK, 0.01, 0)
    judged = []
    monkeypatch.setattr(engine.player, "settle", lambda *arguments: judged.append(1) or settle(*arguments))
    assert player.genmove(BLACK) > 0
    assert (player.report.visits, judged) == (1, [])
    # Only after a pass there is no moving on without a judgement.
    player.play(WHITE, PASS)
    player.clock.set_left(BLACK, 0.01, 0)
    player.genmove(BLACK)
    assert judged


@pytest.mark.parametrize("extend_unstable", [True, False])
@pytest.mark.parametrize("early_stop", [True, False])
def test_what_the_clock_allows_reaches_the_search(make, monkeypatch, extend_unstable, early_stop):
    player = make(PlayOptions(extend_unstable=extend_unstable, early_stop=early_stop))
    player.clock.configure(fischer(60.0, 1.0))
    given, run = {}, player._search.run
    monkeypatch.setattr(
        player._search, "run", lambda visits, *limits, **rest: given.update(limits=limits, **rest) or run(visits=9)
    )
    budget = player.clock.budget(BLACK, 0, 81)
    player.genmove(BLACK)
    assert given["limits"][0] == pytest.approx(budget.soft_s, abs=0.2)
    assert given["limits"][1] == pytest.approx(budget.hard_s if extend_unstable else budget.soft_s, abs=0.2)
    assert given["stop_when_decided"] is early_stop


def test_policy_alone_looks_at_one_position(make, tiny_network):
    player = make(PlayOptions(policy_only=True), network=tiny_network)
    for color in (BLACK, WHITE):
        assert player.genmove(color) > 0
        assert player.report.visits == 1


def test_policy_alone_is_the_mean_over_all_symmetries(make, tiny_network):
    """On the empty board it is symmetric, which the network is not."""
    player = make(PlayOptions(policy_only=True), network=tiny_network)
    player.genmove(BLACK)
    priors = {move.point: move.prior for move in player.report.moves}
    corners = [priors[from_vertex(vertex, 9)] for vertex in ("C3", "G3", "C7", "G7")]
    assert corners == pytest.approx([corners[0]] * 4, rel=2e-3)


def test_an_interruption_ends_a_search_and_lasts_until_resumed(make):
    player = make(PlayOptions(seconds=600.0))
    player.warm_up()
    timer = threading.Timer(0.2, player.interrupt)
    timer.start()
    begin = time.perf_counter()
    assert player.genmove(BLACK) > 0
    assert player.genmove(WHITE) > 0
    assert time.perf_counter() - begin < 3.0
    player.resume()
    timer.join()


def test_sizes_are_those_of_the_network(make, tiny_network):
    player = make(network=tiny_network)
    for size in (6, 10, 26):
        with pytest.raises(ValueError, match=f"unacceptable size: {size}, the network tiny plays 7 to 9"):
            player.new_game(size)
    player.new_game(7)
    assert player.genmove(BLACK) > 0
    with pytest.raises(ValueError, match="unacceptable size: 19"):
        make(network=tiny_network, size=19)
    with pytest.raises(ValueError, match="unacceptable size"):
        player.load_sgf(b"(;GM[1]SZ[19];B[dd])")
    assert (player.game.size, player.game.n_moves) == (7, 1)


def test_where_any_size_is_wanted_the_network_stands_aside(make, tiny_network):
    """On boards it does not play rollouts do; back on its own it plays again, with the options set meanwhile."""
    player = make(PlayOptions(visits=8), network=tiny_network, size=5, any_size=True)
    assert player.server is None
    assert player.genmove(BLACK) > 0
    with pytest.raises(ValueError, match="tiny plays boards of 7 to 9, not 5"):
        player.raw_opinion(BLACK, 0, 0.0)
    player.configure(player.options, replace(player.search_options, c_puct=2.0))
    player.new_game(9)
    assert player.server.spec.name == "tiny"
    assert player.genmove(BLACK) > 0
    player.load_sgf(b"(;GM[1]SZ[13];B[dd])")
    assert player.server is None
    assert player.genmove(WHITE) > 0
    with pytest.raises(ValueError, match="unacceptable size: 26, expected 2 to 25"):
        player.new_game(26)
    assert (player.game.size, player.game.n_moves) == (13, 2)


@pytest.mark.parametrize("rules", ["chinese", "tromp-taylor", "japanese"])
@pytest.mark.parametrize("color", [BLACK, WHITE])
def test_a_game_ends(make, rules, color):
    """Whatever the rules and whoever begins, both pass within twice the board."""
    player = make(PlayOptions(visits=16, seconds=0.0, resign_below=-1.0), rules=rules, size=5)
    while not player.game.is_over and player.game.n_moves < 50:
        assert player.genmove(color) != RESIGN
        color = other(color)
    assert player.game.is_over


@pytest.mark.parametrize(("rules", "lead"), [("chinese", "B+8.5"), ("japanese", "B+4.5"), ("aga", "B+8.5")])
@pytest.mark.parametrize("opponent_passed", [False, True])
def test_where_dead_stones_are_agreed_upon_a_settled_game_is_passed(make, rules, lead, opponent_passed):
    player = position(make(rules=rules, komi=6.5), DEAD_STONES, WHITE if opponent_passed else BLACK)
    if opponent_passed:
        player.play(WHITE, PASS)
    assert player.genmove(BLACK) == PASS
    assert player.final_score() == lead


@pytest.mark.parametrize("to_move", [BLACK, WHITE])
def test_under_strict_rules_dead_stones_are_captured_before_passing(make, to_move):
    player = position(make(rules="tromp-taylor", komi=6.5), DEAD_STONES, to_move)
    assert final_score_black(player.game.position) < 0
    color = to_move
    while not player.game.is_over and player.game.n_moves < 60:
        if color == WHITE:
            player.play(WHITE, PASS)
        else:
            player.genmove(BLACK)
        color = other(color)
    assert player.game.is_over
    assert final_score_black(player.game.position) > 0


IN_ATARI = """
    X X O O O X . . .
    X O O O X X X . .
    X X O O O O X . .
    X . X O O X . X .
    X X X X O X X . .
    . X O O O X O X .
    X X O O . O O X X
    X O . O . . O O X
    O O O . O . O . O
"""
"""From a game against GNU Go 3.8: White to move after Black's pass, two and a half points ahead, J1 in atari."""


def test_a_chain_left_in_atari_is_protected_before_the_game_ends(make):
    player = position(make(PlayOptions(visits=4000, seconds=0.0)), IN_ATARI, BLACK)
    player.play(BLACK, PASS)
    assert to_vertex(player.genmove(WHITE), 9) == "H1"


def test_a_lost_game_is_ended_too(make):
    player = position(make(rules="tromp-taylor", komi=40.5), DEAD_STONES, WHITE)
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) == PASS


WALLS = "\n".join([". . X X O O . . ."] * 4 + [". O X X O O . . ."] + [". . X X O O . . ."] * 4)
"""Black has 36 points, White 45; random games still win this one time in ten"""


@pytest.mark.parametrize("seed", range(8))
def test_a_lost_and_settled_game_is_passed_by_the_shallowest_search(make, seed):
    """With a handful of rollouts behind it, the search's hope is chance."""
    player = position(make(PlayOptions(visits=2 + seed, seconds=0.0), seed=seed), WALLS, BLACK)
    assert player.genmove(BLACK) == PASS


@pytest.mark.parametrize(("komi", "passes"), [(81.0, 1), (7.0, 2 * 81 + 1)])
def test_an_open_game_is_ended_where_it_is_hopeless_or_endless(make, komi, passes):
    """Under friendly pass rules the side that is behind may play on after a pass, but not for ever."""
    player = position(make(PlayOptions(visits=400, seconds=0.0, resign_below=-1.0), komi=komi), IN_ATARI, WHITE)
    color = WHITE
    for _ in range(passes):
        player.play(color, PASS)
        color = other(color)
    assert color == BLACK
    assert player.genmove(BLACK) == PASS


def test_the_side_that_is_behind_keeps_an_open_game_going(make):
    player = make(PlayOptions(visits=400, seconds=0.0, resign_below=-1.0))
    scatter(player, 31, BLACK)
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) != PASS


@pytest.mark.parametrize("rules", ["chinese", "japanese"])
def test_an_early_pass_is_no_reason_to_pass(make, rules):
    """Counted as it stands, the board would be all Black's."""
    player = make(rules=rules)
    player.play(BLACK, from_vertex("E5", 9))
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) > 0


def test_nobody_passes_in_the_opening(make):
    player = make(PlayOptions(visits=1, seconds=0.0), size=7)
    for n in range(12):
        assert player.genmove(BLACK if n % 2 == 0 else WHITE) > 0


@pytest.mark.parametrize("color", [BLACK, WHITE])
@pytest.mark.parametrize("komi", [-50.0, 50.0])
def test_own_eyes_stay(make, color, komi):
    player = position(make(rules="tromp-taylor", komi=komi, size=5), TWO_EYES, color)
    assert player.genmove(color) == PASS


def test_a_finished_game_can_be_resumed(make):
    player = make(rules="tromp-taylor")
    for color, vertex in ((BLACK, "E5"), (WHITE, "pass"), (BLACK, "pass")):
        player.play(color, from_vertex(vertex, 9))
    assert player.game.is_over
    assert player.genmove(WHITE) > 0
    player.undo()
    player.undo()
    assert player.game.n_moves == 2


def scatter(player, count, color):
    """Play isolated stones, colours in turn, to a number of moves: nothing is settled."""
    size = player.game.size
    spread = [point_at(row, column, size) for row in range(size) for column in range(row % 2, size, 2)]
    for point in spread:
        if player.game.n_moves < count and player.game.is_legal(color, point):
            player.play(color, point)
            color = other(color)


@pytest.mark.parametrize(
    ("handicap", "as_moves", "n_moves", "gives_up"),
    [(0, 0, 33, False), (0, 0, 34, True), (2, 0, 67, False), (2, 0, 68, True), (0, 2, 67, False), (0, 2, 68, True)],
)
def test_a_lost_game_is_given_up_but_not_in_the_opening(make, handicap, as_moves, n_moves, gives_up):
    """White waits the longer the more stones it has given; some clients send these as moves."""
    player = make(PlayOptions(visits=200, seconds=0.0, resign_count=1), size=13, komi=-400.0)
    if handicap:
        player.game.fixed_handicap(handicap)
    for point in on_board_points(13).tolist()[:as_moves]:
        player.play(BLACK, point)
    scatter(player, n_moves, WHITE if handicap or as_moves else BLACK)
    assert player.game.n_moves == n_moves
    assert (player.genmove(WHITE) == RESIGN) == gives_up


def test_resigning_takes_as_many_moves_in_a_row_as_asked_for(make):
    player = make(PlayOptions(visits=200, seconds=0.0, resign_count=4), komi=-100.0)
    scatter(player, 20, BLACK)
    for _ in range(3):
        assert player.genmove(WHITE) != RESIGN
    assert player.genmove(WHITE, update=False) != RESIGN
    assert player.genmove(WHITE) == RESIGN
    never = make(PlayOptions(visits=4, seconds=0.0, resign_below=-1.0), komi=-100.0)
    scatter(never, 20, BLACK)
    assert all(never.genmove(WHITE) != RESIGN for _ in range(5))


def test_a_game_replayed_before_each_move_is_given_up_too(make):
    """As gtp2ogs does where several games share an engine; another game's hopeless moves do not count."""
    player = make(PlayOptions(visits=200, seconds=0.0, resign_count=3), komi=-100.0)
    scatter(player, 20, BLACK)
    moves = player.game.moves()

    def asked(moves):
        player.new_game(9)
        for color, point in moves:
            player.play(color, point)
        move = player.genmove(WHITE)
        moves += [(WHITE, move), (BLACK, PASS)]
        return move

    assert RESIGN not in (asked(moves), asked(moves))
    free = [point for point in on_board_points(9).tolist() if point not in {other for _, other in moves}]
    assert asked([(BLACK, free[0]), *moves[1:]]) != RESIGN
    assert asked(moves) != RESIGN
    assert asked(moves) != RESIGN
    assert asked(moves) == RESIGN


def test_games_differ_unless_a_seed_is_chosen(make):
    def game(seed):
        player = make(PlayOptions(visits=30, seconds=0.0, temperature=1.0), seed=seed)
        return [player.genmove(BLACK if n % 2 == 0 else WHITE) for n in range(6)]

    assert len({tuple(game(0)) for _ in range(4)}) > 1
    assert game(5) == game(5)


def test_a_board_of_another_size_is_warm_before_the_clock_runs(make, tiny_network, monkeypatch):
    player = make(PlayOptions(visits=2), network=tiny_network)
    sizes = []
    monkeypatch.setattr(player.server, "warm_up", lambda size, *_: sizes.append(size))
    for size in (8, 9, 8, 7):
        player.new_game(size)
    assert sizes == [8, 7]


def test_one_seed_and_thread_repeat_a_game(make):
    games = []
    for _ in range(2):
        player = make(PlayOptions(visits=30, seconds=0.0, temperature=1.0))
        games.append([player.genmove(BLACK if n % 2 == 0 else WHITE) for n in range(6)])
    assert games[0] == games[1]


def test_status_of_stones(make):
    player = position(make(), DEAD_STONES, BLACK)
    dead = [[to_vertex(point, 9) for point in chain] for chain in player.final_status("dead")]
    assert sorted(dead) == [["B2"], ["B8"]]
    alive = sum(len(chain) for chain in player.final_status("alive"))
    assert alive + 2 == DEAD_STONES.count("X") + DEAD_STONES.count("O")
    assert player.final_status("seki") == []
    with pytest.raises(ValueError, match="syntax error: 'asleep' is no status"):
        player.final_status("asleep")


def test_a_record_brings_komi_and_rules_only_if_it_names_them(make):
    player = make(komi=5.5, rules="japanese")
    player.load_sgf(b"(;GM[1]SZ[9];B[ee];W[cc])")
    assert (player.game.komi, player.game.rules.name, player.game.n_moves) == (5.5, "japanese", 2)
    player.load_sgf(b"(;GM[1]SZ[9]KM[0.5]RU[Chinese];B[ee];W[cc])", n_moves=1)
    assert (player.game.komi, player.game.rules.name, player.game.n_moves) == (0.5, "chinese", 1)
    with pytest.raises(ValueError, match="SGF"):
        player.load_sgf(b"junk")
    assert player.game.n_moves == 1


def test_warming_up_leaves_a_new_game(make):
    player = make(komi=-100.0)
    player.warm_up()
    assert (player.game.n_moves, player.report, player.game.komi) == (0, None, -100.0)


class Lacking(HashNetwork):
    """A network without some heads."""

    def __init__(self, **heads):
        super().__init__(KEIMA.name)
        self.spec = replace(self.spec, name="lacking", **heads)

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        return output._replace(
            policy=output.policy if self.spec.has_policy else None, value=output.value if self.spec.has_value else None
        )


def test_without_values_rollouts_judge(make, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.loading, "load_network", lambda *_: Lacking(has_value=False))
    player = position(make(network=tmp_path, rules="tromp-taylor", komi=6.5), DEAD_STONES, BLACK)
    player.genmove(BLACK)
    assert player.report.evaluations > 0
    assert player.report.value_stm > 0.5


def test_one_lost_rollout_is_no_reason_to_resign(make, monkeypatch, tmp_path):
    """Without search and without values a move rests on a single rollout, which is won or lost."""
    monkeypatch.setattr(engine.loading, "load_network", lambda *_: Lacking(has_value=False))
    player = make(PlayOptions(policy_only=True, resign_count=1), network=tmp_path)
    for n in range(60):
        assert player.genmove(BLACK if n % 2 == 0 else WHITE) != RESIGN


def test_a_network_without_a_policy_is_refused_where_patterns_may_not_stand_in(make, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.loading, "load_network", lambda *_: Lacking(has_policy=False))
    with pytest.raises(ValueError, match="network lacking has no policy: it cannot play without learnt"):
        make(network=tmp_path, uniform_rollouts=True)


def test_networks_that_cannot_play_are_refused(make, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.loading, "load_network", lambda *_: HashNetwork("runes"))
    with pytest.raises(ValueError, match="network hash wants the encoder 'runes', known are keima-1"):
        make(network=tmp_path)


def test_a_network_of_one_komi_says_that_it_is_played_at_another(capsys):
    for encoder, komi, told in (("leela-18", 7.5, 0), ("leela-18", 0.5, 1), ("leela-18", 0.5, 0), ("zero-17", 6.5, 0)):
        server = SimpleNamespace(spec=NetworkSpec("net", encoder, 19, 19))
        engine.loading.warn_of_komi(server, komi)
        assert capsys.readouterr().err.count("knows komi 7.5 alone: at 0.5") == told
