"""``--help`` of ``keima`` and all its commands, in one style.

An option's value is called by what it is (SECONDS, NETWORK), a number without a unit N or X; default and range stand in
brackets behind the text, which begins with a small letter unless a name does, and ends without a full stop.
"""

import copy
import re

import click
import pytest

from gtp.cli import SUBCOMMANDS, main
from gtp.cli.arguments import Number, OneOf, Whole
from gtp.commands import COMMANDS

NAMES = {"KataGo's", "White's", "REINFORCE", "Gumbel"}
"""What a help may begin with though it is no small letter"""
BRACKETS = re.compile(r"  \[(default: [^\]]+|required|[^\]]*\b(to|or more|or less)\b[^\]]*)\]$")
IN_SECONDS = ("seconds", "move_seconds", "ponder_seconds", "lag", "patience_s", "tolerance_s")
LEANS = re.compile(
    r"(of|in|as|its|and|how|what|by|also|after|then|from|to|this|these|those|both|most|try|just) "
    r"|.*\b(as for|of these|of those|this many|this one|so many|the other$|goes? on|any more)\b"
)
"""Texts that begin without their thing, or lean on the option above"""


def walk(command, *path):
    """All commands with their names, subcommands too."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, *path, name)


def context_of(path, command):
    """As ``keima`` makes it: what is set there holds below."""
    return click.Context(command, info_name=" ".join(path), parent=click.Context(main, **main.context_settings))


def faults_of(option, context):
    """What is not in style about an option's line of help."""
    head, text = option.get_help_record(context)
    metavar = "" if option.is_flag else option.make_metavar(context)
    words = option.help or ""
    first = words.split()[0].rstrip(":,") if words else ""
    is_name = first in NAMES or first.isupper() or not first[:1].isalpha()
    is_word = isinstance(option.type, OneOf) or "|" in metavar or re.fullmatch(r"[A-Z0-9=+,.\[\] ]+", metavar)
    behind = text.removeprefix(words)
    faults = {
        "no text": not words.strip(),
        "ends with a full stop or space": words.endswith((".", " ")),
        "begins with a capital": not (first[:1].islower() or is_name),
        "tells the default in its text": bool(re.search(r"by default|the default|\[default|without it", words)),
        "its value has no name": bool(metavar) and not is_word,
        "its value is called by its type": bool(
            {"INTEGER", "FLOAT", "TEXT", "RANGE", "BOOLEAN"} & set(metavar.split())
        ),
        "its range is click's": isinstance(option.type, click.IntRange | click.FloatRange)
        and not isinstance(option.type, Whole | Number),
        "takes seconds": option.name in IN_SECONDS and metavar != "SECONDS",
        "takes minutes": option.name == "minutes" and metavar != "MINUTES",
        "what stands behind the text": "<" in behind or not (behind == "" or BRACKETS.fullmatch(behind)),
        "does not name its thing": bool(LEANS.match(words)),
    }
    return [f"{head}  {text}: {fault}" for fault, is_so in faults.items() if is_so]


def test_options_have_one_style():
    """Times were "s" here, "FLOAT RANGE" there, and defaults stood in the text, in brackets of ours or in click's."""
    faults, n_seen = list[str](), 0
    for path, command in walk(main, "keima"):
        context = context_of(path, command)
        for option in command.get_params(context):
            if isinstance(option, click.Option) and option.help:
                n_seen += 1
                # Hidden options are lines of keima zero's recipe, printed with their help.
                option = copy.copy(option)
                option.hidden = False
                faults += [f"{' '.join(path)} {fault}" for fault in faults_of(option, context)]
    assert n_seen > 300 and not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        (click.Option(["--seconds"], type=Number(0.5), help="time"), "takes seconds"),
        (click.Option(["--n"], type=click.IntRange(0), help="number"), "its range is click's"),
        (click.Option(["--n"], type=int, help="number"), "its value is called by its type"),
        (click.Option(["--n"], type=Whole(), help="A number."), "ends with a full stop or space"),
        (click.Option(["--n"], type=Whole(), help="Number of games"), "begins with a capital"),
        (click.Option(["--n"], type=Whole(), help="number, by default 3"), "tells the default in its text"),
        (click.Option(["--n"], type=Whole()), "no text"),
        (click.Option(["--n"], type=Whole(), help="of the board"), "does not name its thing"),
        (click.Option(["--n"], type=Whole(), help="games of each of these matches"), "does not name its thing"),
    ],
)
def test_a_fault_is_found(option, fault):
    assert any(found.endswith(f": {fault}") for found in faults_of(option, click.Context(click.Command("x"))))


def test_a_range_stands_behind_the_default():
    context = click.Context(click.Command("x"), show_default=True)
    option = click.Option(["--n"], type=Whole(2, 25), default=9, help="board")
    assert option.get_help_record(context) == ("--n N", "board  [default: 9; 2 to 25]")
    option = click.Option(["--x"], type=Number(0, min_open=True), default=1, help="rate")
    assert option.get_help_record(context) == ("--x X", "rate  [default: 1; more than 0]")


def test_commands_begin_with_one_sentence():
    firsts = [" ".join((command.help or "").split("\n\n")[0].split()) for _, command in walk(main, "keima")]
    assert len(firsts) > 20
    assert not [first for first in firsts if not first[:1].isupper() or not first.endswith(".")]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_command_says_the_same_in_the_list_and_in_its_own_help(name):
    """keima benchmark found the fastest settings in one and the strongest in the other."""
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.help is not None
    assert " ".join(command.help.split("\n\n")[0].split()) == f"{SUBCOMMANDS[name][1]}."


def test_the_command_of_gtp_says_where_the_settings_are_found():
    assert "keima benchmark" in COMMANDS["kata-benchmark"].summary
    assert "strongest" in SUBCOMMANDS["benchmark"][1] and "strongest" in COMMANDS["kata-benchmark"].summary
