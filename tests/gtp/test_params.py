"""Strength to taste over GTP: parameters by our names and KataGo's, in the real process."""

import json
import re
from types import SimpleNamespace

import pytest

from engine.config import PlayOptions
from gtp.commands.params import FIXED, KATAGO, NONE_HERE, kata_get_models
from weights import DEFAULT, FOLDER, entries

FAILS = {
    "kata-set-param": "? syntax error: expected kata-set-param NAME VALUE",
    "kata-set-param maxVisits": "? syntax error: expected kata-set-param NAME VALUE",
    "kata-set-param maxVisits many": '? maxVisits is "many", expected a whole number',
    "kata-set-param maxVisits 2.5": '? maxVisits is "2.5", expected a whole number',
    "kata-set-param visits -1": "? visits is -1, expected 0 to 1000000000",
    "kata-set-param visits 9999999999": "? visits is 9999999999, expected 0 to 1000000000",
    "kata-set-param maxTime nan": "? maxTime is nan, expected 0.0 to 86400.0 s",
    "kata-set-param maxPlayouts 20": "? maxPlayouts is '20', expected 1125899906842624: the search has no "
    "such parameter",
    "kata-set-param seconds nan": "? seconds is nan, expected 0.0 to 86400.0 s",
    "kata-set-param maxTime -1": "? maxTime is -1.0, expected 0.0 to 86400.0 s",
    "kata-set-param policy-only yes": '? policy-only is "yes", expected true or false',
    "kata-set-param move-choice best": '? move-choice is "best", expected visits or lcb',
    "kata-set-param memory 64": "? memory cannot change while the engine runs: restart keima gtp with --memory",
    "kata-set-param weights x": "? weights is not a parameter: restart keima gtp with --weights",
    "kata-set-param chosenMoveTemperature 0.1": "? chosenMoveTemperature is not a parameter: after "
    "temperature-moves the best move is played; set chosenMoveTemperatureEarly",
    "kata-set-param humanSLProfile 5k": "? unknown human profile '5k', expected rank_9d to rank_20k, "
    "preaz_9d to preaz_20k, both also as rank_BLACK_WHITE, or proyear_1800 to proyear_2023",
    "kata-set-param humanSLProfile rank_5k": "? human profile rank_5k: there is no network to imitate it",
    "kata-set-param humanSLPlaExploreProbWeightless 0.2": "? humanSLPlaExploreProbWeightless is '0.2', expected 0: the "
    "search has no such parameter",
    "kata-set-param human-weights x": "? human-weights is not a parameter: restart keima gtp with --human-weights",
    "kata-get-param rules": "? rules is not a parameter: use kata-set-rules",
    "kata-set-param mercy 0.3": "? option mercy was removed: rollouts are played to the end",
    "kata-get-param": "? syntax error: expected kata-get-param NAME",
    "kata-set-param allowResignation no": "? syntax error: allowResignation is 'no', expected true or false",
    "kata-set-params": '? syntax error: expected a JSON object such as {"maxVisits":200}',
    "kata-set-params [1]": '? syntax error: expected a JSON object such as {"maxVisits":200}',
    "kata-set-params {x": '? syntax error: expected a JSON object such as {"maxVisits":200}',
    'kata-set-params {"visits":true}': '? visits is "true", expected a whole number',
    'kata-set-params {"memory":64}': "? memory cannot change while the engine runs: restart keima gtp with --memory",
    "kata-get-param antiMirror": "? unknown parameter 'antiMirror', expected one that kata-list-params lists",
}


def test_the_level_is_shown_with_its_scale_and_set(network):
    assert network("keima-level") == "= max (full strength)"
    assert network("keima-level 6k") == "= 6k (OGS 2026, 9x9)"
    assert network("kata-get-param level") == "= 6k"
    assert network("genmove b") != "= resign"
    assert network("keima-level auto") == "= auto: 10k (OGS 2026, 9x9)"
    assert network("keima-level 30k").startswith('? level is "30k", expected 20k, 19k, ')
    assert network("keima-level max") == "= max (full strength)"


def test_levels_need_the_network_that_they_were_measured_with(engine):
    assert engine.ask("keima-level 6k").startswith("? level 6k was measured with the network default (sha256 ")


@pytest.mark.parametrize(("command", "reply"), FAILS.items())
def test_what_cannot_be_set_is_one_clear_line(engine, command, reply):
    assert engine.ask(command) == reply


