"""The text layer of GTP, version 2: lines, replies and a registry of commands. It knows no Go.

A program makes a :class:`Registry`, registers functions with :meth:`Registry.command` and hands every line it reads
to :meth:`Registry.answer`, which gives the text of exactly one reply, or None for a line that is no command. Names
and counts of a command's arguments are those of its function, so usage, checks and ``list_commands`` cannot
disagree. A function reports failure by :class:`CommandError` or by any ``ValueError`` whose message begins with the
words GTP has for it.

A function with a keyword parameter ``reply`` gets a :class:`Reply` and may write lines of it while it runs; what it
returns is the last one. A command registered as open-ended is ended by the next line that arrives.

Source: Gunnar Farnebäck, "Specification of the Go Text Protocol, version 2, draft 2", sections 2 and 3.
"""

import inspect
import math
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

ALIKE = 0.7
"""From here on a name is close enough to a command's to be meant: the measure of :mod:`difflib`, 1 = the same"""
MAX_NAME = 60
"""Characters of a name that is compared with commands at all"""

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
MAX_DIGITS, MAX_NUMBER = 40, 1e10
"""Characters of a number, and its size"""
BYTE_ORDER_MARK = "\ufeff"
"""What some programs put before their first line"""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters but for tab and newline; a carriage return is one of them."""
COLORS = {"b": "b", "black": "b", "w": "w", "white": "w"}
"""Words for a color, in GTP and in KataGo's JSON -> its first letter"""


class CommandError(Exception):
    """A command failed; the message becomes the reply."""


class Request(NamedTuple):
    """One command as it was sent."""

    id: str
    """as written, without surrounding space; empty without one"""
    name: str
    arguments: list[str]


def clean(line: str) -> str:
    """A line without control characters, byte order mark, comment and surrounding space; tabs become spaces."""
    return CONTROL.sub("", line.partition("#")[0]).removeprefix(BYTE_ORDER_MARK).replace("\t", " ").strip(" \n")


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
    """An argument that must be a finite decimal number of usual size; programs write as many digits as they have.

    Raises:
        CommandError: it is none.
    """
    found = float(text) if len(text) <= MAX_DIGITS and NUMBER.fullmatch(text) else math.inf
    if abs(found) >= MAX_NUMBER:
        raise CommandError(f"syntax error: {text!r} is not a number")
    return found


def switch(name: str, text: str) -> bool:
    """An argument that must be true or false, in either case.

    Args:
        name: of what it sets.
    Raises:
        CommandError: it is neither.
    """
    if text.lower() not in ("true", "false"):
        raise CommandError(f"syntax error: {name} is {text!r}, expected true or false")
    return text.lower() == "true"


@dataclass(frozen=True)
class Command:
    """A registered command."""

    name: str
    function: Callable[..., str | None]
    """called with the host and one string per argument, perhaps with ``reply``; returns the result's text"""
    usage: str
    """``play COLOR VERTEX``, ``loadsgf FILE [MOVE]``, ``set_free_handicap [VERTEX...]``"""
    summary: str
    fewest: int
    most: float
    writes: bool
    """wants a :class:`Reply` to write to"""
    open_ended: bool
    """the next line that arrives ends it"""
    is_listed: bool
    """clients are told of it; False = it is answered all the same"""


class Reply:
    """A successful reply that is written line by line while its command runs; an empty line is still to end it."""

    def __init__(self, id_: str, write: Callable[[str], None]) -> None:
        self._id = id_
        self._write = write
        self.has_begun = False
        self.is_unread = False
        """the client took nothing of what was written"""

    def begin(self) -> None:
        """Write the first line, which says nothing but that the command has been understood."""
        if not self.has_begun:
            self._send(f"={self._id}\n")
            self.has_begun = True

    def line(self, text: str) -> None:
        """Write a line; nothing where it is empty, since that would end the reply.

        Raises:
            OSError: the client has closed the other end.
        """
        self.begin()
        if words := CONTROL.sub("", text).split():
            self._send(" ".join(words) + "\n")

    def _send(self, text: str) -> None:
        try:
            self._write(text)
        except OSError:
            self.is_unread = True
            raise


