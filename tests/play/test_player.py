"""The player without a front end: budgets, sizes, resignation, records. Rollouts alone unless a test needs more."""

from dataclasses import replace

import pytest

import engine.play.factory
import engine.play.player
import engine.search.worker
from engine.config import PlayOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points, to_vertex
from engine.insight.raw_outputs import evaluation_for
from engine.nets import notices
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetArrays, NetworkSpec
from engine.play.backend import warn_of_komi
from engine.play.clock import absolute, fischer, move_limits
from engine.play.game_session import RESIGN, Purpose
from engine.play.life_and_death import estimate_end
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from tests.clock import stop_the_machines
from tests.playing import DEAD_STONES, WALLS, position, scatter


def test_visits_are_the_budget_that_was_asked_for(make_player):
    player = make_player(PlayOptions(visits=40, seconds=0.0))
    player.genmove(BLACK)
    assert 1 < player.last_genmove_report.visits <= 40


def test_seconds_are(make_player, monkeypatch):
    player = make_player(PlayOptions(seconds=0.3, early_stop=False))
    player.warm_up()
    stop_the_machines(monkeypatch)
    player.genmove(BLACK)
    assert 0.28 < player.last_genmove_report.seconds < 0.32


@pytest.mark.parametrize(
    "kernel", ["select", "prepare_for_network", "take_results", "write_leaf_priors", "complete", "release"]
)
def test_every_kernel_of_the_search_is_used_before_play(make_player, monkeypatch, tiny_network, kernel):
    """One that is not is compiled while the client waits: the first stop of an analysis took 0.4 s."""
    used, compiled = [], getattr(engine.search.worker, kernel)
    monkeypatch.setattr(engine.search.worker, kernel, lambda *args: used.append(kernel) or compiled(*args))
    make_player(network=tiny_network).warm_up()
    assert used


def test_the_clock_overrules_seconds_and_is_charged(make_player, monkeypatch):
    player = make_player(PlayOptions(seconds=60.0))
    player.warm_up()
    player.clock.configure(absolute(4.0))
    hard_s = player.clock.budget(BLACK, 0, 81).hard_s
    clock = stop_the_machines(monkeypatch)
    begin = clock()
    player.genmove(BLACK)
    assert clock() - begin < hard_s + 0.02 < 1.0
    assert player.clock.budget(BLACK, 1, 81).soft_s < player.clock.budget(WHITE, 1, 81).soft_s


def test_on_an_almost_empty_clock_a_move_is_answered_at_once(make_player, monkeypatch):
    player = position(make_player(), WALLS, BLACK)
    player.clock.configure(absolute(600.0))
    player.clock.set_left(BLACK, 0.01, 0)
    estimated = []
    monkeypatch.setattr(
        engine.play.player, "estimate_end", lambda *arguments: estimated.append(1) or estimate_end(*arguments)
    )
    assert player.genmove(BLACK) > 0
    assert (player.last_genmove_report.visits, estimated) == (1, [])
    # Only after a pass there is no moving on without an estimate.
    player.play(WHITE, PASS)
    player.clock.set_left(BLACK, 0.01, 0)
    player.genmove(BLACK)
    assert estimated


@pytest.mark.parametrize("extend_unstable", [True, False])
@pytest.mark.parametrize("early_stop", [True, False])
def test_what_the_clock_allows_reaches_the_search(make_player, monkeypatch, extend_unstable, early_stop):
    player = make_player(PlayOptions(extend_unstable=extend_unstable, early_stop=early_stop))
    player.clock.configure(fischer(60.0, 1.0))
    stop_the_machines(monkeypatch)
    given, run = [], Search.run

    def note(search, limits, *rest):
        given.append(limits)
        return run(search, SearchLimits(visits=9), *rest)

    monkeypatch.setattr(Search, "run", note)
    budget = player.clock.budget(BLACK, 0, 81)
    player.genmove(BLACK)
    (limits,) = given
    assert limits.soft_s == pytest.approx(budget.soft_s, abs=0.2)
    assert limits.hard_s == pytest.approx(budget.hard_s if extend_unstable else budget.soft_s, abs=0.2)
    assert limits.early_stop is early_stop


@pytest.mark.parametrize("options", [PlayOptions(seconds=0.3), PlayOptions(visits=9, seconds=0.0)])
def test_without_a_clock_a_search_goes_on_to_its_limit(options):
    assert move_limits(options, None).early_stop is False


