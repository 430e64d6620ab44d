"""One game: every way to lose it, the clocks, the referee and the scores."""

import pytest

from bench.match.folder import GameRecord
from bench.match.gtp_client import EngineDied, EngineGarbled, EngineRefused, EngineTimeout
from bench.match.play import GameSettings, MatchError, lead_black, play_game, scores_alike
from bench.match.summary import summarise
from engine.go.geometry import BLACK, WHITE, from_vertex
from engine.play.clock import absolute, byoyomi, canadian, fischer
from tests.bench.players import InProcess

SMALL = GameSettings(size=5, komi=3.5)


def play(first, second, settings=SMALL, first_color="black", referee=None, opening=()):
    """Play one game; the record and the final board."""
    record = GameRecord(1, first_color, {"first": "A", "second": "B"}, [])
    order = (first, second) if first_color == "black" else (second, first)
    game = play_game(record, dict(zip((BLACK, WHITE), order, strict=True)), referee, settings, opening)
    return record, game


@pytest.mark.parametrize("first_color", ["black", "white"])
def test_a_game_is_played_to_two_passes_and_scored(first_color):
    record, game = play(InProcess(seed=1), InProcess(seed=2), first_color=first_color)
    assert game.is_over
    assert record.reason == "score"
    assert record.moves[-2:] == ["pass", "pass"]
    assert record.scores["first"] == record.scores["second"] == record.result
    black_won = record.result.startswith("B+")
    assert record.winner == ("first" if black_won == (first_color == "black") else "second")
    assert scores_alike(record)


def test_handicap_stones_are_on_every_board_and_white_begins():
    settings = GameSettings(size=9, komi=0.5, handicap=4, max_moves=20)
    first, second, referee = (InProcess(seed=seed) for seed in (1, 2, 3))
    record, game = play(first, second, settings, "white", referee)
    assert (game.handicap, game.moves()[0][0], record.opening) == (4, WHITE, 0)
    for client in (first, second, referee):
        assert client.engine.game.start_stones() == game.start_stones()
    assert set(record.scores) == {"first", "second", "referee"}


class Ruled(InProcess):
    """Lists commands for rules, and refuses some."""

    def __init__(self, *refused: str, **more) -> None:
        super().__init__(**more)
        self.refused = refused

    def ask(self, command: str, limit_s: float) -> str:
        name = command.split()[0]
        if name not in ("kata-set-rules", "kgs-rules"):
            return super().ask(command, limit_s)
        self.heard.append(command)
        if name in self.refused:
            raise EngineRefused("unknown rules")
        return ""

    def lists(self, command: str, limit_s: float) -> bool:
        return command in ("kata-set-rules", "kgs-rules") or super().lists(command, limit_s)


def test_players_and_referee_are_told_the_rules_in_the_words_that_they_take():
    settings = GameSettings(size=5, komi=3.5, rules="japanese", max_moves=4)
    first, second, referee = Ruled(seed=1), Ruled("kata-set-rules", seed=2), Ruled(seed=3)
    play(first, second, settings, referee=referee)
    told = [[line for line in one.heard if "rules" in line] for one in (first, second, referee)]
    assert told[0] == told[2] == ["kata-set-rules japanese"]
    assert told[1] == ["kata-set-rules japanese", "kgs-rules japanese"]


@pytest.mark.parametrize("first_color", ["black", "white"])
@pytest.mark.parametrize(
    ("habit", "reason", "letter"),
    [
        ("crash", "breakdown", "F"),
        ("hang", "no answer", "F"),
        ("illegal", "illegal move", "F"),
        ("refuse", "refused a legal move", "F"),
        ("resign", "resignation", "R"),
    ],
)
def test_a_bad_habit_loses_and_is_named(habit, reason, letter, first_color):
    record, _ = play(InProcess(habit), InProcess(seed=2), first_color=first_color)
    winner = "W" if first_color == "black" else "B"
    assert (record.winner, record.reason, record.result) == ("second", reason, f"{winner}+{letter}")


def test_a_suicide_is_illegal_under_chinese_rules_and_legal_under_tromp_taylor():
    opening = [from_vertex(vertex, 5) for vertex in ("A2", "pass", "B2", "pass", "C1", "A1", "E5")]
    scripted = InProcess()
    scripted.engine.genmove = lambda color: "B1"
    record, _ = play(InProcess(), scripted, opening=opening)
    assert (record.winner, record.reason) == ("first", "illegal move")
    assert record.detail == "B1 as move 8, under chinese rules"
    settings = GameSettings(size=5, komi=3.5, rules="tromp-taylor", max_moves=8)
    record, game = play(InProcess(), scripted, settings, opening=opening)
    assert (record.reason, game.captures(BLACK)) == ("move limit", 2)
    assert record.opening == 7


