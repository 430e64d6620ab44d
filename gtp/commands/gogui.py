"""GoGui's extensions of GTP: set-up of positions, interruption, the rules of the game, and its analyze menu.

``gogui-rules_board_size`` is missing on purpose: GoGui sends it to every attached engine, and discards the open game if
the answer differs from the game's size. Source: GoGui's manual, "Setup Commands", "Interrupting Commands", "Rules" and
"Analyze Commands".
"""

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from engine.go.points import BLACK, PASS, WHITE, color_word
from gtp import gogui
from gtp.commands import arguments
from gtp.commands.position import legal_points
from gtp.gogui import live_graphics
from gtp.host import Host
from gtp.info import caption
from gtp.protocol import CommandError, Registry

if TYPE_CHECKING:
    import numpy as np

    from engine.search.report import MoveReport, Report

COMMANDS = Registry()
ANALYZE_COMMANDS = """\
gfx/Policy/keima-policy %c
gfx/Value after each move/keima-values %c
gfx/Search: visits/keima-search %c
gfx/Search: Q by values/keima-q %c
gfx/Search: Q by rollouts/keima-q_rollouts %c
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
"""Type of reply, menu text and command, in the format of ``gogui-analyze_commands``"""


@COMMANDS.command("gogui-analyze_commands")
def gogui_analyze_commands(host: Host) -> str:
    """List the commands of GoGui's analyze menu and the kinds of their replies; from then on, draw searches live unless
    live-graphics is false.
    """
    host.has_gogui = True
    return ANALYZE_COMMANDS


@COMMANDS.command("gogui-interrupt")
def gogui_interrupt(host: Host) -> None:
    """Announce that the comment line ``# interrupt`` stops a running command."""


@COMMANDS.command("gogui-sigint")
def gogui_sigint(host: Host) -> str:
    """The process id for SIGINT; from then on that signal stops the running command instead of the engine."""
    host.sigint_interrupts = True
    return str(os.getpid())


@COMMANDS.command("gogui-title")
def gogui_title(host: Host) -> str:
    """The window title: the engine and, once it is loaded, its network."""
    # GoGui sends this before the first move, and offers to terminate an engine that takes seconds to answer.
    server = None if host.is_loading else host.player.server
    return "Keima" if server is None else f"Keima with {server.spec.name}"


@COMMANDS.command("gogui-setup")
def gogui_setup(host: Host, *moves: str) -> None:
    """Put stones on the empty board: pairs of color and vertex."""
    stones, game = arguments.moves(host, moves), host.record.game
    if game.n_moves or game.start_stones():
        raise CommandError("board not empty")
    arguments.set_up(host, stones, BLACK)


@COMMANDS.command("gogui-setup_player")
def gogui_setup_player(host: Host, color: str) -> None:
    """Set the side to move of a set-up position."""
    side, game = arguments.color(color), host.record.game
    if game.n_moves:
        raise CommandError("the game has begun")
    arguments.set_up(host, ((owner, point) for point, owner in game.start_stones().items()), side)


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
    """Show the rule set and its flags for GoGui's parameter dialog; with key and value change one."""
    from engine.go.rules import CUSTOM, KATAGO_KEYS, RULE_SETS, rules_json, rules_named, with_flag

    rules = host.record.game.rules
    if key and not value:
        raise CommandError("syntax error: expected keima-rules [KEY VALUE]")
    if key:
        # When GoGui restores saved parameters, it sends the flags after the name.
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
    """The name of a rule set or the value of a flag in lower case; GoGui capitalizes it."""
    return str(value).lower()


@COMMANDS.command("gogui-rules_game_id")
def gogui_rules_game_id(host: Host) -> str:
    """The name of the game."""
    return "Go"


@COMMANDS.command("gogui-rules_board")
def gogui_rules_board(host: Host) -> str:
    """The stones as a board of X (black), O (white) and dots (empty)."""
    from engine.go.geometry import on_board_points

    size, cells = host.game_session.game.size, host.game_session.game.position.board.color
    return gogui.board((".XO"[cell] for cell in cells[on_board_points(size)]), size)


@COMMANDS.command("gogui-rules_side_to_move")
def gogui_rules_side_to_move(host: Host) -> str:
    """The side to move."""
    return color_word(host.record.game.to_move)


