"""The raw network output, without a search, in the layout of KataGo's ``kata-raw-nn``.

Source: KataGo, docs/GTP_Extensions.md.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import CommandError, Registry, number

if TYPE_CHECKING:
    from engine.insight.raw_outputs import RawEvaluation

COMMANDS = Registry()
EXPECTED = "expected kata-raw-nn [COLOR] SYMMETRY [OPTIMISM], a symmetry from 0 to 7 or all, an optimism from 0 to 1"
OPTIMISM = 0.2
"""KataGo's own where it moves"""


@COMMANDS.command("kata-raw-nn")
def kata_raw_nn(host: Host, *words: str) -> str:
    """Show the network's output for the position, in float32 on the CPU: kata-raw-nn [COLOR] SYMMETRY [OPTIMISM].

    The symmetry is 0 to 7 or all; the optimism, from 0 to 1, mixes the two policies that some networks have. Win rates,
    points and ownership are White's; nan = the network has no such output, or the move is illegal.
    """
    given = list(words)
    color = arguments.leading_color(host, given)
    symmetries, optimism = _asked(given)
    from engine.features.symmetry import INVERSE
    from engine.insight.raw_outputs import evaluation_for

    # KataGo flips the board before it exchanges rows and columns, we do afterwards.
    asked = ((s, evaluation_for(host.player, color, INVERSE[s], optimism)) for s in symmetries)
    return "\n".join(_text(host, symmetry, found) for symmetry, found in asked)


def _asked(words: list[str]) -> tuple[Iterable[int], float]:
    """The symmetries and the optimism that a command asks for."""
    if not 1 <= len(words) <= 2 or words[0].lower() not in ("all", *"01234567"):
        raise CommandError(f"syntax error: {EXPECTED}")
    optimism = number(words[1]) if len(words) == 2 else OPTIMISM
    if not 0.0 <= optimism <= 1.0:
        raise CommandError(f"syntax error: {EXPECTED}")
    return range(8) if words[0].lower() == "all" else [int(words[0])], optimism


def _text(host: Host, symmetry: int, found: "RawEvaluation") -> str:
    """One symmetry's answer."""
    output, size = found.output, host.keeper.game.size
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
    """Numbers as a board, the top row first."""
    words = ["    NAN" if value != value else f"{value:{width}.{digits}f}" for value in values]
    return [" ".join(words[row * size : (row + 1) * size]) for row in range(size)]