def test_a_vertex_off_the_board_is_illegal():
    player = InProcess()
    player.engine.genmove = lambda color: "T19"
    assert play(player, InProcess())[0].reason == "illegal move"


def test_genmove_refused_loses():
    assert play(Failing("genmove", EngineRefused("no idea")), InProcess())[0].reason == "no move"


def test_scores_that_name_different_winners_give_no_result():
    record, _ = play(InProcess("liar", seed=1), InProcess("liar", seed=2))
    assert (record.winner, record.result, record.reason) == (None, "?", "disagreement")
    assert record.detail == "first says B+99, second says W+99"
    assert scores_alike(record) is False


def test_the_referee_settles_scores_and_legality():
    referee = InProcess()
    record, _ = play(InProcess("liar", seed=1), InProcess("liar", seed=2), referee=referee)
    assert record.reason == "score"
    assert record.result == record.scores["referee"]
    assert len([command for command in referee.heard if command.startswith("play")]) == len(record.moves)
    record, _ = play(InProcess("illegal"), InProcess(), referee=InProcess())
    assert (record.winner, record.reason) == ("second", "illegal move")
    assert "referee says illegal move" in record.detail


class Failing(InProcess):
    """Fails at the first command that begins with a word."""

    def __init__(self, word: str, failure: Exception) -> None:
        super().__init__()
        self.word, self.failure = word, failure

    def ask(self, command, limit_s):
        if command.startswith(self.word):
            raise self.failure
        return super().ask(command, limit_s)


@pytest.mark.parametrize(
    ("word", "failure", "message"),
    [
        ("play", EngineDied("engine ended"), "referee: engine ended"),
        ("boardsize", EngineRefused("too small"), "referee does not take these settings: too small"),
        ("final_score", EngineRefused("who knows"), "referee gives no score: who knows"),
    ],
)
def test_a_referee_that_fails_ends_the_match(word, failure, message):
    with pytest.raises(MatchError, match=message):
        play(InProcess(seed=1), InProcess(seed=2), referee=Failing(word, failure))


@pytest.mark.parametrize("word", ["boardsize", "komi", "time_settings"])
def test_settings_an_engine_refuses_end_the_match(word):
    settings = GameSettings(size=5, time=absolute(10.0))
    with pytest.raises(MatchError, match="A does not take these settings: no"):
        play(Failing(word, EngineRefused("no")), InProcess(), settings)


def test_one_players_word_settles_nothing():
    record, _ = play(Failing("final_score", EngineRefused("cannot score")), InProcess(seed=2))
    assert (record.reason, record.winner) == ("no score", None)
    assert record.detail == f"first says failed: cannot score, second says {record.scores['second']}"


@pytest.mark.parametrize("first_color", ["black", "white"])
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (EngineDied("engine ended"), "breakdown"),
        (EngineGarbled("answer without end"), "breakdown"),
        (EngineTimeout("no answer to 'final_score' in time"), "no answer"),
    ],
)
def test_an_engine_that_breaks_down_at_the_score_loses(failure, reason, first_color):
    record, game = play(Failing("final_score", failure), InProcess(seed=2), first_color=first_color)
    winner = "W" if first_color == "black" else "B"
    assert game.is_over
    assert (record.winner, record.reason, record.result) == ("second", reason, f"{winner}+F")
    assert record.detail == str(failure)
    (fault,) = summarise([record], {})["faults"]
    assert fault["by"] == "first"


def test_a_referee_scores_the_game_of_an_engine_that_breaks_down_at_the_score():
    failing = Failing("final_score", EngineDied("engine ended"))
    record, _ = play(failing, InProcess(seed=2), referee=InProcess(seed=3))
    assert (record.reason, record.result) == ("score", record.scores["referee"])
    assert "first says failed: engine ended" in record.detail


def test_no_game_is_won_where_both_break_down_at_the_score():
    failing = [Failing("final_score", EngineDied("engine ended")) for _ in range(2)]
    assert play(*failing)[0].reason == "no score"


def test_endless_words_of_an_engine_are_cut_in_the_record():
    record, _ = play(Failing("genmove", EngineRefused("no idea " * 100_000)), InProcess())
    assert record.detail.startswith("genmove answered: no idea") and len(record.detail) < 1000
    record, _ = play(Failing("final_score", EngineRefused("no idea " * 100_000)), InProcess())
    assert len(record.scores["first"]) < 1000


def test_a_game_beyond_the_limit_is_scored_as_it_stands():
    record, game = play(InProcess(seed=1), InProcess(seed=2), GameSettings(size=5, komi=3.5, max_moves=6))
    assert (record.reason, game.n_moves, record.winner is not None) == ("move limit", 6, True)


def test_an_integer_komi_may_end_in_a_draw():
    settings = GameSettings(size=5, komi=0.0)
    record, _ = play(InProcess(passes_after=0), InProcess(passes_after=0), settings)
    assert (record.winner, record.result) == ("draw", "0")


