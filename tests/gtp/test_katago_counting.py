"""KataGo's networks for which territory beside an own chain in atari does not count: played, analysed and described."""

import gzip
import json

import pytest
from click.testing import CliRunner

from engine.config import PlayOptions
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, PASS
from engine.go.rules import RULE_SETS, RULE_TAX, SCORING_TERRITORY, TAX_ATARI, TAX_SEKI, Rules
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.search.move_filter import only
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from gtp.cli.weights import weights_group
from tests.go.positions import KO_MOUTH, game_from
from tests.gtp.json_talk import Talk
from tests.nets.katago_files import random_network, written
from tests.playing import SEARCH, position

TERRITORY = Rules("territory", scoring=SCORING_TERRITORY)
SLOT = 13
"""Of the words of a file, without its name; 0 in all networks published so far"""
UNTAXED = {"ko": "SIMPLE", "scoring": "TERRITORY", "tax": "NONE", "suicide": False}
SMALL, LARGE = "b7c96h3tfrs-test5-cnorm", "b10c384h6nbttflrs"


def marked(content: bytes, value: bytes) -> bytes:
    """A network's file with another value in the slot."""
    words = content.split(maxsplit=SLOT + 1)
    at = content.index(words[SLOT + 1], len(b" ".join(words[: SLOT + 1])))
    assert words[SLOT] == b"0" and content[at - 2 : at] == b"0\n"
    return content[: at - 2] + value + content[at - 1 :]


@pytest.fixture(
    params=[
        "tiny", pytest.param(SMALL, marks=pytest.mark.shared),
        pytest.param(LARGE, marks=[pytest.mark.shared, pytest.mark.slow]),
    ]
)  # fmt: skip
def files(request, tmp_path):
    """A network's file as it is, and with the slot set."""
    if request.param == "tiny":
        content = written(random_network(17, ("residual",)))
    else:
        folder = request.getfixturevalue("shared_path") / "nets"
        content = gzip.decompress((folder / f"{request.param}.bin.gz").read_bytes())
    paths = tmp_path / "plain.bin.gz", tmp_path / "marked.bin.gz"
    for path, one in zip(paths, (content, marked(content, b"1")), strict=True):
        path.write_bytes(gzip.compress(one, 1))
    return paths


def test_a_file_is_described_played_and_analysed(files, make_player):
    told = json.loads(CliRunner().invoke(weights_group, ["show", str(files[1]), "--json"]).output)
    assert told["encoder"] == "katago-v7-atari" and told["rules"].endswith(
        "does not count beside an own chain in atari"
    )
    leads = []
    for path in files:
        player = position(make_player(PlayOptions(visits=2, seconds=0.0), network=path, size=7), KO_MOUTH, BLACK)
        player.set_komi(0.0)
        player.set_rules(TERRITORY)
        assert player.look(BLACK, visits=3).visits == 3
        leads.append(player.estimate_end().lead_black)
        assert player.game.rules == TERRITORY, "KataGo has no name for it either"
        assert player.genmove(BLACK) >= PASS
    assert leads[0] == leads[1] + 1.0


def test_a_second_value_of_the_slot_is_refused_in_one_line(tmp_path):
    path = tmp_path / "net.bin.gz"
    path.write_bytes(gzip.compress(marked(written(random_network(17)), b"2")))
    text = CliRunner().invoke(weights_group, ["show", str(path)]).output
    assert (
        text.count("\n") == 1
        and "beside a chain in atari does not count: 2, expected a whole number from 0 to 1" in text
    )


@pytest.mark.parametrize(("encoder", "lead"), [("katago-v7", 9.0), ("katago-v7-atari", 8.0)])
def test_finished_games_are_counted_so_in_the_tree(encoder, lead):
    with InferenceServer(UniformNetwork(encoder), threads=1) as server:
        search = Search(SEARCH, server, ENCODERS[encoder])
        game = game_from(KO_MOUTH, rules=TERRITORY)
        game.play(BLACK, PASS)
        root = search.set_position(game.position)
        assert (root.rules[RULE_TAX] == TAX_ATARI) == (lead == 8.0)
        report = search.run(SearchLimits(visits=2), only(game.to_move, [PASS]))
        assert [move.point for move in report.moves] == [PASS] and report.moves[0].score_stm == -lead
        kept = report.visits
        search.set_position(game.position)
        assert search.report().visits == kept, "the same position is recognised"


@pytest.mark.parametrize("rules", [RULE_SETS["japanese"], Rules("area")])
def test_under_other_rules_a_search_leaves_the_position_as_it_is(rules):
    with InferenceServer(UniformNetwork("katago-v7-atari"), threads=1) as server:
        search = Search(SEARCH, server, ENCODERS["katago-v7-atari"])
        game = game_from(KO_MOUTH, rules=rules)
        root = search.set_position(game.position)
        assert root.rules.tolist() == game.position.rules.tolist()
        assert (root.rules[RULE_TAX] == TAX_SEKI) == (rules.name == "japanese")


@pytest.mark.parametrize("switch", [None, "auto", "true", True, "false"])
def test_json_analyses_with_such_a_network_and_knows_its_switch(switch):
    talk = Talk(HashNetwork("katago-v7-atari"))
    settings = {} if switch is None else {"overrideSettings": {"excludeTerritoryAdjacentToAtari": switch}}
    found = talk.ask(rules=UNTAXED, **settings)
    assert found["rootInfo"]["visits"] == 30 and "warning" not in found
    talk.all()
    talk.server.close()
