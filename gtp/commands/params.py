"""Parameters of the running engine by our names and KataGo's, its networks, and its search speed.

A parameter that KataGo has under another name has both names. Ranges and messages are those of the command line; a
change takes effect with the next move. Sources: KataGo, docs/GTP_Extensions.md and cpp/configs/gtp_example.cfg.
"""

import json
import math
from dataclasses import Field, fields, replace
from typing import TYPE_CHECKING, Any

from engine.config import ADAPTIVE, PlayOptions, SearchOptions, removed
from engine.config.declaration import find_option, key_of, parse
from gtp.host import Host
from gtp.info import described
from gtp.json.settings import NO_EXPLORATION, SEARCH_OPTIONS
from gtp.protocol import CommandError, Registry, Reply, integer, switch
from gtp.startup import compile_progress

if TYPE_CHECKING:
    from engine.search.report import Report

COMMANDS = Registry()
KATAGO = {
    "maxVisits": "visits",
    "maxTime": "seconds",
    "chosenMoveTemperatureEarly": "temperature",
    "resignThreshold": "resign_below",
    "resignConsecTurns": "resign_count",
    "lagBuffer": "lag",
    "ponderingEnabled": "ponder",
    "maxTimePondering": "ponder_seconds",
    "maxVisitsPondering": "ponder_visits",
    "numSearchThreads": "threads",
    "nnPolicyTemperature": "policy_temperature",
    "rootDirichletNoiseWeight": "root_noise",
    "analysisWideRootNoise": "wide_root_noise",
    "humanSLProfile": "human_profile",
    "humanSLRootExploreProbWeightless": "human_explore",
    "humanSLCpuctExploration": "human_c_puct",
    "humanSLCpuctPermanent": "human_c_permanent",
    "humanSLChosenMoveProp": "human_share",
    "humanSLChosenMoveIgnorePass": "human_ignore_pass",
    "humanSLChosenMovePiklLambda": "human_lambda",
    "staticScoreUtilityFactor": "human_score_utility",
    "chosenMoveTemperatureHalflife": "human_halflife",
    "chosenMoveTemperatureOnlyBelowProb": "human_only_below",
} | SEARCH_OPTIONS
"""KataGo's name -> our option. KataGo's early temperature decays move by move; ours is constant in the opening, unless
moves are drawn from a human network."""
WITH_HUMAN = {"chosenMoveTemperatureEarly": "human_temperature_early", "chosenMoveTemperature": "human_temperature"}
"""KataGo's name -> our option if moves are drawn from a human network"""
FIXED = {
    "weights": "restart keima gtp with --weights",
    "human_weights": "restart keima gtp with --human-weights",
    "device": "restart keima gtp with --device",
    "evaluators": "restart keima gtp with --evaluators",
    "memory": "restart keima gtp with --memory",
    "rules": "use kata-set-rules",
    "komi": "use komi",
    "size": "use boardsize",
    "chosenMoveTemperature": "after temperature-moves the best move is played; set chosenMoveTemperatureEarly",
}
"""Parameter that cannot change -> what to do instead"""
NO_LIMIT = 1 << 50
"""KataGo's value of ``maxVisits`` and ``maxPlayouts`` that means no limit"""
NONE_HERE = {
    "playoutDoublingAdvantage": 0.0, "maxPlayouts": NO_LIMIT, "cpuctExplorationLog": 0.0,
    **dict.fromkeys(NO_EXPLORATION, 0.0),
}  # fmt: skip
"""KataGo's parameter without a counterpart -> its neutral value, the only one accepted; clients read it at the start"""
LIMITS = ("maxVisits", "maxVisitsPondering", "maxTime", "maxTimePondering")
"""Parameters whose values are clamped to our maximum, since LizzieYzy sends huge values to remove limits"""
ALLOW_RESIGNATION = "allowResignation"
"""KataGo's parameter that switches resigning on and off; off sets our ``resign_below`` to ``NEVER``"""
NEVER = -1.0
KINDS = (PlayOptions, SearchOptions)
"""Options classes whose fields are parameters"""


@COMMANDS.command("kata-list-params")
def kata_list_params(host: Host) -> str:
    """List the parameters of kata-set-param, by our names and KataGo's."""
    return " ".join(_names())


@COMMANDS.command("kata-get-param")
def kata_get_param(host: Host, name: str) -> str:
    """The current value of a parameter."""
    value = _value(host, name)
    return str(value).lower() if isinstance(value, bool) else str(value)


@COMMANDS.command("kata-get-params")
def kata_get_params(host: Host) -> str:
    """The current values of all parameters, as a JSON object."""
    return json.dumps({name: _value(host, name) for name in [*_names(), *NONE_HERE]})


@COMMANDS.command("kata-set-param")
def kata_set_param(host: Host, name: str, value: str) -> None:
    """Change a parameter from the next move on; keima gtp --help explains all parameters and their ranges.

    The first limit that is reached, visits or seconds, ends a search; 0 = no limit.
    """
    _change(host, {name: value})


@COMMANDS.command("kata-set-params")
def kata_set_params(host: Host, *json_object: str) -> None:
    """Change several parameters, given as a JSON object: all, or none if a value is refused."""
    try:
        given = json.loads(" ".join(json_object))
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise CommandError('syntax error: expected a JSON object such as {"maxVisits":200}')
    _change(host, {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()})


