"""Human networks and profiles over JSON and GTP, with networks made of hashes."""

import json
from types import SimpleNamespace

import pytest

from engine.config import PlayOptions, SearchOptions
from engine.nets.fakes import HashNetwork
from engine.play.human import HumanNetwork
from engine.play.player import Player
from gtp.commands.params import kata_get_models, kata_get_param, kata_set_param, kata_set_params
from tests.gtp.json_talk import Talk
from weights import find

PROFILE = {"humanSLProfile": "rank_5k", "ignorePreRootHistory": False}
HUMAN_KEYS = ["humanScoreMean", "humanScoreStdev", "humanStScoreError", "humanStWrError", "humanWinrate"]


def load(path, device, samples=None):
    """Hashes with the encoder that the path names."""
    return HashNetwork(path)


@pytest.fixture
def talk():
    human = HumanNetwork("katago-v7-human", load=load)
    made = Talk(human=human)
    yield made
    made.engine.close()
    made.server.close()
    human.close()


def test_a_profile_adds_katagos_human_fields(talk):
    assert "human" not in json.dumps(talk.ask(includePolicy=True))
    found = talk.ask(includePolicy=True, overrideSettings=PROFILE)
    assert [key for key in found["rootInfo"] if key.startswith("human")] == HUMAN_KEYS
    policy = found["humanPolicy"]
    assert (
        len(policy) == 26 and policy[12] == -1.0 and sum(value for value in policy if value > 0) == pytest.approx(1.0)
    )
    for move in found["moveInfos"]:
        column, row = "ABCDE".find(move["move"][0]), move["move"][1:]
        index = 25 if move["move"] == "pass" else (5 - int(row)) * 5 + column
        assert move["humanPrior"] == pytest.approx(policy[index]) and move["visits"] == move["edgeVisits"]
    assert "humanPolicy" not in talk.ask(overrideSettings=PROFILE)


def test_queries_with_different_profiles_do_not_mix(talk):
    def policy(profile):
        return talk.ask(includePolicy=True, overrideSettings=PROFILE | {"humanSLProfile": profile})["humanPolicy"]

    first, second, pair = policy("rank_5k"), policy("proyear_1950"), policy("rank_5k_9d")
    assert first != second and first != pair and policy("rank_5k") == first


def test_numbers_of_the_human_network_follow_the_perspective(talk):
    views = [talk.ask(overrideSettings=PROFILE | {"reportAnalysisWinratesAs": view}) for view in ("BLACK", "WHITE")]
    black, white = (view["rootInfo"] for view in views)
    assert black["humanWinrate"] + white["humanWinrate"] == pytest.approx(1.0)
    assert black["humanScoreMean"] == -white["humanScoreMean"] and black["humanScoreStdev"] == white["humanScoreStdev"]


def test_exploration_spends_visits_that_do_not_count(talk):
    plain = talk.ask(overrideSettings=PROFILE, maxVisits=30)
    settings = PROFILE | {"humanSLRootExploreProbWeightless": 0.5, "humanSLCpuctPermanent": 2.0}
    found = talk.ask(overrideSettings=settings, maxVisits=60)
    assert found["rootInfo"]["winrate"] == plain["rootInfo"]["winrate"], "weightless"
    assert 1 + sum(move["edgeVisits"] for move in found["moveInfos"]) == 30 == found["rootInfo"]["weight"]
    assert found["rootInfo"]["visits"] == 1 + sum(move["visits"] for move in found["moveInfos"]) == 59
    human = [move for move in found["moveInfos"] if move["visits"] > move["edgeVisits"]]
    assert sum(move["humanPrior"] for move in human) > sum(move["prior"] for move in human)
    assert [move["order"] for move in found["moveInfos"]] == list(range(len(found["moveInfos"])))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"humanSLProfile": "nobody"}, "Could not set settings: unknown human profile 'nobody', expected rank_9d to"),
        ({"humanSLPlaExploreProbWeightful": 0.3}, "must be 0: human moves are explored at the root alone"),
    ],
)
def test_a_wrong_setting_is_an_error_of_one_line(talk, given, text):
    found = talk.ask(overrideSettings=given)
    assert found["field"] == "overrideSettings" and text in found["error"]


def test_without_a_human_network_a_profile_is_refused():
    talk = Talk()
    found = talk.ask(overrideSettings=PROFILE)
    assert "human profile rank_5k: the network knows none" in found["error"]
    talk.all()
    talk.server.close()


def test_the_main_network_may_be_the_human_one():
    talk = Talk(HashNetwork("katago-v7-human"))
    found = [talk.ask(overrideSettings={"humanSLProfile": name})["rootInfo"] for name in ("rank_9d", "rank_1k", "")]
    assert found[0]["rawWinrate"] != found[1]["rawWinrate"] and found[0] == found[2] and "humanWinrate" not in found[0]
    talk.all()
    talk.server.close()


@pytest.fixture
def host():
    """A host whose player has a human network."""
    options = SearchOptions(threads=1, seed=1, memory=64)
    player = Player(options, PlayOptions(visits=4, seconds=0.0), "keima-1", size=5, load=load, human="katago-v7-human")
    yield SimpleNamespace(player=player)
    player.close()


def test_katagos_parameters_of_human_play(host):
    kata_set_param(host, "humanSLProfile", "preaz_5k")
    kata_set_params(host, '{"humanSLChosenMovePiklLambda": 0.08, "humanSLRootExploreProbWeightless": 0.8}')
    kata_set_params(host, '{"chosenMoveTemperatureEarly": 0.7, "chosenMoveTemperature": 0.25}')
    kata_set_param(host, "chosenMoveTemperatureHalflife", "30")
    play, search = host.player.options, host.player.search_options
    assert (search.human_profile, play.human_lambda, play.human_explore) == ("preaz_5k", 0.08, 0.8)
    assert (play.human_temperature_early, play.human_temperature, play.human_halflife) == (0.7, 0.25, 30.0)
    assert play.temperature == PlayOptions.temperature
    assert kata_get_param(host, "humanSLProfile") == "preaz_5k"
    kata_set_param(host, "humanSLProfile", "_")
    assert kata_get_param(host, "humanSLProfile") == "_"
    with pytest.raises(ValueError, match="unknown human profile"):
        kata_set_param(host, "humanSLProfile", "rank_30k")


def test_the_human_network_is_among_the_models(host):
    host.player.network_path = host.player.human.path = find("default")
    found = json.loads(kata_get_models(host))
    assert [model["usesHumanSLProfile"] for model in found] == [False, True]