def test_all_that_is_listed_can_be_read_and_set_to_what_it_is(engine):
    names = engine.ask("kata-list-params")[2:].split()
    assert len(names) == len(set(names)) and not set(names) & set(FIXED)
    assert {"visits", "policy-only", "temperature-moves", "maxVisits", "maxTime", "numSearchThreads"} <= set(names)
    for name in names:
        value = engine.ask(f"kata-get-param {name}")
        assert re.fullmatch(r"= [a-z0-9_.-]+", value)
        assert engine.ask(f"kata-set-param {name} {value[2:]}") == "="
        assert engine.ask(f"kata-get-param {name}") == value


def test_several_are_changed_together_or_none(engine):
    before = json.loads(engine.ask("kata-get-params")[2:])
    assert list(before) == [*engine.ask("kata-list-params")[2:].split(), *NONE_HERE]
    assert before["visits"] == before["maxVisits"] == 8 and before["policy-only"] is False
    assert engine.ask(f"kata-set-params {json.dumps(before)}") == "="
    assert json.loads(engine.ask("kata-get-params")[2:]) == before
    assert engine.ask('kata-set-params {"maxVisits": 20, "temperature": "0.5", "policy-only": true}') == "="
    after = json.loads(engine.ask("kata-get-params")[2:])
    changed = {"visits", "maxVisits", "temperature", "chosenMoveTemperatureEarly", "policy-only"}
    assert {name for name in after if after[name] != before[name]} == changed
    refused = engine.ask('kata-set-params {"maxVisits": 30, "temperature": "much"}')
    assert refused == '? temperature is "much", expected a number'
    assert json.loads(engine.ask("kata-get-params")[2:]) == after
    assert engine.ask("kata-set-params {}") == "="


def test_what_the_engine_decides_is_told(engine):
    """By KataGo's names once 0 threads and values of -1, which its own ranges do not have."""
    told = json.loads(engine.ask("kata-get-params")[2:])
    assert told["numSearchThreads"] >= 1 and told["batch"] >= 1 and told["virtual-loss"] >= 0.0
    assert told["cpuctExploration"] > 0.0 and told["root-symmetries"] in ("1", "8")
    assert 0.0 <= told["subtreeValueBiasFactor"] <= 1.0 and 0.0 <= told["valueWeightExponent"] <= 1.0


def test_what_katagos_search_has_besides_is_off_here(engine):
    """LizzieYzy asks for it at the start, and may set it."""
    name = "playoutDoublingAdvantage"
    assert engine.ask(f"kata-get-param {name}") == "= 0.0"
    assert engine.ask(f"kata-set-param {name} 0.0") == "="
    refused = f"? {name} is '0.04', expected 0: the search has no such parameter"
    assert engine.ask(f"kata-set-param {name} 0.04") == refused
    assert name not in engine.ask("kata-list-params").split()


def test_analyses_are_widened_by_katagos_name_or_ours(engine):
    assert engine.ask("kata-set-param analysisWideRootNoise 0") == "="
    assert engine.ask("kata-get-param wide-root-noise") == "= 0.0"
    assert engine.ask("kata-set-param analysisWideRootNoise 0.04") == "="
    assert engine.ask("kata-get-param wide-root-noise") == "= 0.04"
    assert engine.ask("kata-set-param wide-root-noise 6") == "? wide-root-noise is 6.0, expected 0.0 to 5.0"
    assert engine.ask("kata-set-param wide-root-noise 0") == "="


def test_limits_are_lifted_as_katago_lifts_them(engine):
    """LizzieYzy's visits and playouts of 0, and KataGo's own default of maxTime."""
    before = engine.ask("kata-get-param maxVisits")[2:], engine.ask("kata-get-param maxTime")[2:]
    for name, value, found in (("maxVisits", 1 << 50, "1000000000"), ("maxTime", "1e20", "86400.0")):
        assert engine.ask(f"kata-set-param {name} {value}") == "="
        assert engine.ask(f"kata-get-param {name}") == f"= {found}"
    assert engine.ask(f"kata-set-param maxPlayouts {1 << 50}") == "="
    assert engine.ask("kata-get-param maxPlayouts") == f"= {1 << 50}"
    for name, value in zip(("maxVisits", "maxTime"), before, strict=True):
        assert engine.ask(f"kata-set-param {name} {value}") == "="


