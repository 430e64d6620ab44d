"""The text layer of GTP, version 2: lines, replies and a registry of commands. It knows no Go.

A program makes a :class:`Registry`, registers functions with :meth:`Registry.command` and passes every input line to
:meth:`Registry.answer`, which returns the text of exactly one reply, or None for a line without a command. Names and
number of a command's arguments are those of its function, so usage, checks and ``list_commands`` cannot disagree. A
function reports failure by :class:`CommandError`, or by any ``ValueError`` whose message begins with GTP's words for
the failure.

A function with a keyword parameter ``reply`` gets a :class:`Reply` and may write lines of it while it runs; the
returned text is the last line. The next line of input stops an open-ended command.

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
"""Characters of an error message; a longer one quotes a long line of the client"""

ALIKE = 0.7
"""Smallest similarity (:mod:`difflib`, 1 = equal) of an unknown name and the command suggested for it"""
MAX_NAME = 60
"""Characters of the longest unknown name for which a command is suggested"""

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
MAX_DIGITS, MAX_NUMBER = 40, 1e10
"""Largest number of characters of a number, and its largest absolute value"""
BYTE_ORDER_MARK = "\ufeff"
"""Sent by some programs before their first line"""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, carriage return included, tab and newline excluded"""
COLORS = {"b": "b", "black": "b", "w": "w", "white": "w"}
"""Word for a color in GTP and in KataGo's JSON -> its first letter"""


class CommandError(Exception):
    """Failure of a command; the message is the reply."""


class Request(NamedTuple):
    """The command of an input line."""

    id: str
    """digits as sent; empty without an id"""
    name: str
    arguments: list[str]


def clean(line: str) -> str:
    """A line without control characters, byte order mark, comment and surrounding space; tabs become spaces."""
    return CONTROL.sub("", line.partition("#")[0]).removeprefix(BYTE_ORDER_MARK).replace("\t", " ").strip(" \n")


def parse(line: str) -> Request | None:
    """The command of a line; None for a line of space and comment alone.

    A first word of digits is the id, if it is not larger than GTP allows; the name is empty in a line of an id alone.
    """
    words = [word for word in clean(line).split(" ") if word]
    if not words:
        return None
    head = words[0]
    is_id = head.isascii() and head.isdigit() and len(head) <= len(str(MAX_ID)) and int(head) <= MAX_ID
    id_ = words.pop(0) if is_id else ""
    return Request(id_, words[0] if words else "", words[1:])


def success(id_: str, text: str = "") -> str:
    """A reply with a result. The first line may be empty (diagrams); later empty ones would end it and are left out."""
    first, *rest = CONTROL.sub("", text).replace("\t", " ").split("\n")
    body = "\n".join([first.rstrip(), *(line.rstrip() for line in rest if line.strip())])
    return f"={id_}{' ' if body else ''}{body}\n\n"


def failure(id_: str, message: str) -> str:
    """A reply with an error message on one line."""
    line = " ".join(CONTROL.sub(" ", message).split()) or "failed"
    return f"?{id_} {line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + '...'}\n\n"


def integer(text: str) -> int:
    """The integer of an argument.

    Raises:
        CommandError: the argument is not an integer.
    """
    if not INTEGER.fullmatch(text):
        raise CommandError(f"syntax error: {text!r} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """The decimal number of an argument: finite, below 1e10, of up to 40 characters, since programs write many digits.

    Raises:
        CommandError: the argument is not such a number.
    """
    found = float(text) if len(text) <= MAX_DIGITS and NUMBER.fullmatch(text) else math.inf
    if abs(found) >= MAX_NUMBER:
        raise CommandError(f"syntax error: {text!r} is not a number")
    return found


def switch(name: str, text: str) -> bool:
    """The value of an argument true or false, in any case.

    Args:
        name: name of the setting, for the message.
    Raises:
        CommandError: the argument is neither.
    """
    if text.lower() not in ("true", "false"):
        raise CommandError(f"syntax error: {name} is {text!r}, expected true or false")
    return text.lower() == "true"


@dataclass(frozen=True)
class Command:
    """A registered command."""

    name: str
    function: Callable[..., str | None]
    """called with the host, one string per argument and, if ``writes``, ``reply``; returns the text of the result"""
    usage: str
    """``play COLOR VERTEX``, ``loadsgf FILE [MOVE]``, ``set_free_handicap [VERTEX...]``"""
    summary: str
    fewest: int
    most: float
    writes: bool
    """the function takes a :class:`Reply` to write to"""
    open_ended: bool
    """the next line of input stops the command"""
    is_listed: bool
    """``list_commands`` and ``known_command`` show the command; an unlisted one is answered too"""


class Reply:
    """A successful reply, written line by line while its command runs; its end is left to the registry."""

    def __init__(self, id_: str, write: Callable[[str], None]) -> None:
        self._id = id_
        self._write = write
        self.has_begun = False
        self.is_unread = False
        """writing failed: the client does not read replies"""

    def begin(self) -> None:
        """Write the first line, the sign of success alone, unless it is written."""
        if not self.has_begun:
            self._send(f"={self._id}\n")
            self.has_begun = True

    def line(self, text: str) -> None:
        """Write a line; an empty one, which would end the reply, is left out.

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
    """The commands of a program, in the order of their registration.

    Threads: register in one thread before the first answer; :meth:`answer` changes nothing here.
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
        """The commands of ``list_commands``."""
        return [command for command in self if command.is_listed]

    def find(self, name: str) -> Command:
        """A command by its name.

        Raises:
            CommandError: unknown command; the message suggests a command of a similar name.
        """
        if name in self:
            return self[name]
        import difflib  # Not at every start.

        # GTP's words come first, since clients compare them.
        known = [command.name for command in self.listed]
        close = difflib.get_close_matches(name.lower(), known, 1, ALIKE) if len(name) <= MAX_NAME else []
        raise CommandError("unknown command" + (f", did you mean {close[0]}?" if close else ""))

    def is_open_ended(self, line: str) -> bool:
        """Whether the command of a line is open-ended."""
        request = parse(line)
        return request is not None and request.name in self and self[request.name].open_ended

    def answer(self, host: Any, line: str, write: Callable[[str], None] | None = None) -> str | None:
        """Run the command of a line and return the text of its one reply; None for a line without a command.

        Args:
            host: first argument of the command's function.
            write: takes lines of the reply while the command runs, so that only the rest is returned; None = the whole
                reply is returned.
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
        """Run a command; returns the part of its reply that is not written yet."""
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
            # A bug here must not cost the client its game: the reply names it, and the process continues.
            traceback.print_exc(file=sys.stderr)
            return _fail(request, reply, f"internal error: {type(error).__name__}: {error}")

    def _run(self, host: Any, request: Request, reply: Reply) -> str | None:
        """Find the command, check the number of its arguments and call its function."""
        if not request.name:
            raise CommandError("syntax error: an id without a command")
        command = self.find(request.name)
        if not command.fewest <= len(request.arguments) <= command.most:
            raise CommandError(f"syntax error: expected {command.usage}")
        wanted = {"reply": reply} if command.writes else {}
        return command.function(host, *request.arguments, **wanted)


def _fail(request: Request, reply: Reply, message: str) -> str:
    """The end of a failed reply; one that has begun as a success can only end."""
    if not reply.has_begun:
        return failure(request.id, message)
    print(f"{request.name}: {message}", file=sys.stderr, flush=True)
    return "\n"
