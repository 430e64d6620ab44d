"""``keima evaluate``: calibration, rollouts beside the value, and the command from files to tables and pictures."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from engine.evaluation.evaluation import Beside, Wanted, _by_rank, evaluate_network
from engine.evaluation.rollout_values import rollout_values
from engine.evaluation.values import by_move, calibration_error, errors_beside, histogram, reliability
from engine.nets.architectures.registry import new_spec
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.nets.files.checkpoint import save_network
from engine.nets.model import new_model
from engine.nets.network import HEADS
from engine.play.factory import shipped_tables
from engine.records.games import mover_ranks, write_games
from engine.records.schema import join
from engine.train.metrics import PositionMetrics
from gtp.cli import main
from tests.train.made import made_games, settled_games
from weights import DEFAULT


@pytest.fixture(scope="module")
def tables():
    """The shipped rollout policy."""
    return shipped_tables()


def metrics_of(value, result, ply=None):
    """A sample of which only values and results matter."""
    nothing = np.full(len(value), np.nan)
    plies = np.zeros(len(value), np.int64) if ply is None else np.asarray(ply)
    values = np.asarray(value, float), np.asarray(result, float)
    return PositionMetrics(plies, np.full(len(value), 9), nothing, nothing, *values)


def test_reliability_agrees_with_plain_python():
    rng = np.random.default_rng(2)
    value = np.concatenate([rng.uniform(-1, 0.3, 400), [-1.0, 1.0]])
    result = np.where(rng.random(402) < 0.6, 1.0, -1.0)
    result[:7] = np.nan
    ranges: dict[int, list] = {}
    for v, z in zip(value.tolist(), result.tolist(), strict=True):
        if z == z:
            ranges.setdefault(min(9, int((v + 1) / 2 * 10)), []).append(((v + 1) / 2, z > 0))
    rows, total = reliability(metrics_of(value, result)), 0.0
    assert [row["from"] for row in rows] == [i / 10 for i in sorted(ranges)]
    for row, (_, held) in zip(rows, sorted(ranges.items()), strict=True):
        assert row["positions"] == len(held)
        assert row["predicted"] == pytest.approx(sum(rate for rate, _ in held) / len(held))
        assert row["observed"] == pytest.approx(sum(won for _, won in held) / len(held))
        total += abs(sum(rate - won for rate, won in held))
    assert calibration_error(rows) == pytest.approx(total / 395)


def test_the_histogram_counts_outputs_by_what_happened():
    found = histogram(metrics_of([-1.0, -0.95, 0.0, 0.05, 1.0, 0.5], [-1, 1, 1, 1, 1, np.nan]))
    assert found["edges"][0] == -1.0 and found["edges"][-1] == 1.0 and len(found["edges"]) == 21
    assert [i for i, count in enumerate(found["won"]) for _ in range(count)] == [0, 10, 10, 19]
    assert [i for i, count in enumerate(found["lost"]) for _ in range(count)] == [0]


def test_rows_by_move_hold_twenty_moves_and_the_last_all_others():
    ply = np.array([0, 19, 20, 299, 300, 900, 21])
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, np.nan])
    other = np.array([np.nan, 1.0, np.nan, np.nan, np.nan, np.nan, np.nan])
    assert by_move(ply, {"a": values, "b": other}) == [
        {"from": 0, "to": 19, "positions": 2, "a": 1.5, "b": 1.0},
        {"from": 20, "to": 39, "positions": 1, "a": 3.0},
        {"from": 280, "to": 299, "positions": 1, "a": 4.0},
        {"from": 300, "to": None, "positions": 2, "a": 6.0},
    ]


@pytest.mark.parametrize(
    ("komi", "territory", "black"), [(4.5, False, 1), (5.5, False, -1), (5, False, 0), (-0.5, True, 1), (0.5, True, -1)]
)
def test_rollouts_of_a_finished_board_give_its_result_for_the_side_to_move(tables, komi, territory, black):
    games = settled_games(komi, territory)
    values = rollout_values(games, np.array([0, 0]), np.array([0, 1]), tables, (1, 4))
    assert values.tolist() == [[black, black], [-black, -black]]


def test_rollouts_are_the_same_in_any_thread_and_the_fewer_are_the_first_of_the_more(tables):
    games = join([made_games(3, 9), made_games(2, 7, 20, seed=1)])
    rows, plies = np.array([0, 3, 1, 4, 2]), np.array([0, 3, 12, 0, 29])
    values = rollout_values(games, rows, plies, tables, (5, 40), threads=3)
    np.testing.assert_array_equal(values, rollout_values(games, rows, plies, tables, (5, 40)))
    np.testing.assert_array_equal(values[:, :1], rollout_values(games, rows, plies, tables, (5,)))
    assert (np.abs(values) <= 1).all() and len(np.unique(values)) > 3


def test_uniform_rollouts_see_who_is_ahead_and_count_finished_boards():
    games = made_games(1, 9)._replace(komi=np.array([60.5], np.float32))
    values = rollout_values(games, np.array([0, 0]), np.array([0, 1]), None, (50,))
    assert values[0, 0] < -0.5 and values[1, 0] > 0.5
    finished = rollout_values(settled_games(4.5, False), np.array([0, 0]), np.array([0, 1]), None, (4,))
    assert finished.tolist() == [[1], [-1]]


def test_rollouts_see_who_is_ahead_from_both_sides(tables):
    """Komi so large that White wins every rollout from a nearly empty board."""
    games = made_games(1, 9)._replace(komi=np.array([60.5], np.float32))
    values = rollout_values(games, np.array([0, 0]), np.array([0, 1]), tables, (50,))
    assert values[0, 0] < -0.9 and values[1, 0] > 0.9


OF_THE_VALUE = ("calibration", "calibration_error", "histogram", "by_move", "constant_mse")


def test_errors_side_by_side_are_those_of_plain_python():
    """The constant says the same of Black whoever moves, and no other such constant errs less."""
    games, rng = made_games(30, 9, 20), np.random.default_rng(3)
    rows, plies = rng.integers(0, 30, 200), rng.integers(0, 20, 200)
    sign = np.where(plies % 2 == 0, 1.0, -1.0)
    result = sign * np.where(rng.random(200) < 0.7, 1.0, -1.0)
    values = {"network": rng.uniform(-1, 1, 200), "other": np.zeros(200), "lacking": np.full(200, np.nan)}
    report = errors_beside(games, rows, plies, result, values)
    assert report["positions"] == 200 and report["other"] == 1.0 and "lacking" not in report
    assert report["network"] == pytest.approx(
        sum((z - v) ** 2 for z, v in zip(result, values["network"], strict=True)) / 200
    )
    of_black = [sum((z - s * c) ** 2 for z, s in zip(result, sign, strict=True)) / 200 for c in np.linspace(-1, 1, 201)]
    assert report["constant"] == pytest.approx(min(of_black), abs=1e-4) and report["constant"] < 0.95
    spans = [(row["from"], row["to"]) for row in report["by_move"]]
    assert spans == [(0, 4), (5, 9), (10, 14), (15, 19)], "rows of five moves on small boards"
    for row in report["by_move"]:
        inside = (plies >= row["from"]) & (plies <= row["to"])
        assert row["positions"] == inside.sum()
        assert row["network"] == pytest.approx(((result - values["network"])[inside] ** 2).mean())
    on_white = errors_beside(games._replace(first=np.full(30, 2, np.uint8)), rows, plies, result, values)
    assert on_white["constant"] == pytest.approx(report["constant"]), "who began is told by the record"


class Lacking(HashNetwork):
    """A network without some heads, and for some boards only."""

    def __init__(self, *missing, sizes=(2, 25)):
        super().__init__("keima-1", *sizes)
        self.missing = missing
        self.spec = replace(self.spec, name="lacking", heads=tuple(head for head in HEADS if head not in missing))

    def evaluate(self, planes, globals_):
        return super().evaluate(planes, globals_)._replace(**dict.fromkeys(self.missing))


@pytest.mark.parametrize(
    ("missing", "figures"),
    [
        (("value", "score", "ownership"), {"top1", "top5", "cross_entropy"}),
        (("policy", "score"), {"value_mse", "value_accuracy", *OF_THE_VALUE}),
    ],
)
def test_a_network_lacks_the_figures_of_heads_it_has_not(tables, missing, figures):
    wanted = Wanted(positions=60, rollouts=2, game=1)
    report = evaluate_network(Lacking(*missing), made_games(), wanted, beside=Beside(tables=tables))
    always = {"positions", "symmetries", "skipped_games", "rollouts"}
    assert {name.split("/")[0] for name in report} - {"game"} == figures | always
    assert ("game" in report) == ("network" in report["rollouts"]) == ("value_mse" in figures)


def test_games_on_other_boards_are_left_out_and_counted():
    games = join([made_games(6, 9), made_games(5, 7, 20, seed=1)])
    report = evaluate_network(Lacking(sizes=(7, 8)), games, Wanted(50))
    assert report["skipped_games"] == 6 and report["positions"] == 50
    with pytest.raises(ValueError, match="no game with moves on a board of 13 to 19"):
        evaluate_network(Lacking(sizes=(13, 19)), games, Wanted(50))


def test_a_network_that_knows_nothing_is_as_good_as_guessing():
    report = evaluate_network(UniformNetwork("keima-1"), made_games(), Wanted(400, 8, 0, 2))
    assert report["value_mse"] == 1.0 and report["top1"] < 0.1
    assert report["cross_entropy"] == pytest.approx(np.log(82), abs=1e-6)
    assert report["game"] == {"number": 2, "winner": "won by Black", "value_black": [0.0] * 30}


def test_the_value_through_a_game_is_blacks_whoever_moves():
    class Sure(UniformNetwork):
        """Always sees the side to move win."""

        def evaluate(self, planes, globals_):
            output = super().evaluate(planes, globals_)
            return output._replace(value=output.value + 0.5)

    report = evaluate_network(Sure("keima-1"), made_games(), Wanted(10, 1, 0, 1))
    assert report["game"]["value_black"] == [0.5, -0.5] * 15


def test_metrics_by_rank_are_those_of_the_side_to_move(tmp_path):
    """White, of 2 dan, always plays the first choice, Black, of 3 kyu, never; a mover without a rank is left out."""
    games = made_games(count=4)
    count = len(games.size)
    games = games._replace(rank_black=np.full(count, -3, np.int8), rank_white=np.array([2, 2, 0, 2], np.int8))
    rows, plies = np.divmod(np.arange(count * 10), 10)
    is_white = plies % 2 == 1
    nothing = np.full(len(plies), np.nan)
    found = PositionMetrics(plies, games.size[rows], np.where(is_white, 0.0, 7.0), nothing, nothing, nothing)
    table = _by_rank(found, mover_ranks(games, rows, plies))["by_rank"]
    assert table == [
        {"rank": "3k", "positions": 20, "top1": 0.0, "top5": 0.0},
        {"rank": "2d", "positions": 15, "top1": 1.0, "top5": 1.0},
    ]
    assert _by_rank(found, np.zeros(len(plies), np.int64)) == {}
    write_games(tmp_path / "ranked.npz.xz", games)
    shown = keima("evaluate", "default", tmp_path / "ranked.npz.xz", "--positions", 40).stdout
    assert "By rank of the mover" in shown and "3k" in shown and "2d" in shown


@pytest.fixture
def shard(tmp_path):
    """Games on 9x9 in a file."""
    write_games(tmp_path / "held-out.npz.xz", made_games())
    return tmp_path / "held-out.npz.xz"


def keima(*words):
    """Run a command in this process; any exception it does not turn into a line is a failure."""
    answer = CliRunner().invoke(main, [str(word) for word in words])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer


def test_the_command_gives_one_json_object(shard):
    answer = keima("evaluate", "default", shard, "--positions", 64, "--symmetries", 8, "--json")
    assert answer.exit_code == 0, answer.output
    figures = json.loads(answer.stdout)
    for name in ("top1", "top5", "value_accuracy"):
        assert 0 <= figures[name] <= 1 and 0 <= figures[f"{name}/opening"] <= 1 and f"plain/{name}" in figures
    assert figures["cross_entropy"] > 0 and 0 < figures["value_mse"] < 4
    again = json.loads(keima("evaluate", "--json", "--positions", 64, DEFAULT, shard).stdout)
    assert again["top5"] == figures["plain/top5"] and again["value_mse"] == pytest.approx(figures["plain/value_mse"])


def test_the_command_reads_sgf_and_says_what_it_could_not_read(tmp_path):
    moves = "".join(f";{'BW'[i % 2]}[{'abcdefghi'[i % 9]}{'abcdefghi'[i // 9 * 2]}]" for i in range(20))
    for number, result in enumerate(("B+R", "W+3.5", "?")):
        (tmp_path / f"{number}.sgf").write_text(f"(;GM[1]FF[4]SZ[9]KM[5.5]RE[{result}]{moves};B[])")
    (tmp_path / "bad.sgf").write_text("(;GM[1]SZ[9]KM[5.5]RE[B+R];B[aa];W[aa])")
    answer = keima("evaluate", "default", tmp_path, "--positions", 60, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["positions"] == 60
    assert "1 files or games could not be read" in answer.stderr and "bad.sgf: move 2" in answer.stderr
    answer = keima("evaluate", "default", tmp_path / "bad.sgf")
    assert answer.exit_code == 1 and "no game could be read" in answer.output and answer.output.count("\n") == 1


def test_alphagos_two_networks_are_measured_as_one(shard, tmp_path):
    for name in ("alphago-policy", "alphago-value"):
        model = new_model(name, {"filters": 4, "size": 9})
        save_network(tmp_path / f"{name}.safetensors", model, new_spec(model, name), {})
    names = [str(tmp_path / f"{name}.safetensors") for name in ("alphago-policy", "alphago-value")]
    expected = ({"top1", "top5"}, {"value_mse", "value_accuracy"}, {"top1", "top5", "value_mse", "value_accuracy"})
    for name, figures in zip((*names, "+".join(names)), expected, strict=True):
        answer = keima("evaluate", name, shard, "--positions", 40, "--symmetries", 8, "--json")
        assert answer.exit_code == 0, answer.output
        assert {"top1", "top5", "value_mse", "value_accuracy"} & json.loads(answer.stdout).keys() == figures


def test_the_command_prints_tables_that_fit_and_draws_pictures(shard, tmp_path):
    folder = tmp_path / "new" / "plots"
    options = ("--positions", 64, "--rollouts", 2, "--game", 3, "--plots", folder)
    answer = keima("evaluate", "default", shard, *options)
    assert answer.exit_code == 0, answer.output
    lines = [line for line in answer.stdout.splitlines() if not line.startswith("drawn")]
    assert max(map(len, lines)) <= 80 and "…" not in answer.stdout
    for word in ("first choice", "winner", "predicted", "1,000", "game 3, won by Black"):
        assert word in answer.stdout
    drawn = sorted(path.name for path in folder.iterdir())
    assert drawn == ["by-move.png", "calibration.png", "game.png", "histogram.png"]
    for name in drawn:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_tables_fit_even_where_the_last_row_is_open():
    from rich.console import Console

    from gtp.cli.evaluate import tables_of

    row = {"positions": 50000, "value_mse": 0.999, "value_accuracy": 1.0}
    rolled = {"positions": 50000, "network": 1.234, "10": 1.234, "100": 1.234, "1000": 1.234}
    spans = [(280, 299), (300, None)]
    report = row | {
        "symmetries": 1,
        "by_move": [row | {"from": start, "to": end} for start, end in spans],
        "calibration_error": 0.1, "calibration": [],
        "rollouts": rolled | {"by_move": [rolled | {"from": start, "to": end} for start, end in spans]},
    }  # fmt: skip
    console = Console(width=80, record=True, file=sys.stderr)
    for _, table in tables_of(report):
        console.print(table)
    assert "…" not in console.export_text()


def test_values_of_other_networks_and_of_policies_stand_beside(shard, tmp_path):
    """AlphaGo's Figure 2b: one table of all, on the same positions."""
    paths = {}
    for name in ("alphago-policy", "alphago-value"):
        model = new_model(name, {"filters": 4, "size": 9})
        paths[name] = tmp_path / f"{name}.safetensors"
        save_network(paths[name], model, new_spec(model, name), {})
    words = ["evaluate", paths["alphago-value"], shard, "--positions", 30, "--beside", "shipped=default"]
    words += ["--policy", "uniform", "--policy", "rollout", "--policy", f"sl={paths['alphago-policy']}"]
    words += ["--plots", tmp_path / "plots", "--rollouts"]
    report = json.loads(keima(*words, 2, "--json").stdout)
    assert report["beside"].keys() == {"positions", "network", "shipped", "constant", "by_move"}
    assert report["beside"]["network"] == pytest.approx(report["value_mse"])
    assert report["beside"]["constant"] == report["constant_mse"] < 1.0
    eight = ("--positions", 8, "--symmetries", 8, "--beside", f"same={paths['alphago-value']}", "--json")
    same = json.loads(keima("evaluate", paths["alphago-value"], shard, *eight).stdout)["beside"]
    assert same["same"] == pytest.approx(same["network"])
    alone = json.loads(keima("evaluate", "default", shard, "--positions", 30, "--json").stdout)
    assert report["beside"]["shipped"] == pytest.approx(alone["value_mse"])
    rolled = report["policy_rollouts"]
    assert rolled.keys() == {"positions", "network", "shipped", "uniform", "rollout", "sl", "constant", "by_move"} | {
        "rollouts", "ms",
    }  # fmt: skip
    assert rolled["rollouts"] == 100 and rolled["ms"].keys() == {"network", "uniform", "rollout", "sl"}
    assert all(0.0 < ms < 1e5 for ms in rolled["ms"].values())
    assert rolled["positions"] == 2 and "rollouts" not in report and (tmp_path / "plots" / "errors.png").exists()
    assert sum(row["positions"] * row["sl"] for row in rolled["by_move"]) / 2 == pytest.approx(rolled["sl"])
    counted = keima("evaluate", "default", shard, "--positions", 8, "--rollouts", 2, "--count", 30, "--count", 7)
    assert counted.exit_code == 0 and " 7 " in counted.stdout and " 30 " in counted.stdout
    assert "ms of a core a position" in counted.stdout
    counts = [word for count in (1, 3, 10, 30, 1000) for word in ("--count", count)]
    many = keima("evaluate", "default", shard, "--positions", 8, "--rollouts", 2, *counts)
    assert "Value MSE of numbers of rollouts" in many.stdout and " 1,000 " in many.stdout
    assert max(map(len, many.stdout.splitlines())) <= 80
    answer = keima(*words, 1)
    assert answer.exit_code == 0 and "100 rollouts by each policy" in answer.stdout and " sl" in answer.stdout
    lines = [line for line in answer.stdout.splitlines() if not line.startswith("drawn")]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "uniform"], "--policy needs --rollouts"),
        (["--rollouts", 2, "--policy", "uniform", "--count", 5, "--count", 9], "one number of rollouts, got --count 2"),
        (["--rollouts", 2, "--policy", "nobody"], "unknown network 'nobody'"),
        (["--rollouts", 2, "--policy", "nobody.npz"], "unknown pattern policy 'nobody.npz'"),
        (["--rollouts", 2, "--policy", "tree"], "a tree policy, expected a rollout policy"),
        (["--rollouts", 2, "--policy", "network=uniform"], "'network=uniform': expected NAME=uniform"),
        (["--rollouts", 2, "--policy", "uniform", "--policy", "uniform"], "with an unused name"),
        (["--beside", "SMALL"], "network SMALL plays boards of 5 alone, not 9"),
        (["--beside", "POLICY"], "network POLICY has no value to compare"),
        (["--rollouts", 2, "--policy", "SMALL"], "network SMALL has no policy"),
        (["--rollouts", 2, "--policy", "POLICY"], "network POLICY plays boards of 5 alone, not 9"),
    ],
)
def test_what_cannot_stand_beside_is_one_clear_line(shard, tmp_path, words, message):
    for name, word in (("alphago-policy", "POLICY"), ("alphago-value", "SMALL")):
        model = new_model(name, {"filters": 4, "size": 5})
        save_network(tmp_path / word, model, new_spec(model, name), {})
    words = [tmp_path / word if word in ("POLICY", "SMALL") else word for word in words]
    answer = keima("evaluate", "default", shard, "--positions", 8, *words, "--json")
    assert answer.exit_code == 1 and answer.stdout == ""
    assert message in answer.output and answer.output.count("\n") == 1, answer.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "DATA"], "unknown network 'nobody'"),
        (["default", "BROKEN"], "not a readable .npz.xz shard"),
        (["default", "NONE"], "no game could be read"),
        (["default", "DATA", "--game", 41], "there is no game 41: there are 40 games"),
        (["default", "DATA", "--device", "abacus"], "expected auto, cpu, mps, cuda"),
        (["default", "DATA", "--plots", "NONE/plots"], "cannot create the folder for plots"),
    ],
)
def test_what_cannot_be_evaluated_is_one_clear_line(shard, tmp_path, words, message):
    for name in ("none", "broken.npz.xz"):
        (tmp_path / name).write_text("no shard")
    paths = {
        "DATA": shard,
        "BROKEN": tmp_path / "broken.npz.xz",
        "NONE": tmp_path / "none",
        "NONE/plots": tmp_path / "none" / "plots",
    }
    answer = keima("evaluate", *(paths.get(word, word) for word in words), "--positions", 8)
    assert answer.exit_code == 1
    assert message in answer.output and answer.output.count("\n") == 1, answer.output


def test_plots_without_matplotlib_are_one_clear_line(shard, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    answer = keima("evaluate", "default", shard, "--plots", tmp_path / "plots")
    assert answer.exit_code == 1
    assert answer.output == "Error: PNG needs matplotlib: pip install matplotlib beside Keima\n"


@pytest.mark.shared
def test_the_shipped_network_foresees_people(shared_path):
    data = shared_path / "data" / "validation.npz.xz"
    figures = json.loads(keima("evaluate", "default", data, "--positions", 400, "--json").stdout)
    assert figures["top1"] > 0.33 and figures["value_mse"] < 1.0 and figures["value_accuracy"] > 0.5