def test_policy_alone_looks_at_one_position(make_player, tiny_network):
    player = make_player(PlayOptions(policy_only=True), network=tiny_network)
    for color in (BLACK, WHITE):
        assert player.genmove(color) > 0
        assert player.last_genmove_report.visits == 1


def test_policy_alone_is_the_mean_over_all_symmetries(make_player, tiny_network):
    """On the empty board it is symmetric, which the network is not."""
    player = make_player(PlayOptions(policy_only=True), network=tiny_network)
    player.genmove(BLACK)
    priors = {move.point: move.prior for move in player.last_genmove_report.moves}
    corners = [priors[from_vertex(vertex, 9)] for vertex in ("C3", "G3", "C7", "G7")]
    assert corners == pytest.approx([corners[0]] * 4, rel=2e-3)


def test_an_interruption_ends_a_search_and_lasts_until_resumed(make_player):
    player = make_player(PlayOptions(seconds=600.0))
    player.warm_up()
    assert player.genmove(BLACK, watcher=Watcher(lambda report: player.interrupt(), 0.01)) > 0
    assert player.genmove(WHITE) > 0
    assert player.last_genmove_report.playouts_this_run <= 1
    player.resume()


def test_sizes_are_those_of_the_network(make_player, tiny_network):
    player = make_player(network=tiny_network)
    for size in (6, 10, 26):
        with pytest.raises(ValueError, match=f"unacceptable size: {size}, the network plays 7 to 9"):
            player.new_game(size)
    player.new_game(7)
    assert player.genmove(BLACK) > 0
    with pytest.raises(ValueError, match="unacceptable size"):
        player.load_sgf(b"(;GM[1]SZ[19];B[dd])")
    assert (player.game.size, player.game.n_moves) == (7, 1)


@pytest.mark.parametrize(("wanted", "begun"), [(19, 9), (8, 8), (2, 7)])
def test_a_player_begins_on_the_nearest_board_of_its_network(make_player, tiny_network, wanted, begun):
    player = make_player(network=tiny_network, size=wanted)
    assert player.game.size == begun
    assert player.genmove(BLACK) > 0


def test_where_any_size_is_wanted_the_network_stands_aside(make_player, tiny_network, capsys):
    """On boards it does not play rollouts do, as a line says; back on its own it plays again, with the options set
    meanwhile."""
    notices.say.cache_clear()
    player = make_player(PlayOptions(visits=8), network=tiny_network, size=5, any_size=True)
    assert player.server is None
    assert player.genmove(BLACK) > 0
    with pytest.raises(ValueError, match="tiny plays boards of 7 to 9, not 5"):
        evaluation_for(player, BLACK, 0, 0.0)
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
    assert capsys.readouterr().err.splitlines() == [
        f"network tiny plays boards of 7 to 9: {size} is played without it, on rollouts and learnt patterns"
        for size in ("5x5", "13x13")
    ]


@pytest.mark.parametrize(
    ("handicap", "as_moves", "n_moves", "gives_up"),
    [(0, 0, 33, False), (0, 0, 34, True), (2, 0, 67, False), (2, 0, 68, True), (0, 2, 67, False), (0, 2, 68, True)],
)
def test_a_lost_game_is_given_up_but_not_in_the_opening(make_player, handicap, as_moves, n_moves, gives_up):
    """White waits the longer the more stones it has given; some clients send these as moves."""
    player = make_player(PlayOptions(visits=200, seconds=0.0, resign_count=1), size=13, komi=-400.0)
    if handicap:
        player.game.fixed_handicap(handicap)
    for point in on_board_points(13).tolist()[:as_moves]:
        player.play(BLACK, point)
    scatter(player, n_moves, WHITE if handicap or as_moves else BLACK)
    assert player.game.n_moves == n_moves
    assert (player.genmove(WHITE) == RESIGN) == gives_up


def test_resigning_takes_as_many_moves_in_a_row_as_asked_for(make_player):
    player = make_player(PlayOptions(visits=200, seconds=0.0, resign_count=4), komi=-100.0)
    scatter(player, 20, BLACK)
    for _ in range(3):
        assert player.genmove(WHITE) != RESIGN
    assert player.genmove(WHITE, Purpose.ANSWER) != RESIGN
    assert player.genmove(WHITE) == RESIGN
    never = make_player(PlayOptions(visits=4, seconds=0.0, resign_below=-1.0), komi=-100.0)
    scatter(never, 20, BLACK)
    assert all(never.genmove(WHITE) != RESIGN for _ in range(5))


