"""Policy, search and ownership in the types of reply that GoGui draws.

``gogui-analyze_commands`` lists them. A colour that is not given is the side to move.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gtp import gogui_layout
from gtp.commands import arguments
from gtp.host import Host
from gtp.info import caption
from gtp.live_graphics import live_graphics
from gtp.protocol import Registry

if TYPE_CHECKING:
    import numpy as np

    from engine.search.report import MoveReport, Report

COMMANDS = Registry()
LABELLED = 0.01
"""Share from which a move is labelled"""
SHADED = 0.002
"""Share from which a point is coloured"""
AGREED = 0.02
"""Difference of visits and prior, as shares, that no colour shows"""


@COMMANDS.command("keima-policy")
def keima_policy(host: Host, color: str = "") -> str:
    """Colour the moves by the network's policy, in percent; without a network by the policy of patterns."""
    from engine.insight.overlays import policy

    side = arguments.optional_color(host, color)
    found = policy(host.player, side, 0)
    rate = "" if found.win != found.win else f", win rate {found.win:.1%}"
    return _heat(host, found.probabilities, f"{_name(side)} to move: pass {found.probabilities[-1]:.1%}{rate}")


@COMMANDS.command("keima-rollout_policy")
def keima_rollout_policy(host: Host, color: str = "") -> str:
    """Colour the moves by their probability in a rollout, in percent."""
    from engine.insight.overlays import rollout_probabilities

    side = arguments.optional_color(host, color)
    probabilities = rollout_probabilities(host.player.game.position, side, host.player.search_options)
    return _heat(host, probabilities, f"{_name(side)} to move in a rollout")


@COMMANDS.command("keima-search")
def keima_search(host: Host, color: str = "") -> str:
    """Search, and label the moves with their shares of the visits, in percent.

    Green moves have got more visits than their priors promised, red ones fewer.
    """
    from engine.go.geometry import BLACK

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
    return gogui_layout.graphic(*colors, gogui_layout.labels(labels), f"TEXT {caption(report, side == BLACK)}")


@COMMANDS.command("keima-scores")
def keima_scores(host: Host, color: str = "") -> str:
    """Search, and label the moves with the lead in points that the player expects after them."""
    report = _report(host, arguments.optional_color(host, color))
    scores = [(vertex, move.score_stm) for vertex, move in _on_board(host, report) if move.visits]
    # Four characters at most: no more than GoGui shows on a point.
    return gogui_layout.pairs(
        (vertex, f"{score:+.1f}" if abs(score) < 9.95 else f"{score:+.0f}")
        for vertex, score in scores
        if score is not None
    )


@COMMANDS.command("keima-pv")
def keima_pv(host: Host, color: str = "") -> str:
    """Search, and give the line of best play."""
    report = _report(host, arguments.optional_color(host, color))
    return arguments.vertices(host, report.moves[0].pv) if report.moves else ""


@COMMANDS.command("keima-ownership")
def keima_ownership(host: Host) -> str:
    """Show the probable owner of every point: 1 = Black's, -1 = White's."""
    owners = host.player.look(host.keeper.game.to_move, visits=1).ownership_black
    assert owners is not None, "look() asks for it"
    return gogui_layout.board((f"{value:.3f}" for value in owners.tolist()), host.keeper.game.size)


@COMMANDS.command("keima-liberties")
def keima_liberties(host: Host) -> str:
    """Number the liberties of every stone's chain."""
    from engine.insight.overlays import liberties

    found = liberties(host.keeper.game.position.board).tolist()
    return gogui_layout.board((str(count or "") for count in found), host.keeper.game.size)


@COMMANDS.command("keima-ladders")
def keima_ladders(host: Host, color: str = "") -> str:
    """Mark the moves that capture in a ladder by triangles, those that escape from one by squares."""
    from engine.insight.overlays import ladders

    side = arguments.optional_color(host, color)
    captures, escapes = ladders(host.keeper.game.position.board, side)
    return gogui_layout.graphic(
        gogui_layout.points("TRIANGLE", arguments.vertices(host, captures)),
        gogui_layout.points("SQUARE", arguments.vertices(host, escapes)),
        f"TEXT {_name(side)} to move: {len(captures)} moves capture in a ladder, {len(escapes)} escape from one",
    )


def _name(color: int) -> str:
    from engine.go.notation import color_word

    return color_word(color).capitalize()


def _report(host: Host, color: int) -> "Report":
    """What a search as long as a move's finds for a colour."""
    with live_graphics(host.player, color) as watcher:
        return host.player.look(color, watcher=watcher)


def _on_board(host: Host, report: "Report") -> Iterator[tuple[str, "MoveReport"]]:
    """The moves of a report but for the pass, each with its vertex."""
    from engine.go.geometry import PASS

    for move in report.moves:
        if move.point != PASS:
            yield arguments.vertices(host, [move.point]), move


def _heat(host: Host, probabilities: "np.ndarray", text: str) -> str:
    """Points coloured and labelled by probability, and a line of text."""
    from engine.go.geometry import on_board_points

    vertices = arguments.vertices(host, on_board_points(host.keeper.game.size).tolist()).split()
    found = list(zip(vertices, probabilities[:-1].tolist(), strict=True))
    return gogui_layout.graphic(
        gogui_layout.shades((vertex, p) for vertex, p in found if p >= SHADED),
        gogui_layout.labels((vertex, f"{100 * p:.0f}") for vertex, p in found if p >= LABELLED),
        f"TEXT {text}",
    )