@COMMANDS.command("gogui-rules_legal_moves")
def gogui_rules_legal_moves(host: Host) -> str:
    """List the legal moves of the side to move, including the pass; none when the game is over."""
    game = host.game_session.game
    return "" if game.is_over else arguments.vertices(host, [*legal_points(host, game.to_move), PASS])


@COMMANDS.command("gogui-rules_captured_count")
def gogui_rules_captured_count(host: Host) -> str:
    """The numbers of stones that Black and White have captured."""
    return " ".join(str(host.game_session.game.captures(color)) for color in (BLACK, WHITE))


@COMMANDS.command("gogui-rules_final_result")
def gogui_rules_final_result(host: Host) -> str:
    """The result of the position on the board as a sentence."""
    winner, _, points = host.player.final_score().partition("+")
    return f"{'Black' if winner == 'B' else 'White'} wins by {points} points." if points else "The game is a draw."


LABELLED = 0.01
"""Minimum probability or share of the visits of a labelled move"""
SHADED = 0.002
"""Minimum probability of a coloured point"""
AGREED = 0.02
"""Maximum difference between a move's share of the visits and its prior up to which the move is not coloured"""


@COMMANDS.command("keima-policy")
def keima_policy(host: Host, color: str = "") -> str:
    """Colour the moves by the network's policy, in percent; without a network by the tree policy."""
    from engine.insight.overlays import policy

    side = arguments.optional_color(host, color)
    found = policy(host.player, side, 0)
    rate = "" if found.win != found.win else f", win rate {found.win:.1%}"
    return _heat(host, found.probabilities, f"{_name(side)} to move: pass {found.probabilities[-1]:.1%}{rate}")


@COMMANDS.command("keima-rollout_policy")
def keima_rollout_policy(host: Host, color: str = "") -> str:
    """Colour the moves by their probability in a rollout, and label them with it in percent."""
    from engine.insight.overlays import rollout_probabilities

    side = arguments.optional_color(host, color)
    probabilities = rollout_probabilities(host.player.game.position, side, host.player.search_options)
    return _heat(host, probabilities, f"{_name(side)} to move in a rollout")


@COMMANDS.command("keima-search")
def keima_search(host: Host, color: str = "") -> str:
    """Search, and label the moves with their shares of the visits, in percent.

    Green moves have a larger share of the visits than their prior, red ones a smaller one.
    """
    side = arguments.optional_color(host, color)
    report = _report(host, side)
    labels, colors = [], []
    for vertex, move in _on_board(host, report):
        share = move.visits / max(1, report.visits)
        if max(share, move.prior) < LABELLED:
            continue
        labels.append((vertex, f"{100 * share:.0f}"))
        if abs(share - move.prior) > AGREED:
            colors.append(f"COLOR {'green' if share > move.prior else 'red'} {vertex}")
    return gogui.graphic(*colors, f"LABEL {gogui.pairs(labels)}", f"TEXT {caption(report, side == BLACK)}")


@COMMANDS.command("keima-values")
def keima_values(host: Host, color: str = "") -> str:
    """Colour the moves by the network's win rate after each of them, without search, and label the best ones."""
    side = arguments.optional_color(host, color)
    host.player.look(side, visits=1)
    return _rates(host, side, "value", "win rate after each move")


@COMMANDS.command("keima-q")
def keima_q(host: Host, color: str = "") -> str:
    """Search, and colour the moves by their mean value from the network (lambda 0), in percent."""
    side = arguments.optional_color(host, color)
    _report(host, side)
    return _rates(host, side, "q", "mean value of the network below each move")


@COMMANDS.command("keima-q_rollouts")
def keima_q_rollouts(host: Host, color: str = "") -> str:
    """Search, and colour the moves by the mean result of their rollouts (lambda 1), in percent."""
    side = arguments.optional_color(host, color)
    _report(host, side)
    return _rates(host, side, "q-rollouts", "mean result of the rollouts below each move")