def test_a_position_that_is_searched_twice_counts_once_towards_resigning(make_player):
    player = make_player(PlayOptions(visits=200, seconds=0.0, resign_count=3), komi=-100.0)
    scatter(player, 20, BLACK)
    for _ in range(2):
        assert player.genmove(WHITE, Purpose.PROPOSE) != RESIGN
        assert player.genmove(WHITE) != RESIGN
    assert player.genmove(WHITE, Purpose.PROPOSE) == RESIGN


def test_a_position_set_up_is_a_game_of_its_own_for_the_clock(make_player):
    player = make_player()
    player.clock.configure(absolute(100.0))
    full = player.clock.budget(BLACK, 0, 81)
    player.clock.spend(BLACK, 90.0)
    assert player.clock.budget(BLACK, 0, 81) != full
    player.set_up([], [], BLACK)
    assert player.clock.budget(BLACK, 0, 81) == full


def test_a_game_replayed_before_each_move_is_given_up_too(make_player):
    """As gtp2ogs does where several games share an engine; another game's hopeless moves do not count."""
    player = make_player(PlayOptions(visits=200, seconds=0.0, resign_count=3), komi=-100.0)
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
    free = [point for point in on_board_points(9).tolist() if point not in {used for _, used in moves}]
    assert asked([(BLACK, free[0]), *moves[1:]]) != RESIGN
    assert asked(moves) != RESIGN
    assert asked(moves) != RESIGN
    assert asked(moves) == RESIGN


@pytest.mark.parametrize("rules", ["chinese", "tromp-taylor", "japanese"])
def test_passes_of_a_lost_game_count_towards_resigning(make_player, rules):
    """All that is left to Black is to pass, again and again, while White plays on inside its own area."""
    player = make_player(PlayOptions(visits=200, seconds=0.0, resign_count=3), rules=rules, komi=40.5)
    position(player, WALLS, BLACK)
    scattered = [from_vertex(vertex, 9) for vertex in ("H8", "H5", "H2", "J7")]
    for _ in range(17):
        player.play(BLACK, PASS)
        player.play(WHITE, PASS)
    moves = []
    for point in scattered:
        moves.append(player.genmove(BLACK))
        if moves[-1] == RESIGN:
            break
        player.play(WHITE, point)
    assert moves == [PASS, PASS, RESIGN]
    assert player.genmove(WHITE) != RESIGN


def test_a_won_game_is_never_given_up_where_the_plan_needs_no_search(make_player):
    player = position(make_player(PlayOptions(visits=200, seconds=0.0, resign_count=1), komi=0.5), WALLS, BLACK)
    for _ in range(17):
        player.play(BLACK, PASS)
        player.play(WHITE, PASS)
    assert player.genmove(WHITE) == PASS and player.last_genmove_report is None


def test_games_differ_unless_a_seed_is_chosen(make_player):
    def game(seed):
        player = make_player(PlayOptions(visits=30, seconds=0.0, temperature=1.0), seed=seed)
        return [player.genmove(BLACK if n % 2 == 0 else WHITE) for n in range(6)]

    assert len({tuple(game(0)) for _ in range(4)}) > 1
    assert game(5) == game(5)


def test_a_board_of_another_size_is_warm_before_the_clock_runs(make_player, tiny_network, monkeypatch):
    player = make_player(PlayOptions(visits=2), network=tiny_network)
    sizes = []
    monkeypatch.setattr(player.server, "warm_up", lambda size, *_: sizes.append(size))
    for size in (8, 9, 8, 7):
        player.new_game(size)
    assert sizes == [8, 7]


def test_one_seed_and_thread_repeat_a_game(make_player):
    games = []
    for _ in range(2):
        player = make_player(PlayOptions(visits=30, seconds=0.0, temperature=1.0))
        games.append([player.genmove(BLACK if n % 2 == 0 else WHITE) for n in range(6)])
    assert games[0] == games[1]


def test_the_policy_alone_is_not_told_what_an_analysis_found(make_player, tiny_network):
    player = make_player(PlayOptions(policy_only=True), network=tiny_network)
    chosen = player.genmove(BLACK, Purpose.ANSWER)
    player.configure(PlayOptions(visits=300, seconds=0.0), player.search_options)
    player.genmove(BLACK, Purpose.ANSWER)
    player.configure(PlayOptions(policy_only=True), player.search_options)
    player.look(BLACK, 300)
    assert player.genmove(BLACK, Purpose.ANSWER) == chosen
    assert player.last_genmove_report.visits == 1


