"""How fast the search is, with the options in force. Source of the command: KataGo, docs/GTP_Extensions.md."""

from typing import TYPE_CHECKING

from gtp.host import Host
from gtp.protocol import CommandError, Registry, Reply, integer

if TYPE_CHECKING:
    from engine.search.report import Report

COMMANDS = Registry()


@COMMANDS.command("kata-benchmark")
def kata_benchmark(host: Host, visits: str, *, reply: Reply) -> str:
    """Search ten positions of this board size with this number of visits each, and tell how fast that was.

    Options are those in force but for limits of visits and time. Tree and cache are lost, the game stays. The command
    keima benchmark finds the settings that play strongest on this machine.
    """
    from engine.inference.server import NetworkFailed
    from engine.play.benchmark import POSITIONS, measure

    count = integer(visits)
    if count < 1:
        raise CommandError(f"syntax error: {count} visits, expected 1 or more")
    player = host.player
    server, size = player.server, player.game.size
    network = "no network" if server is None else f"network {server.spec.name}"
    reply.line(f"{size}x{size}, {network}, {count} visits for each of {POSITIONS} positions")
    reports = []
    try:
        for measured in measure(player, count):
            if host.is_interrupted:
                break
            reports.append(measured.report)
            speed = _speed(*_sums([measured.report]))
            reply.line(f"{len(reports)}/{POSITIONS}, {measured.n_moves} moves played: {speed}")
    except NetworkFailed as error:
        return f"{error}"
    return f"together: {_speed(*_sums(reports))}" if reports else "interrupted"


def _sums(reports: list["Report"]) -> tuple[int, int, float]:
    """Visits, evaluations and seconds of some searches."""
    return (
        sum(report.playouts_this_run for report in reports),
        sum(report.evaluations for report in reports),
        sum(report.seconds for report in reports),
    )


def _speed(visits: int, evaluations: int, seconds: float) -> str:
    """Searches in numbers; a moment at least, so that the shortest has a speed too."""
    moment_s = max(seconds, 1e-3)
    return (
        f"{visits} visits in {seconds:.2f} s, {visits / moment_s:.0f} visits/s, "
        f"{evaluations} evaluations, {evaluations / moment_s:.0f} evaluations/s"
    )
