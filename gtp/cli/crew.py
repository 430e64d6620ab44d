"""Who works, as ``--ray`` and ``--actors`` say: threads of this process, or actors of a Ray cluster."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, NamedTuple

import click

from engine.system.crew.job import Crew
from gtp.cli.arguments import Whole
from gtp.cli.options import with_options


class CrewOptions(NamedTuple):
    """Who works."""

    ray: str | None
    """address of a Ray cluster; None = this process"""
    actors: int

    def open(self, stack: ExitStack, chunk: int, at_once: int = 2, waiting: int = 1) -> Crew:
        """Ray's crew, which ``stack`` closes.

        Args:
            chunk: pieces of work that an actor gets at once.
            at_once: chunks that an actor does side by side.
            waiting: chunks that wait at an actor besides those that it does.
        Raises:
            ValueError: Ray is not there; one line.
        """
        assert self.ray
        try:
            from engine.system.crew.on_ray import OnRay
        except ImportError as error:
            raise ValueError(f"--ray needs Ray: pip install 'ray>=2.50' beside Keima ({error})") from error
        crew = OnRay(self.ray, self.actors, chunk, at_once, waiting)
        stack.callback(crew.close)
        return crew


def ray_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--ray`` and ``--actors``, which the command gets as ``crew``, a :class:`CrewOptions`."""

    @wraps(function)
    def command(*, ray: str | None, actors: int, **rest: Any) -> Any:
        return function(crew=CrewOptions(ray, actors), **rest)

    options = (
        click.option("--ray", metavar="ADDRESS", help="let actors of a Ray cluster work; local: Ray on this machine"),
        click.option("--actors", default=0, type=Whole(0), help="actors of Ray; 0 = one a GPU, or a processor"),
    )
    return with_options(command, options)
