"""How the engine's options come from the command line and the settings file: decorators for click commands."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from engine.config import REMOVED, help_text, removed
from gtp.cli.settings import CONFIG_VARIABLE, NO_FILE, chosen_file, read_settings
from weights import NO_NETWORK, find_network

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def options_of(kind: type, *names: str) -> Decorator:
    """Decorator: one command-line option for each field of an options class, or for some, with help, unit and range.

    A switch ``--NAME`` is switched off by ``--no-NAME``.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for item in reversed([item for item in fields(kind) if not names or item.name in names]):
            name = "--" + item.name.replace("_", "-")
            if isinstance(item.default, bool):
                # Both ways, since a settings file may have switched it on.
                flags, text = f"{name}/--no-{name[2:]}", item.metadata["help"]
                function = click.option(flags, item.name, default=item.default, show_default=True, help=text)(function)
                continue
            function = click.option(
                name,
                item.name,
                type=type(item.default),
                default=item.default,
                show_default=True,
                metavar=item.metadata["unit"] or ("N" if isinstance(item.default, int) else "X"),
                help=help_text(item),
            )(function)
        return _with_removed(function) if not names else function

    return decorate


def _with_removed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that says what is instead of options that earlier versions had."""

    def refuse(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(removed(parameter.opts[0].lstrip("-")), context)

    for name in REMOVED:
        if all(f"--{name}" not in made.opts for made in getattr(function, "__click_params__", ())):
            option = click.option(f"--{name.replace('_', '-')}", hidden=True, expose_value=False, callback=refuse)
            function = option(function)
    return function


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
        show_default=False,
        help=f"settings file (docs/settings.md); by default ${CONFIG_VARIABLE}, else the user's own; {NO_FILE} = none",
    )


def options_from(kind: type, values: dict[str, Any]) -> Any:
    """An options object of the values that belong to it; what is missing has its default.

    Raises:
        ValueError: a value is out of range.
    """
    return kind(**{item.name: values[item.name] for item in fields(kind) if item.name in values})


def network_of(context: click.Context, config: Path | None, weights: str) -> Path | tuple[Path, Path] | None:
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
