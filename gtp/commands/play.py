"""Moves of the client and the engine, and the end of games on KGS and CGOS.

Sources: kgsGtp's documentation (``kgs-``), KataGo's docs/GTP_Extensions.md (``kata-``), the client in zakki/cgos
(``cgos-``).
"""

import sys

from engine import __version__
from gtp.commands import arguments
from gtp.gogui import live_graphics
from gtp.host import Host
from gtp.info import lz_summary, win_rate
from gtp.protocol import CommandError, Registry, integer

COMMANDS = Registry()
CANCELLED = "cancelled"
"""KataGo's word for the move of a cancelled search"""


@COMMANDS.command("play")
def play(host: Host, color: str, vertex: str) -> None:
    """Play a move for a player, even out of turn, and even if ko or suicide forbids it."""
    host.record.play(arguments.color(color), arguments.vertex(host, vertex))


def _choose(host: Host, color: str, purpose: str) -> str:
    """Choose a move and return its vertex, or ``resign``.

    Args:
        purpose: name of a :class:`engine.play.game_session.Purpose`, which says whether the move is played.
    """
    from engine.play.game_session import RESIGN, Purpose

    side = arguments.color(color)
    with live_graphics(host, side) as watcher:
        move = host.player.genmove(side, Purpose[purpose], watcher, asked_s=host.read_s)
    return "resign" if move == RESIGN else arguments.vertices(host, [move])


@COMMANDS.command("genmove")
def genmove(host: Host, color: str) -> str:
    """Choose and play a move for a player, even out of turn: a vertex, pass or resign."""
    move = _choose(host, color, "PLAY")
    print_summary(host)
    return move


@COMMANDS.command("kgs-genmove_cleanup")
def kgs_genmove_cleanup(host: Host, color: str) -> str:
    """Like genmove, but capture all dead stones of the opponent before passing, and never resign."""
    move = _choose(host, color, "CLEAN_UP")
    print_summary(host)
    return move


@COMMANDS.command("kgs-game_over")
def kgs_game_over(host: Host) -> None:
    """The game is over: stop pondering until the next command."""
    host.stop_pondering()


# Not listed: newer versions of kgsGtp fail where list_commands contains it.
@COMMANDS.command("kgs-chat", is_listed=False)
def kgs_chat(host: Host, kind: str, name: str, *words: str) -> str:
    """Answer a chat message with the engine, its network and its latest win rate."""
    player = host.player
    network = "without a network" if player.server is None else f"with {player.server.spec.name}"
    report = player.last_genmove_report
    text = f"I am Keima {__version__}, a Go engine {network}."
    if report is not None:
        text += f" My win rate was {win_rate(report.value_stm):.1%} at my last move, {report.visits} visits."
    return text


@COMMANDS.command("cgos-opponent_name")
def cgos_opponent_name(host: Host, *name: str) -> None:
    """Write the opponent's name to standard error and the log."""
    print(f"opponent: {' '.join(name)}", file=sys.stderr, flush=True)


@COMMANDS.command("cgos-opponent_rating")
def cgos_opponent_rating(host: Host, *rating: str) -> None:
    """Write the opponent's rating to standard error and the log."""
    print(f"opponent's rating: {' '.join(rating)}", file=sys.stderr, flush=True)


@COMMANDS.command("cgos-gameover")
def cgos_gameover(host: Host, *result: str) -> None:
    """The game is over: write the result to standard error, and stop pondering until the next command."""
    host.stop_pondering()
    print(f"result: {' '.join(result)}", file=sys.stderr, flush=True)


def print_summary(host: Host) -> None:
    """Print a summary of the latest move's search to standard error, if ``search_summary`` is on."""
    player = host.player
    if player.options.search_summary and player.last_genmove_report is not None:
        print(lz_summary(player.last_genmove_report, player.game.size), file=sys.stderr, flush=True)


@COMMANDS.command("reg_genmove")
def reg_genmove(host: Host, color: str) -> str:
    """Choose a move for a player without playing it."""
    return _choose(host, color, "ANSWER")


@COMMANDS.command("kata-search")
def kata_search(host: Host, color: str) -> str:
    """Choose a move as genmove does, without playing it: a vertex, pass or resign."""
    return _choose(host, color, "PROPOSE")


@COMMANDS.command("kata-search_cancellable", open_ended=True)
def kata_search_cancellable(host: Host, color: str) -> str:
    """Like kata-search, but the next line, even an empty one, cancels it: ``cancelled``."""
    arguments.color(color)
    if host.uninterrupted_player is None:
        return CANCELLED
    move = _choose(host, color, "PROPOSE")
    return CANCELLED if host.is_interrupted else move


@COMMANDS.command("restricted_genmove")
def restricted_genmove(host: Host, color: str, *vertices: str) -> str:
    """Choose one of these moves for a player without playing it; pass if none is legal."""
    from engine.play.move_plan import unsearched_move
    from engine.search.move_filter import only

    side, player = arguments.color(color), host.player
    named = only(side, [arguments.vertex(host, vertex) for vertex in vertices])
    with live_graphics(host, side) as watcher:
        moves = player.look(side, moves=named, watcher=watcher).moves
    return arguments.vertices(host, [moves[0].point if moves else unsearched_move(player.game, side, named)])


@COMMANDS.command("undo")
def undo(host: Host) -> None:
    """Undo the last move."""
    host.record.undo()


@COMMANDS.command("gg-undo")
def gg_undo(host: Host, moves: str = "1") -> None:
    """Undo this number of moves, or none if the game has fewer."""
    count = integer(moves)
    if count < 0:
        raise CommandError(f"syntax error: {count} moves, expected 0 or more")
    if count > host.record.game.n_moves:
        raise CommandError("cannot undo")
    for _ in range(count):
        host.record.undo()


@COMMANDS.command("clear_cache")
def clear_cache(host: Host) -> None:
    """Clear the search tree and the result cache; the game stays."""
    host.player.forget()