def _describe(name: str, function: Callable[..., str | None], open_ended: bool, is_listed: bool) -> Command:
    """Read a command's arguments from its function's parameters; the first is the host."""
    words, fewest, most, writes = [name], 0, 0.0, False
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        word = parameter.name.upper()
        if parameter.kind is parameter.KEYWORD_ONLY:
            writes = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"[{word}...]")
            most = float("inf")
        elif parameter.default is parameter.empty:
            words.append(word)
            fewest, most = fewest + 1, most + 1
        else:
            words.append(f"[{word}]")
            most += 1
    help_ = inspect.getdoc(function) or ""
    return Command(name, function, " ".join(words), help_, fewest, most, writes, open_ended, is_listed)


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

    def command(
        self, name: str, open_ended: bool = False, is_listed: bool = True
    ) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
        """Decorator: register a function under a name."""

        def register(function: Callable[..., str | None]) -> Callable[..., str | None]:
            self._add(_describe(name, function, open_ended, is_listed))
            return function

        return register

    def _add(self, command: Command) -> None:
        if command.name in self._commands:
            raise ValueError(f"command {command.name!r} is registered twice")
        self._commands[command.name] = command

    @property
    def listed(self) -> list[Command]:
        """What clients are told of."""
        return [command for command in self if command.is_listed]

    def find(self, name: str) -> Command:
        """A command by its name.

        Raises:
            CommandError: there is none; the message names one that is nearly called so, if there is one.
        """
        if name in self:
            return self[name]
        import difflib  # Not at every start.

        # GTP's words come first: clients compare them.
        known = [command.name for command in self.listed]
        close = difflib.get_close_matches(name.lower(), known, 1, ALIKE) if len(name) <= MAX_NAME else []
        raise CommandError("unknown command" + (f", did you mean {close[0]}?" if close else ""))

    def is_open_ended(self, line: str) -> bool:
        """Whether the next line that arrives ends a line's command."""
        request = parse(line)
        return request is not None and request.name in self and self[request.name].open_ended

    def answer(self, host: Any, line: str, write: Callable[[str], None] | None = None) -> str | None:
        """Run a line's command and give the text of its one reply; None for a line without a command.

        Args:
            host: handed to the command's function.
            write: takes what is said while the command runs, so that only the rest of the reply is returned; None =
                all is returned at the end.
        Raises:
            OSError: writing failed.
        """
        request = parse(line)
        if request is None:
            return None
        said: list[str] = []
        rest = self._answer(host, request, Reply(request.id, write or said.append))
        return "".join([*said, rest])

    def _answer(self, host: Any, request: Request, reply: Reply) -> str:
        """Run a command; returns what of its reply has not been written yet."""
        try:
            text = self._run(host, request, reply) or ""
            if reply.has_begun:
                return f"{text}\n\n" if text else "\n"
            return success(request.id, text)
        except (CommandError, ValueError) as error:
            return _fail(request, reply, str(error))
        except Exception as error:
            if reply.is_unread:
                raise
            # A fault of ours must not cost the client its game: it is told, and the process lives.
            traceback.print_exc(file=sys.stderr)
            return _fail(request, reply, f"internal error: {type(error).__name__}: {error}")

    def _run(self, host: Any, request: Request, reply: Reply) -> str | None:
        """Look the command up, check the number of its arguments and call it."""
        if not request.name:
            raise CommandError("syntax error: an id without a command")
        command = self.find(request.name)
        if not command.fewest <= len(request.arguments) <= command.most:
            raise CommandError(f"syntax error: expected {command.usage}")
        wanted = {"reply": reply} if command.writes else {}
        return command.function(host, *request.arguments, **wanted)


def _fail(request: Request, reply: Reply, message: str) -> str:
    """The end of a reply that failed; one that has begun as a success can only stop."""
    if not reply.has_begun:
        return failure(request.id, message)
    print(f"{request.name}: {message}", file=sys.stderr, flush=True)
    return "\n"
