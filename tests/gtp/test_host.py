"""The board before the player has been loaded."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.go.geometry import BLACK
from engine.play.early import EarlySession
from gtp.commands import COMMANDS
from gtp.host import Host
from gtp.protocol import CommandError

SENT = ("boardsize 9", "komi 5.5", "time_settings 0 0 0", "play b e5", "play w c3", "undo", "kata-set-rules aga")


def test_the_board_is_kept_while_the_player_is_loaded_and_then_taken_over(make_player):
    host = Host(COMMANDS)
    host.begin(EarlySession(19))
    assert [COMMANDS.answer(host, line, lambda text: None) for line in SENT] == ["=\n\n"] * len(SENT)
    assert COMMANDS.answer(host, "play w e5", lambda text: None) == "? illegal move\n\n"
    assert COMMANDS.answer(host, "gogui-title", lambda text: None) == "= Keima\n\n"
    player = make_player(size=13)
    host.provide(player)
    assert host.game_session is player and host.player is player
    assert (player.game.size, player.game.komi, player.game.n_moves) == (9, 5.5, 1)
    assert player.game.rules.name == "aga" and player.clock.budget(BLACK, 1, 81) is None
    assert COMMANDS.answer(host, "genmove w", lambda text: None).startswith("= ")


@pytest.mark.parametrize(
    "line", ["time_settings 60 10 1", "kgs-time_settings absolute 1", "kata-time_settings fischer 9 1"]
)
def test_a_clock_is_answered_when_the_player_is_there_for_it_may_run_from_then_on(make_player, line):
    host = Host(COMMANDS)
    host.begin(EarlySession(9))
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(COMMANDS.answer, host, line, lambda text: None)
        with pytest.raises(TimeoutError):
            answer.result(0.1)
        player = make_player()
        host.provide(player)
        assert answer.result() == "=\n\n" and player.clock.budget(BLACK, 1, 81) is not None


def test_a_player_that_cannot_be_loaded_refuses_the_rest():
    host = Host(COMMANDS)
    host.begin(EarlySession(9))
    assert COMMANDS.answer(host, "play b e5", lambda text: None) == "=\n\n"
    host.refuse("no such device")
    assert COMMANDS.answer(host, "play w c3", lambda text: None) == "? no such device\n\n"
    with pytest.raises(CommandError, match="no such device"):
        _ = host.player


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("kata-analyze b 10", "=\n\n"),
        ("7 lz-analyze 10 avoid b E5 2", "=7\n\n"),
        ("cgos-analyze", "=\n\n"),
        ("kata-search_cancellable b", "= cancelled\n\n"),
        ("kata-search_analyze_cancellable b 10", "=\nplay cancelled\n\n"),
    ],
)
def test_what_goes_on_until_the_next_line_ends_with_it_before_the_player_is_there(line, reply):
    """Sabaki's first analysis could not be interrupted for seven seconds."""
    host = Host(COMMANDS)
    host.begin(EarlySession(9))
    assert COMMANDS.is_open_ended(line)
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(COMMANDS.answer, host, line, None)
        with pytest.raises(TimeoutError):
            answer.result(0.1)
        host.interrupt()
        assert answer.result() == reply
    host.resume()
    host.refuse("no player")
    assert COMMANDS.answer(host, line, None).endswith(" no player\n\n")


@pytest.mark.parametrize(
    "line", ["kata-analyze b 10 avoid", "lz-analyze ownership true", "cgos-analyze -1", "kata-search_cancellable x"]
)
def test_arguments_are_refused_before_the_player_is_there(line):
    host = Host(COMMANDS)
    host.begin(EarlySession(9))
    assert COMMANDS.answer(host, line, None).startswith("? ")