def test_resigning_is_switched_off_and_on(engine):
    assert engine.ask("kata-get-param allowResignation") == "= true"
    assert engine.ask("kata-set-param resign-below -0.8") == "="
    assert engine.ask("kata-set-param allowResignation true") == "="
    assert engine.ask("kata-get-param resign-below") == "= -0.8", "it was on"
    assert engine.ask("kata-set-param allowResignation false") == "="
    assert engine.ask("kata-get-param allowResignation") == "= false"
    assert engine.ask("kata-get-param resign-below") == "= -1.0"
    assert engine.ask("kata-set-param allowResignation true") == "="
    assert engine.ask("kata-get-param resign-below") == f"= {PlayOptions.resign_below}"


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_parameters_none_undoes_another(engine, turned):
    """allowResignation and the threshold are one option of ours; the last of them won."""

    def set_both(**given):
        words = dict(reversed(given.items())) if turned else given
        assert engine.ask(f"kata-set-params {json.dumps(words)}") == "="
        return engine.ask("kata-get-param resign-below")

    assert set_both(allowResignation=False, resignThreshold=-0.5) == "= -1.0"
    assert set_both(allowResignation=True, resignThreshold=-0.5) == "= -0.5"
    assert engine.ask(f"kata-set-param resign-below {PlayOptions.resign_below}") == "="


def test_katagos_names_and_ours_mean_the_same_option(engine):
    assert engine.ask("kata-set-param maxVisits 12") == "="
    assert engine.ask("kata-get-param visits") == "= 12"
    assert engine.ask("kata-set-param temperature_moves 4") == "="
    assert engine.ask("kata-get-param temperature-moves") == "= 4"
    assert set(KATAGO.values()) >= {"visits", "seconds", "threads", "lag", "temperature", "ponder"}
    assert engine.ask("kata-set-param lagBuffer 1") == "="
    assert engine.ask("kata-get-param lag") == "= 1.0"
    for name in ("visits", "lag", "temperature-moves"):
        default = getattr(PlayOptions(), name.replace("-", "_"))
        assert engine.ask(f"kata-set-param {name} {default}") == "="


@pytest.mark.parametrize("late_first", [True, False])
def test_a_client_that_sets_both_of_katagos_temperatures_gets_the_early_one(engine, late_first):
    """The late one would be the temperature after the opening, where there is none here."""
    early, late = "chosenMoveTemperatureEarly 0.6", "chosenMoveTemperature 0.1"
    for setting in (late, early) if late_first else (early, late):
        engine.ask(f"kata-set-param {setting}")
    assert engine.ask("kata-get-param temperature") == "= 0.6"
    assert "chosenMoveTemperature" not in engine.ask("kata-list-params").split()
    assert engine.ask(f"kata-set-param temperature {PlayOptions().temperature}") == "="


def test_moves_go_on_whatever_is_changed_between_them(engine):
    assert engine.ask("boardsize 7") == "="
    changes = ("maxVisits 3", "policy-only true", "c-puct 2", "ponder true", "root-noise 0.25", "policy-only false")
    for number, change in enumerate(changes):
        assert engine.ask(f"kata-set-param {change}") == "="
        assert re.fullmatch("= ([A-G][1-7]|PASS)", engine.ask(f"genmove {'bw'[number % 2]}"))
    for before in ("c-puct 0", "root-noise 0"):
        assert engine.ask(f"kata-set-param {before}") == "="


def test_without_a_network_there_is_no_model(engine):
    assert engine.ask("kata-get-models") == "= []"


def test_the_network_that_plays_is_told():
    path = FOLDER / entries()[DEFAULT].file
    server = SimpleNamespace(spec=SimpleNamespace(name=DEFAULT, encoder="keima-2"), max_batch=256)
    host = SimpleNamespace(player=SimpleNamespace(server=server, network_path=path, human=None))
    (model,) = json.loads(kata_get_models(host))
    assert model == {
        "name": str(path), "internalName": DEFAULT, "maxBatchSize": 256, "usesHumanSLProfile": False, "version": 1,
        "usingFP16": "auto",
    }  # fmt: skip
    host.player.network_path = (path, path)
    assert [model["name"] for model in json.loads(kata_get_models(host))] == [str(path)] * 2


def test_what_would_take_more_than_memory_is_refused_and_changes_nothing(engine):
    before = engine.ask("kata-get-param threads")
    assert engine.ask("kata-set-param batch 512") == "="
    for name in ("threads", "numSearchThreads"):
        refused = engine.ask(f"kata-set-param {name} 256")
        assert re.fullmatch(r"\? threads 256 and batch 512 need [\d,]+ MiB for their batches, expected .*", refused)
        assert engine.ask("kata-get-param threads") == before
    assert engine.ask("kata-set-param batch 0") == "="