def _change(host: Host, given: dict[str, str]) -> None:
    """Change parameters: all, or none if a value is refused."""
    player = host.player
    play, search = dict[str, Any](), dict[str, Any]()
    for name, text in given.items():
        if name in NONE_HERE:
            if _number(text) != NONE_HERE[name]:
                expected = f"expected {NONE_HERE[name]:.0f}"
                raise CommandError(f"{name} is {text!r}, {expected}: the search has no such parameter")
            continue
        if name == ALLOW_RESIGNATION:
            continue
        item = _named(host, name)
        if item.name in FIXED:
            raise CommandError(f"{name} cannot change while the engine runs: {FIXED[item.name]}")
        if name in LIMITS and _number(text) > item.metadata["high"]:
            text = str(item.metadata["high"])
        (play if item in fields(PlayOptions) else search)[item.name] = parse(item, text, name)
    if ALLOW_RESIGNATION in given:
        # After all other parameters, since the same command may set the resignation value.
        if not switch(ALLOW_RESIGNATION, given[ALLOW_RESIGNATION]):
            play["resign_below"] = NEVER
        elif play.get("resign_below", player.options.resign_below) == NEVER:
            play["resign_below"] = PlayOptions.resign_below
    with compile_progress():
        player.configure(replace(player.options, **play), replace(player.search_options, **search))


@COMMANDS.command("keima-level")
def keima_level(host: Host, name: str = "") -> str:
    """Show the level of play with its scale, after setting it if one is given: 20k to 5d, auto or max.

    kata-set-param level sets it too. A level that this board does not have becomes the nearest one.
    """
    from engine.play.levels import described as described_level
    from engine.play.levels import nearest

    if name:
        _change(host, {"level": name})
    player = host.player
    size, level = player.game.size, player.options.level
    text = described_level(nearest(player.level, size), size)
    return f"{level}: {text}" if level == ADAPTIVE else text


@COMMANDS.command("kata-get-models")
def kata_get_models(host: Host) -> str:
    """List the networks on this board, the human network last, as a JSON list; empty without a network."""
    player = host.player
    human = described(player.human.path, player.human.server) if player.human is not None else []
    return json.dumps(described(player.network_path, player.server) + human)


def _number(text: str) -> float:
    """The number of a text; NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _names() -> list[str]:
    """Names of all parameters that can change: our names, then KataGo's."""
    ours = [key_of(item.name) for kind in KINDS for item in fields(kind) if item.name not in FIXED]
    return [*ours, *KATAGO, ALLOW_RESIGNATION]


def _value(host: Host, name: str) -> Any:
    """The current value of a parameter, resolved if it is automatic."""
    if name in NONE_HERE:
        return NONE_HERE[name]
    player = host.player
    # Only now: the thread that loads the player imports Numba, which two threads cannot do at once.
    from engine.search.tuning import resolved

    if name == ALLOW_RESIGNATION:
        return player.options.resign_below > NEVER
    item = _named(host, name)
    if item.name == "live_graphics":
        return host.draws_live
    is_of_play = item in fields(PlayOptions)
    options = player.options if is_of_play else resolved(player.search_options, player.server)
    # KataGo's word for no human profile, where a GTP argument cannot be empty.
    return getattr(options, item.name) or "_" if item.type is str else getattr(options, item.name)


def _named(host: Host, name: str) -> Field[Any]:
    """The option that a parameter's name, ours or KataGo's, stands for.

    Raises:
        CommandError: unknown parameter.
    """
    names = KATAGO | WITH_HUMAN if host.player.human is not None else KATAGO
    ours = names.get(name, name.replace("-", "_"))
    if item := find_option(ours, *KINDS):
        return item
    if ours in FIXED:
        raise CommandError(f"{name} is not a parameter: {FIXED[ours]}")
    raise CommandError(removed(name) or f"unknown parameter {name!r}, expected one that kata-list-params lists")


@COMMANDS.command("kata-benchmark")
def kata_benchmark(host: Host, visits: str, *, reply: Reply) -> str:
    """Measure the speed of the search on ten positions of this board size, with this number of visits each.

    Uses the current options without limits. Clears the tree and the cache, keeps the game. The command keima benchmark
    finds the settings that play strongest on this machine.
    """
    from engine.inference.server import NetworkFailed
    from engine.play.player import BENCHMARK_POSITIONS, benchmark

    count = integer(visits)
    if count < 1:
        raise CommandError(f"syntax error: {count} visits, expected 1 or more")
    player = host.player
    server, size = player.server, player.game.size
    network = "no network" if server is None else f"network {server.spec.name}"
    reply.line(f"{size}x{size}, {network}, {count} visits for each of {BENCHMARK_POSITIONS} positions")
    reports = []
    try:
        for n_moves, report in benchmark(player, count):
            if host.is_interrupted:
                break
            reports.append(report)
            reply.line(f"{len(reports)}/{BENCHMARK_POSITIONS}, {n_moves} moves played: {_speed([report])}")
    except NetworkFailed as error:
        return f"{error}"
    return f"together: {_speed(reports)}" if reports else "interrupted"


def _speed(reports: list["Report"]) -> str:
    """One line: the visits and evaluations of searches, their sum and their number per second."""
    seconds = sum(report.seconds for report in reports)
    visits = sum(report.playouts_this_run for report in reports)
    evaluations = sum(report.evaluations for report in reports)
    pace_s = max(seconds, 1e-3)
    return (
        f"{visits} visits in {seconds:.2f} s, {visits / pace_s:.0f} visits/s, "
        f"{evaluations} evaluations, {evaluations / pace_s:.0f} evaluations/s"
    )