def test_status_of_stones(make_player):
    player = position(make_player(), DEAD_STONES, BLACK)
    dead = [[to_vertex(point, 9) for point in chain] for chain in player.final_status("dead")]
    assert sorted(dead) == [["B2"], ["B8"]]
    alive = sum(len(chain) for chain in player.final_status("alive"))
    assert alive + 2 == DEAD_STONES.count("X") + DEAD_STONES.count("O")
    assert player.final_status("seki") == []
    with pytest.raises(ValueError, match="syntax error: 'asleep' is no status"):
        player.final_status("asleep")


def test_a_record_brings_komi_and_rules_only_if_it_names_them(make_player):
    player = make_player(komi=5.5, rules="japanese")
    player.load_sgf(b"(;GM[1]SZ[9];B[ee];W[cc])")
    assert (player.game.komi, player.game.rules.name, player.game.n_moves) == (5.5, "japanese", 2)
    player.load_sgf(b"(;GM[1]SZ[9]KM[0.5]RU[Chinese];B[ee];W[cc])", n_moves=1)
    assert (player.game.komi, player.game.rules.name, player.game.n_moves) == (0.5, "chinese", 1)
    with pytest.raises(ValueError, match="SGF"):
        player.load_sgf(b"junk")
    assert player.game.n_moves == 1


def test_rules_of_a_record_that_are_not_known_are_named(make_player, capfd):
    notices.say.cache_clear()
    player = make_player(rules="japanese")
    player.load_sgf(b"(;GM[1]SZ[9]RU[Martian\nones];B[ee])")
    assert player.game.rules.name == "japanese"
    assert "SGF: no rules are called 'Martian ones': japanese stay in force\n" in capfd.readouterr().err


def test_warming_up_leaves_a_new_game(make_player):
    player = make_player(komi=-100.0)
    player.warm_up()
    assert (player.game.n_moves, player.last_genmove_report, player.game.komi) == (0, None, -100.0)


class Lacking(HashNetwork):
    """A network without some heads."""

    def __init__(self, *heads):
        super().__init__(KEIMA.name)
        self.spec = replace(self.spec, name="lacking", heads=heads)

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        return NetArrays(**{name: getattr(output, name) for name in self.spec.heads})


def test_without_values_rollouts_judge(make_player, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.play.factory, "load_network", lambda *_: Lacking("policy", "score", "ownership"))
    player = position(make_player(network=tmp_path, rules="tromp-taylor", komi=6.5), DEAD_STONES, BLACK)
    player.genmove(BLACK)
    assert player.last_genmove_report.evaluations > 0
    assert player.last_genmove_report.value_stm > 0.5


def test_one_lost_rollout_is_no_reason_to_resign(make_player, monkeypatch, tmp_path):
    """Without search and without values a move rests on a single rollout, which is won or lost."""
    monkeypatch.setattr(engine.play.factory, "load_network", lambda *_: Lacking("policy", "score", "ownership"))
    player = make_player(PlayOptions(policy_only=True, resign_count=1), network=tmp_path)
    for n in range(60):
        assert player.genmove(BLACK if n % 2 == 0 else WHITE) != RESIGN


def test_a_network_without_a_policy_is_refused_where_patterns_may_not_stand_in(make_player, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.play.factory, "load_network", lambda *_: Lacking("value", "score", "ownership"))
    with pytest.raises(ValueError, match="network lacking has no policy: it cannot play without learnt"):
        make_player(network=tmp_path, uniform_rollouts=True)


def test_networks_that_cannot_play_are_refused(make_player, monkeypatch, tmp_path):
    monkeypatch.setattr(engine.play.factory, "load_network", lambda *_: HashNetwork("runes"))
    with pytest.raises(ValueError, match="network hash wants the encoder 'runes', known are keima-2"):
        make_player(network=tmp_path)


def test_a_network_of_one_komi_says_that_it_is_played_at_another(capsys):
    for encoder, komi, told in (("leela-18", 7.5, 0), ("leela-18", 0.5, 1), ("leela-18", 0.5, 0), ("zero-17", 6.5, 0)):
        warn_of_komi(NetworkSpec("net", encoder, 19, 19), komi)
        assert capsys.readouterr().err.count("knows komi 7.5 alone: at 0.5") == told
