"""Estimates of the position without a search: the score, and the policy as a board of numbers.

Sources: the GNU Go program documentation, "GTP command reference" (``estimate_score``); Leela Zero's ``heatmap``, which
it writes to standard error.
"""

from gtp import gogui_layout
from gtp.host import Host
from gtp.protocol import CommandError, Registry

COMMANDS = Registry()
EXPECTED = "expected heatmap [SYMMETRY], a symmetry from 0 to 7, average or all"


@COMMANDS.command("estimate_score")
def estimate_score(host: Host) -> str:
    """The score as final_score has it, and its bounds in White's points if all that is in doubt goes to one side."""
    found = host.player.score()
    # A whole number where it is one, as in final_score; a draw must begin with a colour too, for GoGui.
    winner = "B" if found.lead_black > 0 else "W"
    bounds = f"upper bound: {-found.low_black:.1f}, lower: {-found.high_black:.1f}"
    return f"{winner}+{abs(found.lead_black):.1f} ({bounds})"


@COMMANDS.command("heatmap")
def heatmap(host: Host, symmetry: str = "0") -> str:
    """Show the policy of the side to move in thousandths and its win rate: heatmap [SYMMETRY].

    The symmetry in which the network sees the board is 0 to 7; average is the mean of all, all shows each. It is
    asked as it plays, perhaps in 16 bits; kata-raw-nn is exact. Without a network this is the policy of patterns,
    which has no win rate.
    """
    import numpy as np  # by now it is loaded

    from engine.insight.overlays import Policy, policy

    if symmetry not in ("average", "all", *"01234567"):
        raise CommandError(f"syntax error: {EXPECTED}")
    symmetries = [int(symmetry)] if symmetry.isdigit() else range(8)
    player = host.player
    found = [policy(player, player.game.to_move, one) for one in symmetries]
    if symmetry == "average":
        found = [Policy(np.mean([one.probabilities for one in found], axis=0), sum(one.win for one in found) / 8)]
    return "\n".join(_text(one.probabilities.tolist(), one.win, player.game.size) for one in found)


def _text(probabilities: list[float], win: float, size: int) -> str:
    """A policy as Leela Zero lays it out."""
    *words, pass_word = (str(round(1000 * one)) for one in probabilities)
    rate = "" if win != win else f"\nwinrate: {win:.6f}"
    return f"{gogui_layout.board(words, size)}\npass: {pass_word}{rate}"
