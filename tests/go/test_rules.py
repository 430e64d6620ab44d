"""The table of rule sets, names and komi."""

import math

import pytest

from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.position import apply_rules, new_position, play_move
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    MAX_KOMI,
    RULE_KO,
    RULE_KOMI_X2,
    RULE_SETS,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    Rules,
    rules_from,
    rules_json,
    rules_named,
    short_form,
    twice_komi,
    with_flag,
)
from tests.references import rows

KO_NAMES = ("SIMPLE", "POSITIONAL", "SITUATIONAL")
SCORING_NAMES = ("AREA", "TERRITORY")
TAX_NAMES = ("NONE", "SEKI", "ALL")
BONUS_NAMES = ("0", "N-1", "N")


def as_katago_writes(rules: Rules) -> dict[str, object]:
    """The flags under KataGo's names."""
    return {
        "ko": KO_NAMES[rules.ko],
        "scoring": SCORING_NAMES[rules.scoring],
        "tax": TAX_NAMES[rules.tax],
        "suicide": rules.suicide,
        "hasButton": rules.button,
        "whiteHandicapBonus": BONUS_NAMES[rules.handicap_bonus],
        "friendlyPassOk": rules.friendly_pass,
    }


@pytest.mark.shared
def test_named_sets_have_the_flags_katago_gives_them(shared_path):
    compared = set()
    for path in sorted((shared_path / "refs").glob("g170*.jsonl.gz")):
        for row in rows(path):
            assert as_katago_writes(RULE_SETS[row["rules"]]) == row["rules_json"], row["rules"]
            compared.add(row["rules"])
    assert len(compared) == 8


@pytest.mark.parametrize(
    ("name", "ko", "scoring", "suicide"),
    [
        ("tromp-taylor", KO_POSITIONAL, SCORING_AREA, True),
        ("chinese", KO_SIMPLE, SCORING_AREA, False),
        ("chinese-ogs", KO_POSITIONAL, SCORING_AREA, False),
        ("japanese", KO_SIMPLE, SCORING_TERRITORY, False),
        ("korean", KO_SIMPLE, SCORING_TERRITORY, False),
        ("aga", KO_SITUATIONAL, SCORING_AREA, False),
        ("new-zealand", KO_SITUATIONAL, SCORING_AREA, True),
        ("goe", KO_POSITIONAL, SCORING_AREA, True),
        ("stone-scoring", KO_SIMPLE, SCORING_AREA, False),
        ("ancient-territory", KO_SIMPLE, SCORING_TERRITORY, False),
    ],
)
def test_named_sets(name, ko, scoring, suicide):
    rules = RULE_SETS[name]
    assert (rules.name, rules.ko, rules.scoring, rules.suicide) == (name, ko, scoring, suicide)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Chinese", "chinese"),
        (" NZ ", "new-zealand"),
        ("new_zealand", "new-zealand"),
        ("New Zealand", "new-zealand"),
        ("Tromp-Taylor", "tromp-taylor"),
        ("jp", "japanese"),
        ("AGA-Button", "aga-button"),
        ("chineseogs", "chinese-ogs"),
        ("chinesekgs", "chinese-ogs"),
        ("stonescoring", "stone-scoring"),
        ("ancientarea", "stone-scoring"),
        ("ancientterritory", "ancient-territory"),
        ("agabutton", "aga-button"),
        ("tromptaylor", "tromp-taylor"),
        ("goe", "goe"),
        ("Ing", "goe"),
    ],
)
def test_rules_are_found_by_any_common_spelling(text, name):
    assert rules_named(text) is RULE_SETS[name]


@pytest.mark.parametrize("text", ["", "go", "chinese rules of 1949", "-"])
def test_unknown_rules_are_refused_with_the_names_there_are(text):
    with pytest.raises(ValueError, match=r"expected one of tromp-taylor, chinese, .*ancient-territory"):
        rules_named(text)


def test_the_button_needs_area_scoring():
    with pytest.raises(ValueError, match="button"):
        Rules("odd", scoring=SCORING_TERRITORY, button=True)


@pytest.mark.parametrize(("komi", "half_points"), [(0, 0), (7.5, 15), (-3.5, -7), (6, 12), (0.5, 1), (MAX_KOMI, 2000)])
def test_komi_is_kept_in_half_points(komi, half_points):
    assert twice_komi(komi) == half_points


@pytest.mark.parametrize("komi", [3.75, 0.1, math.nan, math.inf, -math.inf, 1e300, -1000.5])
def test_other_komi_is_refused(komi):
    with pytest.raises(ValueError, match=r"komi is .*expected whole or half points"):
        twice_komi(komi)


