"""What GoGui asks of an engine beside GTP: positions set up at once, interruption, the rules of the game, its menus.

One of its commands is left out, ``gogui-rules_board_size``: GoGui asks it of every engine it attaches, and throws the
open game away where the answer is not that game's size. Source: GoGui's manual, "Setup Commands", "Interrupting
Commands", "Rules" and "Analyze Commands".
"""

import json
import os
from collections.abc import Iterable

from engine.go.notation import color_word
from engine.go.points import BLACK, PASS, WHITE
from gtp.commands import arguments, legality
from gtp.host import Host
from gtp.protocol import CommandError, Registry

COMMANDS = Registry()
ANALYZE_COMMANDS = """\
gfx/Policy/keima-policy %c
gfx/Search: visits/keima-search %c
pspairs/Search: score by move/keima-scores %c
varc/Search: best line/keima-pv %c
dboard/Ownership/keima-ownership
gfx/Rollout policy/keima-rollout_policy %c
gfx/Ladders/keima-ladders %c
sboard/Liberties/keima-liberties
string/Heatmap/heatmap
hstring/Raw network output/kata-raw-nn %c 0
string/Estimate score/estimate_score
string/Final score/final_score
plist/Dead stones/final_status_list dead
plist/Stones in seki/final_status_list seki
plist/Legal moves/all_legal %c
varc/Move without playing it/reg_genmove %c
param/Rules/keima-rules
none/Clear tree and cache/clear_cache"""
"""Kind of reply, text of the menu, and command: the form of ``gogui-analyze_commands``"""


@COMMANDS.command("gogui-analyze_commands")
def gogui_analyze_commands(host: Host) -> str:
    """List the commands of GoGui's analyze menu with the kinds of their replies."""
    return ANALYZE_COMMANDS


@COMMANDS.command("gogui-interrupt")
def gogui_interrupt(host: Host) -> None:
    """Promise that the comment line ``# interrupt`` ends a running command."""


@COMMANDS.command("gogui-sigint")
def gogui_sigint(host: Host) -> str:
    """Give the process to send SIGINT to; from now on that signal ends the running command, not the engine."""
    host.sigint_interrupts = True
    return str(os.getpid())


@COMMANDS.command("gogui-title")
def gogui_title(host: Host) -> str:
    """The engine and, once it is loaded, its network, for the title of a window."""
    # GoGui asks before the first move, and offers to end a program that does not answer for seconds.
    server = None if host.is_loading else host.player.server
    return "Keima" if server is None else f"Keima with {server.spec.name}"


@COMMANDS.command("gogui-setup")
def gogui_setup(host: Host, *moves: str) -> None:
    """Put stones on the empty board: pairs of color and vertex."""
    stones, game = arguments.moves(host, moves), host.record.game
    if game.n_moves or game.start_stones():
        raise CommandError("board not empty")
    black, white = ([point for side, point in stones if side == color] for color in (BLACK, WHITE))
    host.record.set_up(black, white, BLACK)


@COMMANDS.command("gogui-setup_player")
def gogui_setup_player(host: Host, color: str) -> None:
    """Set the side to move of a position that was set up."""
    side, game = arguments.color(color), host.record.game
    if game.n_moves:
        raise CommandError("the game has begun")
    stones = game.start_stones()
    black, white = ([point for point, owner in stones.items() if owner == one] for one in (BLACK, WHITE))
    host.record.set_up(black, white, side)


@COMMANDS.command("gogui-play_sequence")
def gogui_play_sequence(host: Host, *moves: str) -> None:
    """Play moves, given as pairs of color and vertex: all of them, or none if one is illegal."""
    played = 0
    try:
        for side, point in arguments.moves(host, moves):
            host.record.play(side, point)
            played += 1
    except ValueError:
        for _ in range(played):
            host.record.undo()
        raise


@COMMANDS.command("keima-rules")
def keima_rules(host: Host, key: str = "", value: str = "") -> str:
    """Rule set and flags in force, as GoGui's dialog of parameters has them; one of them and a value: change it."""
    from engine.go.rules import CUSTOM, KATAGO_KEYS, RULE_SETS, rules_json, rules_named, with_flag

    rules = host.record.game.rules
    if key and not value:
        raise CommandError("syntax error: expected keima-rules [KEY VALUE]")
    if key:
        # GoGui sends flags after the name where it brings back what it has saved.
        if (key, value) != ("rules", CUSTOM):
            host.record.set_rules(rules_named(value) if key == "rules" else with_flag(rules, key, value))
        return ""
    choices: dict[str, tuple[object, Iterable[object]]] = {
        "rules": (rules.name, dict.fromkeys([rules.name, *RULE_SETS]))
    }
    choices |= {flag: (now, KATAGO_KEYS[flag][1]) for flag, now in json.loads(rules_json(rules)).items()}
    return "\n".join(
        f"[list/{'/'.join(map(_lower, values))}] {name} {_lower(now)}" for name, (now, values) in choices.items()
    )


def _lower(value: object) -> str:
    """A rule set or the value of a flag as GoGui shows it with a capital."""
    return str(value).lower()


@COMMANDS.command("gogui-rules_game_id")
def gogui_rules_game_id(host: Host) -> str:
    """The game that is played."""
    return "Go"


@COMMANDS.command("gogui-rules_board")
def gogui_rules_board(host: Host) -> str:
    """The stones as a board of X (black), O (white) and points."""
    from engine.go.geometry import on_board_points

    size, cells = host.keeper.game.size, host.keeper.game.position.board.color
    signs = [".XO"[cell] for cell in cells[on_board_points(size)]]
    return "\n" + "\n".join(" ".join(signs[row : row + size]) for row in range(0, size * size, size))


@COMMANDS.command("gogui-rules_side_to_move")
def gogui_rules_side_to_move(host: Host) -> str:
    """The side to move."""
    return color_word(host.record.game.to_move)


@COMMANDS.command("gogui-rules_legal_moves")
def gogui_rules_legal_moves(host: Host) -> str:
    """List the legal moves of the side to move, the pass among them; nothing when the game is over."""
    game = host.keeper.game
    return "" if game.is_over else arguments.vertices(host, [*legality.legal_points(host, game.to_move), PASS])


@COMMANDS.command("gogui-rules_captured_count")
def gogui_rules_captured_count(host: Host) -> str:
    """The stones that Black and White have taken."""
    return " ".join(str(host.keeper.game.captures(color)) for color in (BLACK, WHITE))


@COMMANDS.command("gogui-rules_final_result")
def gogui_rules_final_result(host: Host) -> str:
    """The result of the position on the board as a sentence."""
    winner, _, points = host.player.final_score().partition("+")
    return f"{'Black' if winner == 'B' else 'White'} wins by {points} points." if points else "The game is a draw."
