"""Parameters while the engine runs: its options by name, as on the command line, and by KataGo's names.

A parameter that KataGo has under another name answers to both. Ranges and messages are those of the command line; a
change counts from the next move on and until it is changed again. Sources: KataGo, docs/GTP_Extensions.md and
cpp/configs/gtp_example.cfg.
"""

import json
from dataclasses import Field, fields, replace
from typing import Any

from engine.config import PlayOptions, SearchOptions, removed
from engine.config.declaration import find_option, key_of, parse
from gtp.host import Host
from gtp.models import described
from gtp.protocol import CommandError, Registry
from gtp.startup import compile_progress

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
    "cpuctExploration": "c_puct",
    "cpuctExplorationLog": "c_puct_growth",
    "fpuReductionMax": "fpu_reduction",
    "nnPolicyTemperature": "policy_temperature",
    "rootDirichletNoiseWeight": "root_noise",
    "useGraphSearch": "transpositions",
}
"""KataGo's name -> ours, where both mean the same. KataGo's early temperature decays; ours ends with the opening."""
FIXED = {
    "weights": "restart keima gtp with --weights",
    "device": "restart keima gtp with --device",
    "evaluators": "restart keima gtp with --evaluators",
    "memory": "restart keima gtp with --memory",
    "rules": "use kata-set-rules",
    "komi": "use komi",
    "size": "use boardsize",
    "chosenMoveTemperature": "after temperature-moves the best move is played; set chosenMoveTemperatureEarly",
}
"""What cannot be set here -> what to do instead"""
KINDS = (PlayOptions, SearchOptions)
"""Whose options are parameters"""


@COMMANDS.command("kata-list-params")
def kata_list_params(host: Host) -> str:
    """List the parameters that kata-set-param can change, under our names and KataGo's."""
    ours = (key_of(item.name) for kind in KINDS for item in fields(kind) if item.name not in FIXED)
    return " ".join([*ours, *KATAGO])


@COMMANDS.command("kata-get-param")
def kata_get_param(host: Host, name: str) -> str:
    """The value of a parameter in force."""
    item = _named(name)
    value = getattr(_options_with(host, item), item.name)
    return str(value).lower() if isinstance(value, bool) else str(value)


@COMMANDS.command("kata-set-param")
def kata_set_param(host: Host, name: str, value: str) -> None:
    """Change a parameter from the next move on; keima gtp --help tells what they mean and may be.

    Of visits and seconds the limit that is reached first counts; 0 lifts one of them.
    """
    item, player = _named(name), host.player
    if item.name in FIXED:
        raise CommandError(f"{name} cannot change while the engine runs: {FIXED[item.name]}")
    options = replace(_options_with(host, item), **{item.name: parse(item, value, name)})
    with compile_progress():
        if isinstance(options, PlayOptions):
            player.configure(options, player.search_options)
        else:
            player.configure(player.options, options)


@COMMANDS.command("kata-get-models")
def kata_get_models(host: Host) -> str:
    """List the networks that play on this board, as a JSON list; empty where rollouts play alone."""
    player = host.player
    return json.dumps(described(player.network_path, player.server))


def _named(name: str) -> Field[Any]:
    """The option behind one of its names.

    Raises:
        CommandError: there is none.
    """
    ours = KATAGO.get(name, name.replace("-", "_"))
    if item := find_option(ours, *KINDS):
        return item
    if ours in FIXED:
        raise CommandError(f"{name} is no parameter: {FIXED[ours]}")
    raise CommandError(removed(name) or f"unknown parameter {name!r}, expected one that kata-list-params lists")


def _options_with(host: Host, item: Field[Any]) -> PlayOptions | SearchOptions:
    """Those of the options in force that an option belongs to."""
    return host.player.options if item in fields(PlayOptions) else host.player.search_options