@COMMANDS.command("keima-scores")
def keima_scores(host: Host, color: str = "") -> str:
    """Search, and label the moves with their score leads."""
    report = _report(host, arguments.optional_color(host, color))
    scores = [(vertex, move.score_stm) for vertex, move in _on_board(host, report) if move.visits]
    # GoGui shows four characters on a point.
    return gogui.pairs(
        (vertex, f"{score:+.1f}" if abs(score) < 9.95 else f"{score:+.0f}")
        for vertex, score in scores
        if score is not None
    )


@COMMANDS.command("keima-pv")
def keima_pv(host: Host, color: str = "") -> str:
    """Search, and show the principal variation."""
    report = _report(host, arguments.optional_color(host, color))
    return arguments.vertices(host, report.moves[0].pv) if report.moves else ""


@COMMANDS.command("keima-ownership")
def keima_ownership(host: Host) -> str:
    """Show the ownership of every point, from 1 (Black) to -1 (White)."""
    owners = host.player.look(host.game_session.game.to_move, visits=1).ownership_black
    assert owners is not None, "look() computes ownership"
    return gogui.board((f"{value:.3f}" for value in owners.tolist()), host.game_session.game.size)


@COMMANDS.command("keima-liberties")
def keima_liberties(host: Host) -> str:
    """Show the number of liberties of every stone's chain."""
    from engine.insight.overlays import liberties

    found = liberties(host.game_session.game.position.board).tolist()
    return gogui.board((str(count or "") for count in found), host.game_session.game.size)


@COMMANDS.command("keima-ladders")
def keima_ladders(host: Host, color: str = "") -> str:
    """Mark the moves that capture in a ladder by triangles, the moves that escape from a ladder by squares."""
    from engine.insight.overlays import ladders

    side = arguments.optional_color(host, color)
    captures, escapes = ladders(host.game_session.game.position.board, side)
    return gogui.graphic(
        f"TRIANGLE {arguments.vertices(host, captures)}",
        f"SQUARE {arguments.vertices(host, escapes)}",
        f"TEXT {_name(side)} to move: {len(captures)} moves capture in a ladder, {len(escapes)} escape from one",
    )


def _name(color: int) -> str:
    from engine.go.points import color_word

    return color_word(color).capitalize()


def _report(host: Host, color: int) -> "Report":
    """Search with a colour to move, within the limits of a move, and return the report."""
    with live_graphics(host, color) as watcher:
        return host.player.look(color, watcher=watcher)


def _rates(host: Host, color: int, kind: str, text: str) -> str:
    """GoGui's commands for a panel of AlphaGo's Figure 5 with win rates; ``text`` begins the caption."""
    from engine.go.geometry import point_of
    from engine.insight.position_pictures import PANELS, panels_of
    from engine.pictures.panels import NUMBERS, hot

    found, size = panels_of(host.player, [kind])[PANELS[kind][0]], host.player.game.size
    if missing := found.get("missing"):
        raise CommandError(missing)
    hottest = [one for one in hot(found["points"], is_rate=True) if one[0] >= 0]
    vertices = [(arguments.vertices(host, [point_of(index, size)]), rate, heat) for index, rate, heat in hottest]
    return gogui.graphic(
        gogui.shades((vertex, heat**2) for vertex, _, heat in vertices),
        f"LABEL {gogui.pairs((vertex, f'{100 * rate:.0f}') for vertex, rate, _ in vertices[:NUMBERS])}",
        f"TEXT {_name(color)} to move: {text}, in percent ({found['text']})",
    )


def _on_board(host: Host, report: "Report") -> Iterator[tuple[str, "MoveReport"]]:
    """Pairs (vertex, move) for the moves of a report, without the pass."""
    return ((arguments.vertices(host, [move.point]), move) for move in report.moves if move.point != PASS)


def _heat(host: Host, probabilities: "np.ndarray", text: str) -> str:
    """GoGui's commands that colour and label points by probability, with ``text`` as the caption."""
    from engine.go.geometry import on_board_points

    vertices = arguments.vertices(host, on_board_points(host.game_session.game.size).tolist()).split()
    found = list(zip(vertices, probabilities[:-1].tolist(), strict=True))
    return gogui.graphic(
        gogui.shades((vertex, p) for vertex, p in found if p >= SHADED),
        f"LABEL {gogui.pairs((vertex, f'{100 * p:.0f}') for vertex, p in found if p >= LABELLED)}",
        f"TEXT {text}",
    )
