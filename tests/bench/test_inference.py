"""The bench of networks: names and form of its lines, boards left out, clear mistakes."""

import json

import pytest
import torch
from click.testing import CliRunner

from bench.speed.gpu import matrix_rate
from bench.speed.inference import command
from bench.speed.networks import NETWORKS, shape_of
from engine.nets.architectures.registry import new_model
from engine.nets.files.read import forward_flops

QUICK = ["--device", "cpu", "--seconds", "0.01", "--repeats", "1", "--threads", "2"]


def test_every_network_board_and_batch_has_a_figure():
    options = ["--network", "keima-6x64", "--network", "default", "--batch", "1", "--batch", "3", "--bits", "32"]
    answer = CliRunner().invoke(command, [*QUICK, *options])
    assert answer.exit_code == 0, answer.output
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    names = [f"{name}/{size}/{batch}" for name in ("keima-6x64", "default") for size in (19, 9) for batch in (1, 3)]
    assert [line["name"] for line in lines] == names
    assert all(line["unit"] == "evaluations/s" and line["value"] > 0 for line in lines)


def test_boards_that_a_network_does_not_play_are_left_out():
    options = ["--network", "keima-6x64", "--size", "5", "--batch", "1"]
    answer = CliRunner().invoke(command, [*QUICK, *options])
    assert answer.exit_code == 0 and answer.stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--device", "abacus"], "unknown device 'abacus'"), (["--bits", "8"], "'8' is not one of")],
)
def test_a_bad_option_is_one_clear_line(options, message):
    answer = CliRunner().invoke(command, options)
    assert answer.exit_code != 0 and answer.stdout == ""
    assert [message in line for line in answer.stderr.splitlines() if line.startswith("Error: ")] == [True]


@pytest.mark.parametrize("name", NETWORKS)
def test_operations_are_two_for_each_weight_and_point_it_is_used_on(name):
    model = new_model(*shape_of(name), device="meta")
    counted = 0
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d):
            counted += 2 * 361 * layer.weight.numel()
        elif isinstance(layer, torch.nn.Linear):
            counted += 2 * layer.weight.numel()
    assert forward_flops(model, 19) == counted


def test_a_processor_multiplies_matrices():
    assert matrix_rate(torch.device("cpu"), 16, 1) > 0
