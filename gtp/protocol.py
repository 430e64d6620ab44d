"""The text layer of GTP, version 2: lines, replies and a registry of commands. It knows no Go.

A program makes a :class:`Registry`, registers functions with :meth:`Registry.command` and hands every line it reads
to :meth:`Registry.answer`, which gives the text of exactly one reply, or None for a line that is no command. Names
and counts of a command's arguments are those of its function, so usage, checks and ``list_commands`` cannot
disagree. A function reports failure by :class:`CommandError` or by any ``ValueError`` whose message begins with the
words GTP has for it.

Source: Gunnar Farnebäck, "Specification of the Go Text Protocol, version 2, draft 2", sections 2 and 3.
"""

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

PROTOCOL_VERSION = 2
MAX_ID = 2**31 - 1
MAX_MESSAGE = 240
"""Characters of an error message; a longer one quotes the client's own endless line."""

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
NUMBER = re.compile(r"[+-]?([0-9]{1,10}(\.[0-9]{0,9})?|\.[0-9]{1,9})")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters but for tab and newline; a carriage return is one of them."""


class CommandError(Exception):
    """A command failed; the message becomes the reply."""


class Request(NamedTuple):
    """One command as it was sent."""

    id: str
    """as written, without surrounding space; empty without one"""
    name: str
    arguments: list[str]


def clean(line: str) -> str:
    """A line without control characters, comment and surrounding space; tabs become spaces."""
    return CONTROL.sub("", line.partition("#")[0]).replace("\t", " ").strip(" \n")


def parse(line: str) -> Request | None:
    """The command of a line, or None where the line holds nothing but space and comment.

    A first word of digits is the id, if it is no larger than GTP allows; the name is empty where nothing follows it.
    """
    words = [word for word in clean(line).split(" ") if word]
    if not words:
        return None
    head = words[0]
    is_id = head.isascii() and head.isdigit() and len(head) <= len(str(MAX_ID)) and int(head) <= MAX_ID
    id_ = words.pop(0) if is_id else ""
    return Request(id_, words[0] if words else "", words[1:])


def success(id_: str, text: str = "") -> str:
    """A reply with a result. The first line may be empty (diagrams); empty lines behind it would end the reply."""
    first, *rest = CONTROL.sub("", text).replace("\t", " ").split("\n")
    body = "\n".join([first.rstrip(), *(line.rstrip() for line in rest if line.strip())])
    return f"={id_}{' ' if body else ''}{body}\n\n"


def failure(id_: str, message: str) -> str:
    """A reply with an error message on one line."""
    line = " ".join(CONTROL.sub(" ", message).split()) or "failed"
    return f"?{id_} {line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + '...'}\n\n"


def integer(text: str) -> int:
    """An argument that must be a whole number.

    Raises:
        CommandError: it is none.
    """
    if not INTEGER.fullmatch(text):
        raise CommandError(f"syntax error: {text!r} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """An argument that must be a plain decimal number: no exponent, infinity or NaN.

    Raises:
        CommandError: it is none.
    """
    if not NUMBER.fullmatch(text):
        raise CommandError(f"syntax error: {text!r} is not a number")
    return float(text)


@dataclass(frozen=True)
class Command:
    """A registered command."""

    name: str
    function: Callable[..., str | None]
    """called with the host and one string per argument; returns the result's text"""
    usage: str
    """``play COLOR VERTEX``, ``loadsgf FILE [MOVE]``, ``set_free_handicap [VERTEX...]``"""
    summary: str
    fewest: int
    most: float


def _describe(name: str, function: Callable[..., str | None]) -> Command:
    """Read a command's arguments from its function's parameters; the first is the host."""
    words, fewest, most = [name], 0, 0.0
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        word = parameter.name.upper()
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"[{word}...]")
            most = float("inf")
        elif parameter.default is parameter.empty:
            words.append(word)
            fewest, most = fewest + 1, most + 1
        else:
            words.append(f"[{word}]")
            most += 1
    return Command(name, function, " ".join(words), inspect.getdoc(function) or "", fewest, most)


class Registry:
    """The commands a program answers, in the order they were registered.

    Threads: register in one thread before the first answer; answering changes nothing here.
    """

    def __init__(self, *families: "Registry") -> None:
        self._commands: dict[str, Command] = {}
        for family in families:
            for command in family:
                self._add(command)

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def __contains__(self, name: str) -> bool:
        return name in self._commands

    def __getitem__(self, name: str) -> Command:
        return self._commands[name]

    def command(self, name: str) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
        """Decorator: register a function under a name."""

        def register(function: Callable[..., str | None]) -> Callable[..., str | None]:
            self._add(_describe(name, function))
            return function

        return register

    def _add(self, command: Command) -> None:
        if command.name in self._commands:
            raise ValueError(f"command {command.name!r} is registered twice")
        self._commands[command.name] = command

    def answer(self, host: Any, line: str) -> str | None:
        """Run a line's command and give the text of its one reply; None for a line without a command.

        Args:
            host: handed to the command's function.
        """
        request = parse(line)
        if request is None:
            return None
        try:
            return success(request.id, self._run(host, request) or "")
        except (CommandError, ValueError) as error:
            return failure(request.id, str(error))
        except Exception as error:
            # A fault of ours must not cost the client its game: it is told, and the process lives.
            traceback.print_exc(file=sys.stderr)
            return failure(request.id, f"internal error: {type(error).__name__}: {error}")

    def _run(self, host: Any, request: Request) -> str | None:
        """Look the command up, check the number of its arguments and call it."""
        if not request.name:
            raise CommandError("syntax error: an id without a command")
        command = self._commands.get(request.name)
        if command is None:
            raise CommandError("unknown command")
        if not command.fewest <= len(request.arguments) <= command.most:
            raise CommandError(f"syntax error: expected {command.usage}")
        return command.function(host, *request.arguments)
