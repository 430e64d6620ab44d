"""The rules of the game, by name or flag by flag. The board keeps its moves, which are replayed under the new rules.

Sources: KataGo, docs/GTP_Extensions.md; kgsGtp's documentation of ``kgs-rules``.
"""

from engine.go.rules import rules_from, rules_json, rules_named, with_flag
from gtp.host import Host
from gtp.protocol import CommandError, Registry

COMMANDS = Registry()


@COMMANDS.command("kata-get-rules")
def kata_get_rules(host: Host) -> str:
    """The rules in force as a JSON object of flags."""
    return rules_json(host.record.game.rules)


@COMMANDS.command("kata-set-rules")
def kata_set_rules(host: Host, *rules: str) -> None:
    """Play by these rules: a name such as chinese, japanese, aga, or a JSON object of flags."""
    if not rules:
        raise CommandError("syntax error: expected kata-set-rules NAME or kata-set-rules {FLAGS}")
    host.record.set_rules(rules_from(" ".join(rules)))


@COMMANDS.command("kata-set-rule")
def kata_set_rule(host: Host, flag: str, value: str) -> None:
    """Change one flag of the rules: ko, scoring, tax, suicide, hasButton, whiteHandicapBonus or friendlyPassOk."""
    host.record.set_rules(with_flag(host.record.game.rules, flag, value))


@COMMANDS.command("kgs-rules")
def kgs_rules(host: Host, rules: str) -> None:
    """Play by the rules that KGS calls chinese, japanese, aga or new_zealand."""
    # KGS plays its Chinese rules with superko.
    host.record.set_rules(rules_named("chinese-kgs" if rules.lower() == "chinese" else rules))
