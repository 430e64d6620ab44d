"""The position without a search: legal moves, score, life and death, policy and raw network output.

Sources: the GNU Go program documentation, "GTP command reference"; Leela Zero's ``heatmap``, which it prints to
standard error; KataGo, docs/GTP_Extensions.md.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gtp import gogui
from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import CommandError, Registry, number

if TYPE_CHECKING:
    from engine.insight.raw_outputs import RawEvaluation

COMMANDS = Registry()


@COMMANDS.command("is_legal")
def is_legal(host: Host, color: str, vertex: str) -> str:
    """Whether a move is legal under the current rules: 1 or 0."""
    return str(int(host.game_session.game.is_legal(arguments.color(color), arguments.vertex(host, vertex))))


@COMMANDS.command("all_legal")
def all_legal(host: Host, color: str) -> str:
    """List the legal moves of a player, without the pass."""
    return arguments.vertices(host, legal_points(host, arguments.color(color)))


@COMMANDS.command("captures")
def captures(host: Host, color: str) -> str:
    """The number of stones that a player has captured."""
    return str(host.game_session.game.captures(arguments.color(color)))


def legal_points(host: Host, color: int) -> list[int]:
    """The points of a colour's legal moves, the top row first."""
    from engine.go.geometry import on_board_points

    game = host.game_session.game
    return [point for point in on_board_points(game.size).tolist() if game.is_legal(color, point)]


@COMMANDS.command("final_score")
def final_score(host: Host) -> str:
    """The score under the current rules after both players passed, dead stones removed except under Tromp-Taylor rules;
    before that an estimate."""
    return host.player.final_score()


@COMMANDS.command("final_status_list")
def final_status_list(host: Host, status: str) -> str:
    """List the stones that are alive, dead or seki in final_score, one chain a line."""
    return "\n".join(arguments.vertices(host, chain) for chain in host.player.final_status(status.lower()))


HEATMAP_USAGE = "expected heatmap [SYMMETRY], a symmetry from 0 to 7, average or all"


@COMMANDS.command("estimate_score")
def estimate_score(host: Host) -> str:
    """The estimate of final_score, and its bounds in White's points if one side gets all unsettled points."""
    found = host.player.score()
    # A draw begins with a colour too, as GoGui expects.
    winner = "B" if found.lead_black > 0 else "W"
    bounds = f"upper bound: {-found.low_black:.1f}, lower: {-found.high_black:.1f}"
    return f"{winner}+{abs(found.lead_black):.1f} ({bounds})"


@COMMANDS.command("heatmap")
def heatmap(host: Host, symmetry: str = "0") -> str:
    """Show the policy of the side to move in thousandths and its win rate.

    The symmetry of the network's input is 0 to 7, average (the mean of all) or all (each). The network is evaluated as
    in play, perhaps in 16 bits; kata-raw-nn evaluates it in float32. Without a network: the tree policy, without a win
    rate.
    """
    import numpy as np  # by now it is loaded

    from engine.insight.overlays import Policy, policy

    if symmetry not in ("average", "all", *"01234567"):
        raise CommandError(f"syntax error: {HEATMAP_USAGE}")
    symmetries = [int(symmetry)] if symmetry.isdigit() else range(8)
    player = host.player
    found = [policy(player, player.game.to_move, one) for one in symmetries]
    if symmetry == "average":
        found = [Policy(np.mean([one.probabilities for one in found], axis=0), sum(one.win for one in found) / 8)]
    return "\n".join(_heatmap_text(one.probabilities.tolist(), one.win, player.game.size) for one in found)


def _heatmap_text(probabilities: list[float], win: float, size: int) -> str:
    """A policy in the format of Leela Zero's heatmap; without a win rate if ``win`` is NaN."""
    *words, pass_word = (str(round(1000 * one)) for one in probabilities)
    rate = "" if win != win else f"\nwinrate: {win:.6f}"
    return f"{gogui.board(words, size)}\npass: {pass_word}{rate}"


RAW_USAGE = "expected kata-raw-nn [COLOR] SYMMETRY [OPTIMISM], a symmetry from 0 to 7 or all, an optimism from 0 to 1"
OPTIMISM = 0.2
"""KataGo's default optimism for the policy of the side to move"""


@COMMANDS.command("kata-raw-nn", arguments="[COLOR] SYMMETRY [OPTIMISM]")
def kata_raw_nn(host: Host, *words: str) -> str:
    """Show the network's raw output, in float32 on the CPU.

    The symmetry is 0 to 7 or all; the optimism, 0 to 1, mixes the two policies of some networks. Win rates, points and
    ownership are White's; nan = the network has no such head, or the move is illegal.
    """
    given = list(words)
    color = arguments.leading_color(host, given)
    symmetries, optimism = _asked(given)
    from engine.features.symmetry import INVERSE
    from engine.insight.raw_outputs import evaluation_for

    # KataGo's symmetries flip the board before they transpose it, ours after.
    asked = ((s, evaluation_for(host.player, color, INVERSE[s], optimism)) for s in symmetries)
    return "\n".join(_raw_text(host, symmetry, found) for symmetry, found in asked)


def _asked(words: list[str]) -> tuple[Iterable[int], float]:
    """Parse the arguments of kata-raw-nn after the colour: symmetries and optimism.

    Raises:
        CommandError: a wrong argument, or none.
    """
    if not 1 <= len(words) <= 2 or words[0].lower() not in ("all", *"01234567"):
        raise CommandError(f"syntax error: {RAW_USAGE}")
    optimism = number(words[1]) if len(words) == 2 else OPTIMISM
    if not 0.0 <= optimism <= 1.0:
        raise CommandError(f"syntax error: {RAW_USAGE}")
    return range(8) if words[0].lower() == "all" else [int(words[0])], optimism


def _raw_text(host: Host, symmetry: int, found: "RawEvaluation") -> str:
    """The network's raw output in one symmetry, in the format of KataGo's kata-raw-nn."""
    output, size = found.output, host.game_session.game.size
    lines = [
        f"symmetry {symmetry}",
        f"whiteWin {output.win:.6f}",
        f"whiteLoss {output.loss:.6f}",
        f"noResult {output.no_result:.6f}",
        f"whiteLead {output.lead:.3f}",
        f"whiteScoreSelfplay {output.score:.3f}",
        f"whiteScoreSelfplaySq {output.score_square:.3f}",
        f"varTimeLeft {output.variance_time:.3f}",
        f"shorttermWinlossError {output.value_error:.3f}",
        f"shorttermScoreError {output.score_error:.3f}",
        "policy",
        *_grid(found.policy[:-1], size, 8, 6),
        f"policyPass {found.policy[-1]:.6f}",
        "whiteOwnership",
        *_grid(found.ownership_white, size, 9, 7),
    ]
    return "\n".join(lines)


def _grid(values: Iterable[float], size: int, width: int, digits: int) -> list[str]:
    """Lines of numbers, one per row of the board, the top row first.

    Args:
        width: characters of a number.
        digits: decimals of a number.
    """
    words = ["    NAN" if value != value else f"{value:{width}.{digits}f}" for value in values]
    return [" ".join(words[row * size : (row + 1) * size]) for row in range(size)]
