"""``make map``: what pages list of the sources: the GTP commands in docs/gtp.md, the rule sets in docs/rules.md."""

from collections.abc import Iterator
from pathlib import Path

from engine.go.rules import (
    ALIASES,
    BONUS_N,
    BONUS_N_MINUS_ONE,
    BONUS_NONE,
    KATAGO_KEYS,
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    RULE_SETS,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    TAX_SEKI,
    Rules,
)
from gtp.commands import COMMANDS
from gtp.commands.core import families
from gtp.protocol import Command

DOCS = Path(__file__).resolve().parent.parent / "docs"
KO = {KO_SIMPLE: "simple", KO_POSITIONAL: "positional superko", KO_SITUATIONAL: "situational superko"}
SCORING = {SCORING_AREA: "area", SCORING_TERRITORY: "territory"}
TAX = {TAX_NONE: "", TAX_SEKI: "those in seki", TAX_ALL: "those in seki, and two of every living group"}
BONUS = {BONUS_NONE: "", BONUS_N_MINUS_ONE: "N - 1", BONUS_N: "N"}


def with_list(path: Path, name: str, text: str) -> str:
    """A page with another text between its marks ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""
    page = path.read_text(encoding="utf-8")
    before, begin, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    assert begin and end, f"{path}: no marks of {name}"
    return f"{before}{begin}{text}\n{end}{after}"


def gtp_commands() -> Iterator[str]:
    """All commands, a table a family."""
    for heading, commands in families(COMMANDS):
        subject, colon, rest = f"{heading}.".partition(":")
        yield f"\n**{subject}**{colon}{rest}\n\n| command | what it does |\n|---|---|\n"
        yield from (f"| `{command.usage}` | {_summary(command)} |\n" for command in commands)


def _summary(command: Command) -> str:
    """The first paragraph of a command's help."""
    line = " ".join(command.summary.split("\n\n")[0].split()).replace("|", "\\|")
    return line if command.is_listed else f"{line} Not in `list_commands`."


def rule_sets() -> Iterator[str]:
    """All named rule sets."""
    yield (
        "\n| name | other names | ko | scoring | points that do not count | suicide "
        "| White's bonus for N handicap stones | dead stones agreed on |\n|---|---|---|---|---|---|---|---|\n"
    )
    for rules in RULE_SETS.values():
        yield f"| {' | '.join(_cells(rules))} |\n"


def _cells(rules: Rules) -> Iterator[str]:
    """A row of the table."""
    yield f"`{rules.name}`"
    yield ", ".join(f"`{other}`" for other, name in ALIASES.items() if name == rules.name)
    yield KO[rules.ko]
    yield SCORING[rules.scoring] + (", button" if rules.button else "")
    yield TAX[rules.tax]
    yield "yes" if rules.suicide else "no"
    yield BONUS[rules.handicap_bonus]
    # Under territory rules dead stones are prisoners, whatever the flag says (engine/play/score.py, is_strict).
    yield "yes" if rules.friendly_pass or rules.scoring == SCORING_TERRITORY else "no"


def rule_flags() -> Iterator[str]:
    """The flags that a rule set is made of."""
    yield "\n| flag | values |\n|---|---|\n"
    for key, (_, values) in KATAGO_KEYS.items():
        words = [str(value).lower() if isinstance(value, bool) else value for value in values]
        yield f"| `{key}` | {', '.join(f'`{word}`' for word in words)} |\n"


LISTS = {
    ("gtp.md", "commands"): gtp_commands,
    ("rules.md", "rule sets"): rule_sets,
    ("rules.md", "flags"): rule_flags,
}
"""Page, name of the marks, and what stands between them"""


if __name__ == "__main__":
    for (page, name), lines in LISTS.items():
        text = with_list(DOCS / page, name, "".join(lines()))
        (DOCS / page).write_text(text, encoding="utf-8")