def test_lines_that_are_no_gtp_are_counted_a_game_at_a_time():
    noisy = InProcess(seed=1)
    noisy.stray_lines = 7
    record, _ = play(noisy, InProcess(seed=2))
    assert record.stray_lines == {"first": 7, "second": 0}
    assert noisy.stray_lines == 0


def test_clocks_are_told_and_kept():
    settings = GameSettings(size=5, komi=3.5, time=canadian(1.0, 2.0, 2), max_moves=10)
    first = InProcess(seed=1, answer_s=0.4)
    record, _ = play(first, InProcess(seed=2, answer_s=0.0), settings)
    assert "time_settings 1 2 2" in first.heard
    assert first.times_left() == ["1 0", "0 0", "0 0", "1 1", "2 2"]
    assert record.reason == "move limit"
    assert record.slowest_s["first"] == 0.4
    assert record.spent_s["first"] == 2.0


@pytest.mark.parametrize(
    ("control", "lists", "settings", "left"),
    [
        (byoyomi(1, 2, 3), ("kata-time_settings", "kgs-time_settings"), "kata-time_settings byoyomi 1 2 3", "0.6 0"),
        (byoyomi(1, 2, 3), ("kgs-time_settings",), "kgs-time_settings byoyomi 1 2 3", "0 0"),
        (byoyomi(1, 2, 3), (), "time_settings 5 2 1", "4 0"),
        (fischer(2, 1), ("kata-time_settings",), "kata-time_settings fischer 2 1", "2.6 0"),
        (fischer(2, 1), ("kgs-time_settings",), "time_settings 1 1 1", "1 0"),
    ],
)
def test_an_engine_is_told_of_the_clock_by_the_best_command_it_lists(control, lists, settings, left):
    first = InProcess(seed=1, answer_s=0.4)
    first.lists = lambda command, limit_s: command in (*lists, "kata-list_time_settings", "time_settings", "time_left")
    play(first, InProcess(seed=2), GameSettings(size=5, komi=3.5, time=control, max_moves=4))
    assert [command for command in first.heard if "_settings " in command] == [settings]
    assert first.times_left()[1] == left


def test_byoyomi_and_fischer_flags_fall_and_oversteppings_are_noted():
    settings = GameSettings(size=5, komi=3.5, time=byoyomi(1, 1, 2), tolerance_s=0.5, max_moves=8)
    record, _ = play(InProcess(seed=1, answer_s=0.9), InProcess(seed=2, answer_s=2.3), settings)
    assert (record.reason, record.result, record.detail) == ("time", "B+T", "move 4 took 2.30 s")
    assert record.overrun_s == {"first": 0.0, "second": 1.3}
    settings = GameSettings(size=5, komi=3.5, time=fischer(1, 1), tolerance_s=0.5, max_moves=8)
    record, _ = play(InProcess(seed=1, answer_s=1.0), InProcess(seed=2, answer_s=1.05), settings)
    assert record.reason == "move limit"
    assert record.overrun_s == {"first": 0.0, "second": 0.2}, "what is forgiven adds up"


def test_a_fallen_flag_loses():
    settings = GameSettings(size=5, time=absolute(10.0), tolerance_s=0.5)
    record, _ = play(InProcess(seed=1, answer_s=3.6), InProcess(seed=2), settings)
    assert (record.reason, record.result, record.detail) == ("time", "W+T", "move 5 took 3.60 s")
    record, _ = play(InProcess("hang"), InProcess(seed=2), settings)
    assert (record.reason, record.result) == ("time", "W+T")
    assert record.overrun_s["first"] == 1.5, "it was waited for so long beyond its clock"


def test_a_clock_that_an_engine_cannot_be_told_ends_the_match():
    settings = GameSettings(size=5, time=fischer(10.0, 1.0, move_s=5.0))
    with pytest.raises(MatchError, match="A: time_settings does not support fischer-capped time"):
        play(InProcess(seed=1), InProcess(seed=2), settings)


def test_patience_bounds_every_answer_and_the_clock_bounds_moves():
    settings = GameSettings(size=5, time=absolute(10.0), tolerance_s=0.5, patience_s=77.0, max_moves=2)
    player = InProcess()
    play(player, InProcess(), settings)
    limits = dict(zip(player.heard, player.limits_s, strict=True))
    assert limits["genmove black"] == 11.5
    assert limits["final_score"] == limits["clear_board"] == 77.0


@pytest.mark.parametrize(
    ("text", "lead"),
    [("B+3.5", 3.5), ("w+10", -10.0), ("0", 0.0), ("Draw", 0.0), ("B+R", None), ("", None), ("B+", None), ("?", None)],
)
def test_scores_are_read(text, lead):
    assert lead_black(text) == lead
