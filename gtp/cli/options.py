"""Decorators for click commands: the engine's options, the settings file and Ray's options."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import Field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_origin

import click
from click.core import ParameterSource

from engine.config import REMOVED, SearchOptions, SetupOptions, removed
from engine.config.declaration import Checked, bounds_text, help_text, key_of, parse, range_text, sections, type_of
from gtp.cli import KeimaCommand
from gtp.cli.arguments import Whole
from gtp.cli.settings import CONFIG_VARIABLE, NO_FILE, chosen_file, read_settings, well_formed
from weights import NO_NETWORK, NetworkPath, find_network, players

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

    from engine.system.executor import Executor

Options = TypeVar("Options", bound=Checked)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
UNITS = {"s": "SECONDS", "min": "MINUTES", "MiB": "MIB", "GiB": "GIB", "points": "POINTS"}
"""Unit of an option -> placeholder of its value in help"""


def _reader(item: Field[Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Make click's callback that parses and checks an option's text; values of a settings file are parsed already."""

    def read(value: Any) -> Any:
        name = item.metadata["flag"] or key_of(item.name)
        return well_formed(item, parse(item, value, name) if isinstance(value, str) else value)

    def convert(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return tuple(map(read, value)) if isinstance(value, tuple) else read(value)
        except ValueError as error:
            raise click.ClickException(str(error)) from error

    return convert


class GroupedOption(click.Option):
    """An option that help lists under the heading of its options class."""

    def __init__(self, *names: Any, heading: str, bounds: str = "", **rest: Any):
        super().__init__(*names, **rest)
        self.heading = heading
        self.bounds = bounds

    def get_help_extra(self, ctx: click.Context) -> "OptionHelpExtra":
        """See :meth:`click.Option.get_help_extra`; shows the option's range after its default."""
        extra = super().get_help_extra(ctx)
        if self.bounds:
            extra["range"] = self.bounds
        return extra


class GroupedCommand(KeimaCommand):
    """A command whose help has a section for each options class."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                groups.setdefault(getattr(parameter, "heading", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def options_of(
    kind: type, *names: str, defaults: Mapping[str, Any] | None = None, hidden: Collection[str] = ()
) -> Decorator:
    """Decorator: a command-line option for each field of an options class, or for the named ones.

    A switch ``--NAME`` is switched off by ``--no-NAME``.

    Args:
        defaults: defaults that differ from the declared ones.
        hidden: names of options that help does not list.
    """
    listed = [(heading, item) for heading, items in sections(kind) for item in items if not names or item.name in names]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for heading, item in reversed(listed):
            flag, choices = f"--{item.metadata['flag'] or key_of(item.name)}", item.metadata["choices"]
            default, wanted = (defaults or {}).get(item.name, item.default), type_of(item)
            about: dict[str, Any] = {"type": click.UNPROCESSED, "callback": _reader(item)}
            if wanted is bool:
                # A settings file may have switched it on.
                flag, about = f"{flag}/--no-{flag[2:]}", {}
            else:
                unit = item.metadata["unit"]
                about["metavar"] = UNITS.get(unit, unit) or "|".join(choices) or ("N" if wanted is int else "X")
                about["bounds"] = bounds_text(item.metadata["low"], item.metadata["high"])
            # Choices are shown as the option's value, ranges behind its default.
            text = help_text(item).removesuffix(f"; {range_text(item)}")
            # An empty default, or the 0 of an option with a reader, is not a text that could be typed.
            is_shown = default != "" and (not item.metadata["read"] or bool(default))
            function = click.option(
                flag, item.name, cls=GroupedOption, heading=heading, default=default, show_default=is_shown,
                help=text, hidden=item.name in hidden, multiple=get_origin(item.type) is tuple, **about,
            )(function)  # fmt: skip
        return refusing(REMOVED, removed)(function) if kind is SearchOptions and not names else function

    return decorate


def with_options(function: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """Apply decorators that add options to a command; help lists the options in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def refusing(names: Iterable[str], said: Callable[[str], str]) -> Decorator:
    """Decorator: add hidden options, which earlier versions had, and refuse each with a message.

    Args:
        said: makes the message from the option's name without dashes.
    """

    def refuse(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(said(parameter.opts[0].lstrip("-")), context)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if all(f"--{key_of(name)}" not in made.opts for made in getattr(function, "__click_params__", ())):
                # Takes a value or none, as some were switches.
                option = click.option(f"--{key_of(name)}", f"--no-{key_of(name)}", hidden=True, expose_value=False,
                                      callback=refuse, is_flag=False, flag_value="")  # fmt: skip
                function = option(function)
        return function

    return decorate


def settings_option(*kinds: type) -> Decorator:
    """Decorator: ``--config``, the settings file whose values replace the defaults of these options classes.

    The command gets the file's path as ``config``; None = no settings file is read. The user's own file may be
    missing.
    """
    names = {item.name for kind in kinds for item in fields(kind)}

    def read(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
        if context.resilient_parsing:
            return None
        try:
            path = chosen_file(value)
            values = read_settings(path) if path is not None else {}
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        context.default_map = {name: value for name, value in values.items() if name in names}
        return path

    # Eager: read before other options get their defaults.
    return click.option(
        "--config", callback=read, is_eager=True, metavar="FILE",
        show_default=f"${CONFIG_VARIABLE}, else the user's own",
        help=f"settings file (docs/settings.md); {NO_FILE} = read no settings file",
    )  # fmt: skip


def options_from(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Make an options object of the values named like its fields; missing fields get their defaults.

    Raises:
        ValueError: a value is out of range.
    """
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]  # a TypeVar cannot be bound to dataclasses
    return kind(**{name: value for name, value in values.items() if name in names})


class Player(NamedTuple):
    """The player that a command's options describe."""

    values: dict[str, Any]
    """all options, by name"""
    setup: SetupOptions
    search: SearchOptions
    network: NetworkPath | None
    """file of the network, or of policy and value network; None = rollouts alone"""
    human: NetworkPath | None = None
    """file of the human network beside it; None = none"""


def player_from(context: click.Context, config: Path | None, values: Mapping[str, Any]) -> Player:
    """The player of a command's options; a shipped player's settings replace defaults, not options that the user gives.

    Visits lift the limit of seconds, unless these are given on the command line or in the same place.

    Args:
        config: path of the settings file.
        values: the command's options, and perhaps others from the settings file.
    Raises:
        ValueError: a value is out of range, or the network or the player's file cannot be used; one line.
    """
    shipped = players().get(values["weights"])
    own = read_settings(shipped) if shipped else {}

    def is_given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return name in values if source is None else source is not ParameterSource.DEFAULT

    values = dict(values) | {name: value for name, value in own.items() if name == "weights" or not is_given(name)}
    near = (ParameterSource.COMMANDLINE, context.get_parameter_source("visits"))
    if values.get("visits") and context.get_parameter_source("seconds") not in near:
        values["seconds"] = 0.0
    setup, search = options_from(SetupOptions, values), options_from(SearchOptions, values)
    try:
        network = None if setup.weights == NO_NETWORK else find_network(setup.weights)
    except ValueError as error:
        is_from_file = context.get_parameter_source("weights") is ParameterSource.DEFAULT_MAP
        if is_from_file and (context.default_map or {})["weights"] == setup.weights:
            raise ValueError(f"{config}: weights: {error}") from error
        raise
    human = find_network(setup.human_weights) if setup.human_weights else None
    return Player(values, setup, search, network, human)


class ExecutorOptions(NamedTuple):
    """The options ``--ray`` and ``--actors`` of a command: where its jobs run."""

    ray: str | None
    """address of a Ray cluster; None = this process"""
    actors: int
    """number of actors; 0 = one a GPU, or one a core without GPUs"""

    def open(self, stack: ExitStack, chunk: int, at_once: int = 2, waiting: int = 1) -> "Executor":
        """Start an executor of Ray actors, which is closed with ``stack``.

        Args:
            chunk: number of jobs in a chunk.
            at_once: number of chunks that an actor runs in parallel.
            waiting: number of further chunks in an actor's queue.
        Raises:
            ValueError: Ray is not installed; one line.
        """
        assert self.ray
        try:
            from engine.system.on_ray import OnRay
        except ImportError as error:
            raise ValueError(f"--ray needs Ray: pip install 'ray>=2.50' beside Keima ({error})") from error
        executor = OnRay(self.ray, self.actors, chunk, at_once, waiting)
        stack.callback(executor.close)
        return executor


def ray_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--ray`` and ``--actors``, which the command gets as ``executor``, a :class:`ExecutorOptions`."""

    @wraps(function)
    def command(*, ray: str | None, actors: int, **rest: Any) -> Any:
        return function(executor=ExecutorOptions(ray, actors), **rest)

    address_help = "address of a Ray cluster to run on; local = Ray on this machine"
    actors_help = "number of Ray actors; 0 = one a GPU, or one a CPU core without GPUs"
    options = (
        click.option("--ray", metavar="ADDRESS", help=address_help),
        click.option("--actors", default=0, type=Whole(0), help=actors_help),
    )
    return with_options(command, options)
