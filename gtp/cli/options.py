"""How the engine's options come from the command line and the settings file: decorators for click commands."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from engine.config import REMOVED, SearchOptions, removed
from engine.config.declaration import Checked, bounds_text, help_text, key_of, parse, range_text, sections, type_of
from gtp.cli.help_style import KeimaCommand
from gtp.cli.settings import CONFIG_VARIABLE, NO_FILE, chosen_file, read_settings, well_formed
from weights import NO_NETWORK, NetworkPath, find_network, players

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

Options = TypeVar("Options", bound=Checked)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
UNITS = {"s": "SECONDS", "min": "MINUTES", "MiB": "MIB", "GiB": "GIB", "points": "POINTS"}
"""Unit of an option -> what its value is called in help"""


def _reader(item: Field[Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback that makes a value of an option from its text; from a settings file it comes as it is."""

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
        """See :meth:`click.Option.get_help_extra`: the range stands behind the default, as of click's own ranges."""
        extra = super().get_help_extra(ctx)
        if self.bounds:
            extra["range"] = self.bounds
        return extra


class GroupedCommand(KeimaCommand):
    """A command whose help has a heading for every options class."""

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
    """Decorator: one command-line option for each field of an options class, or for some, with help, unit and range.

    A switch ``--NAME`` is switched off by ``--no-NAME``.

    Args:
        defaults: those that differ from the declared ones.
        hidden: names of options that help does not list.
    """
    listed = [(heading, item) for heading, items in sections(kind) for item in items if not names or item.name in names]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for heading, item in reversed(listed):
            flag, choices = f"--{item.metadata['flag'] or key_of(item.name)}", item.metadata["choices"]
            default, wanted = (defaults or {}).get(item.name, item.default), type_of(item)
            about: dict[str, Any] = {"type": click.UNPROCESSED, "callback": _reader(item)}
            if wanted is bool:
                # Both ways, since a settings file may have switched it on.
                flag, about = f"{flag}/--no-{flag[2:]}", {}
            else:
                unit = item.metadata["unit"]
                about["metavar"] = UNITS.get(unit, unit) or "|".join(choices) or ("N" if wanted is int else "X")
                about["bounds"] = bounds_text(item.metadata["low"], item.metadata["high"])
            # Choices are shown as the option's value, ranges behind its default.
            text = help_text(item).removesuffix(f"; {range_text(item)}")
            # Help itself says what a default without a text of its own, such as "any", means.
            is_told = default != "" and (not item.metadata["read"] or bool(default))
            function = click.option(
                flag, item.name, cls=GroupedOption, heading=heading, default=default, show_default=is_told,
                help=text, hidden=item.name in hidden, multiple=item.type is not wanted, **about,
            )(function)  # fmt: skip
        return refusing(REMOVED, removed)(function) if kind is SearchOptions and not names else function

    return decorate


def with_options(function: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """A command with options in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def refusing(names: Iterable[str], said: Callable[[str], str]) -> Decorator:
    """Decorator: options that the command does not have any more, each answered in one line.

    Args:
        said: makes the line of a name as it was typed, without its dashes.
    """

    def refuse(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(said(parameter.opts[0].lstrip("-")), context)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if all(f"--{key_of(name)}" not in made.opts for made in getattr(function, "__click_params__", ())):
                # With a value or without, as some were switches.
                option = click.option(f"--{key_of(name)}", f"--no-{key_of(name)}", hidden=True, expose_value=False,
                                      callback=refuse, is_flag=False, flag_value="")  # fmt: skip
                function = option(function)
        return function

    return decorate


def settings_option(*kinds: type) -> Decorator:
    """Decorator: ``--config``, the settings file whose values replace the defaults of some options classes.

    The command gets it as ``config``: the file's path, None = none was wanted. The user's own may not exist.
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

    # Eager: read before any other option looks for its default.
    return click.option(
        "--config",
        callback=read,
        is_eager=True,
        metavar="FILE",
        show_default=f"${CONFIG_VARIABLE}, else the user's own",
        help=f"settings file (docs/settings.md); {NO_FILE} = none",
    )


def options_from(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """An options object of the values that belong to it; what is missing has its default.

    Raises:
        ValueError: a value is out of range.
    """
    # mypy knows a dataclass when it sees one, but cannot be told that a class variable is one.
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names})


def with_player(context: click.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """A command's values with the settings of the shipped player that ``--weights`` names, if it names one.

    What the command line or a settings file says stays.

    Args:
        values: also of options that the command itself does not have, as its settings file says.

    Raises:
        ValueError: the player's file cannot be used; one line.
    """
    player = players().get(values["weights"])
    own = read_settings(player) if player else {}

    def is_said(name: str) -> bool:
        source = context.get_parameter_source(name)
        return name in values if source is None else source is not ParameterSource.DEFAULT

    return dict(values) | {name: value for name, value in own.items() if name == "weights" or not is_said(name)}


def network_of(context: click.Context, config: Path | None, weights: str) -> NetworkPath | None:
    """What ``--weights`` means: a network's file, or two; None = no network is wanted.

    Raises:
        ValueError: no such file; where the settings file named it, so does the message.
    """
    try:
        return None if weights == NO_NETWORK else find_network(weights)
    except ValueError as error:
        if context.get_parameter_source("weights") is ParameterSource.DEFAULT_MAP:
            raise ValueError(f"{config}: weights: {error}") from error
        raise