def test_apply_rules_writes_all_flags():
    position = new_position(5)
    apply_rules(position, RULE_SETS["stone-scoring"], 3.5)
    assert position.rules.tolist() == [KO_SIMPLE, SCORING_AREA, TAX_ALL, 0, 0, 0, 1, 7]
    apply_rules(position, RULE_SETS["new-zealand"], 7)
    assert position.rules[[RULE_KO, RULE_TAX, RULE_SUICIDE, RULE_KOMI_X2]].tolist() == [KO_SITUATIONAL, 0, 1, 14]


def test_apply_rules_makes_the_first_key_again():
    early, late = new_position(5), new_position(5)
    apply_rules(early, RULE_SETS["aga"], 7)
    assert early.hashes[0] != late.hashes[0]
    apply_rules(early, RULE_SETS["chinese"], 7)
    assert early.hashes[0] == late.hashes[0]


def test_apply_rules_refuses_another_ko_rule_once_moves_were_played():
    position = new_position(5)
    apply_rules(position, RULE_SETS["chinese"], 7)
    play_move(position, PASS, BLACK)
    apply_rules(position, RULE_SETS["japanese"], 6.5)
    for name in ("aga", "tromp-taylor"):
        with pytest.raises(ValueError, match="before the first move"):
            apply_rules(position, RULE_SETS[name], 6.5)
    play_move(position, PASS, WHITE)


def test_rules_are_written_and_read_as_katago_has_them():
    assert rules_json(rules_named("chinese")) == (
        '{"friendlyPassOk":true,"hasButton":false,"ko":"SIMPLE","scoring":"AREA","suicide":false,"tax":"NONE",'
        '"whiteHandicapBonus":"N"}'
    )
    for rules in RULE_SETS.values():
        found = rules_from(rules_json(rules))
        assert as_katago_writes(found) == as_katago_writes(rules)
        assert rules_from(f" {rules.name.upper()} ") is rules


def test_katagos_short_form_is_written_and_read():
    """Its SGF files carry it."""
    assert rules_from("koPOSITIONALscoreAREAtaxNONEsui1") is rules_named("tromp-taylor")
    assert rules_from(" koSIMPLE scoringTERRITORY sui0") is rules_named("japanese")
    for rules in (*RULE_SETS.values(), with_flag(rules_named("japanese"), "suicide", "true")):
        assert as_katago_writes(rules_from(short_form(rules))) == as_katago_writes(rules)


def test_rules_of_json_begin_with_tromp_taylors():
    assert rules_from("{}") is rules_named("tromp-taylor")
    assert rules_from('{"scoring":"territory","suicide":"false","KO":"Simple"}') is rules_named("japanese")
    assert rules_from('{"scoring":"TERRITORY","tax":"NONE"}').name == "custom"
    assert rules_from('{"score":"TERRITORY","ko":"SIMPLE","suicide":false}') is rules_named("japanese")
    assert rules_from('{"friendlyPassOk":true}') is rules_named("goe")


def test_one_flag_can_be_changed_and_rules_with_a_name_keep_it():
    changed = with_flag(rules_named("chinese"), "suicide", "TRUE")
    assert (changed.name, changed.suicide, changed.ko) == ("custom", True, KO_SIMPLE)
    assert with_flag(changed, "suicide", "false") is rules_named("chinese")
    assert with_flag(rules_named("aga"), "hasbutton", "true") is rules_named("aga-button")


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "rules are not a JSON object"),
        ('{"ko":"SPIGHT"}', "rules: ko is 'SPIGHT', expected one of simple, positional, situational"),
        ('{"ko":null}', "rules: ko is 'None', expected"),
        ('{"passes":2}', "rules have no 'passes', expected one of friendlyPassOk, hasButton, ko"),
        ('{"hasButton":true,"scoring":"TERRITORY"}', "the button needs area scoring"),
        ("koSIMPLEscoreSTONES", "'scoreSTONES' is not understood"),
        ("egyptian", "no rules are called 'egyptian'"),
    ],
)
def test_rules_that_are_none_are_refused_in_one_line(text, message):
    with pytest.raises(ValueError) as caught:
        rules_from(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("flag", ["ko", "scoring", "tax", "handicap_bonus"])
@pytest.mark.parametrize("value", [-1, 3])
def test_rules_of_an_unknown_kind_are_refused(flag, value):
    with pytest.raises(ValueError, match=f"rules test: {flag} is {value}"):
        Rules("test", **{flag: value})
