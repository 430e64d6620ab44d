"""The text layer of GTP, version 2: lines, replies and a registry of commands. It knows no Go.

A program makes a :class:`Registry`, registers functions with :meth:`Registry.command` and passes every input line to
:meth:`Registry.answer`, which returns the text of exactly one reply, or None for a line without a command. Names and
number of a command's arguments are those of its function, so usage and checks cannot disagree. A
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
"""Maximum length of an error message, in characters; a message that quotes a long line of the client is cut"""

ALIKE = 0.7
"""Minimum similarity (:mod:`difflib`, 1 = equal) of an unknown name and the command suggested for it"""
MAX_NAME = 60
"""Maximum length, in characters, of an unknown name for which a command is suggested"""

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
MAX_DIGITS, MAX_NUMBER = 40, 1e10
"""Maximum number of characters of a decimal number, and the limit that its absolute value must stay below"""
BYTE_ORDER_MARK = "\ufeff"
"""Character that some programs send before their first line"""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, carriage return included, tab and newline excluded"""
COLORS = {"b": "b", "black": "b", "w": "w", "white": "w"}
"""Word for a color in GTP and in KataGo's JSON -> ``b`` or ``w``"""


class CommandError(Exception):
    """Failure of a command; the error's message becomes the text of the reply."""


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
    """Parse the command of a line; None if the line has only space and a comment.

    A first word of digits is the id, if it is not larger than GTP allows. A line with only an id has an empty name.
    """
    words = [word for word in clean(line).split(" ") if word]
    if not words:
        return None
    head = words[0]
    is_id = head.isascii() and head.isdigit() and len(head) <= len(str(MAX_ID)) and int(head) <= MAX_ID
    id_ = words.pop(0) if is_id else ""
    return Request(id_, words[0] if words else "", words[1:])


def success(id_: str, text: str = "") -> str:
    """A success reply. Its first line may be empty (diagrams); later empty lines, which would end it, are left out."""
    first, *rest = CONTROL.sub("", text).replace("\t", " ").split("\n")
    body = "\n".join([first.rstrip(), *(line.rstrip() for line in rest if line.strip())])
    return f"={id_}{' ' if body else ''}{body}\n\n"


def failure(id_: str, message: str) -> str:
    """A failure reply, with the error message on one line."""
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
    """The decimal number of an argument: below 1e10 in absolute value, of at most 40 characters, as some programs send.

    Raises:
        CommandError: the argument is not such a number.
    """
    found = float(text) if len(text) <= MAX_DIGITS and NUMBER.fullmatch(text) else math.inf
    if abs(found) >= MAX_NUMBER:
        raise CommandError(f"syntax error: {text!r} is not a number")
    return found


def switch(name: str, text: str) -> bool:
    """The bool that an argument ``true`` or ``false``, in upper or lower case, stands for.

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
    """the command's name and arguments, such as ``play COLOR VERTEX`` or ``set_free_handicap [VERTEX...]``"""
    summary: str
    fewest: int
    most: float
    writes: bool
    """the function takes a :class:`Reply` to write to"""
    open_ended: bool
    """the next line of input stops the command"""
    is_listed: bool
    """``list_commands`` and ``known_command`` show the command; one that they do not show is answered too"""


class Reply:
    """A success reply that a command writes line by line while it runs; the registry writes the end."""

    def __init__(self, id_: str, write: Callable[[str], None]) -> None:
        self._id = id_
        self._write = write
        self.has_begun = False
        self.is_unread = False
        """writing failed: the client does not read replies"""

    def begin(self) -> None:
        """Write the first line, only ``=`` and the id, unless it has been written."""
        if not self.has_begun:
            self._send(f"={self._id}\n")
            self.has_begun = True

    def line(self, text: str) -> None:
        """Write a line; an empty line, which would end the reply, is not written.

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


def _describe(name: str, function: Callable[..., str | None], open_ended: bool, is_listed: bool, given: str) -> Command:
    """Describe a command by its function: its arguments are the function's parameters after the host."""
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
    usage = f"{name} {given}" if given else " ".join(words)
    return Command(name, function, usage, help_, fewest, most, writes, open_ended, is_listed)


class Registry:
    """The commands of a program, in the order of their registration.

    Threads: one thread registers all commands before the first answer; :meth:`answer` does not change the registry.
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
        self, name: str, open_ended: bool = False, is_listed: bool = True, arguments: str = ""
    ) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
        """Decorator: register a function under a name.

        Args:
            arguments: as the usage shows them; empty = the function's parameters.
        """

        def register(function: Callable[..., str | None]) -> Callable[..., str | None]:
            self._add(_describe(name, function, open_ended, is_listed, arguments))
            return function

        return register

    def _add(self, command: Command) -> None:
        if command.name in self._commands:
            raise ValueError(f"command {command.name!r} is registered twice")
        self._commands[command.name] = command

    @property
    def listed(self) -> list[Command]:
        """The commands that ``list_commands`` shows."""
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
        """Whether a line's command is open-ended: runs until the next line."""
        request = parse(line)
        return request is not None and request.name in self and self[request.name].open_ended

    def answer(self, host: Any, line: str, write: Callable[[str], None] | None = None) -> str | None:
        """Run the command of a line and return the text of its reply; None for a line without a command.

        Args:
            host: first argument of the command's function.
            write: called with lines of the reply while the command runs; the rest is returned. None = the whole
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
        """Run a command; return the part of its reply that has not been written."""
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
    """The rest of a failed command's reply: a failure, or only the end if a success reply has begun."""
    if not reply.has_begun:
        return failure(request.id, message)
    print(f"{request.name}: {message}", file=sys.stderr, flush=True)
    return "\n"
