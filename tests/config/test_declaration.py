"""How options are declared, parsed, checked and resolved, and what their help says of that."""

from dataclasses import dataclass, fields

import pytest

from engine.config import PlayOptions, SearchOptions, TrainOptions
from engine.config.declaration import (
    Checked,
    Cores,
    core_count,
    find_option,
    help_text,
    option,
    parse,
    resolve,
    sections,
)


@dataclass(frozen=True)
class Example(Checked):
    """One option of each type, and some that are left to the engine."""

    heading = "Examples"
    switch: bool = option(True, "a switch")
    count: int = option(2, "a number of things", low=0, high=9)
    share: float = option(0.5, "a share", low=0.0, high=1.0)
    kind: str = option("a", "a kind", choices=("a", "b"))
    batch: int = option(0, "leaves", low=0, cpu=8, gpu=64)
    loss: float = option(-1.0, "a loss", low=-1.0, cpu=0.5, otherwise=1.0)
    mode: str = option("auto", "a mode", policy_only="8", otherwise="1")
    helpers: int = option(0, "threads", low=0, otherwise=Cores(follows="count"))


def named(name: str):
    item = find_option(name, Example)
    assert item is not None
    return item


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("switch", "false", False), ("switch", "TRUE", True), ("count", "9", 9), ("count", "+3", 3),
        ("share", "0.25", 0.25), ("share", "1", 1.0), ("kind", "b", "b"), ("batch", "16", 16),
    ],
)  # fmt: skip
def test_text_becomes_a_value_of_the_options_type(name, text, value):
    found = parse(named(name), text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("switch", "yes", '^switch is "yes", expected true or false$'),
        ("count", "2.0", '^count is "2.0", expected a whole number$'),
        ("count", "9" * 30, "expected a whole number$"),
        ("count", "10", "^count is 10, expected 0 to 9$"),
        ("share", "much", '^share is "much", expected a number$'),
        ("share", "nan", "^share is nan, expected 0.0 to 1.0$"),
        ("kind", "c", '^kind is "c", expected a or b$'),
    ],
)
def test_other_text_is_refused_with_what_was_expected(name, text, message):
    with pytest.raises(ValueError, match=message):
        parse(named(name), text)
    with pytest.raises(ValueError, match=r"^--x is "):
        parse(named(name), text, "--x")


def test_an_object_with_a_value_out_of_range_cannot_be_made():
    with pytest.raises(ValueError, match="count is 10, expected 0 to 9"):
        Example(count=10)


def test_what_is_left_to_the_engine_depends_on_the_conditions_and_what_is_given_stays():
    on_cpu, on_gpu = resolve(Example(), "network", "cpu"), resolve(Example(), "network", "gpu", "policy_only")
    assert (on_cpu.batch, on_cpu.loss, on_cpu.mode) == (8, 0.5, "1")
    assert (on_gpu.batch, on_gpu.loss, on_gpu.mode) == (64, 1.0, "8")
    given = Example(batch=3, loss=0.0, mode="5")
    assert resolve(given, "cpu", "policy_only") == resolve(given, "gpu")
    assert resolve(Example(), "rollouts").batch == 0, "no condition that decides it holds"
    assert resolve(on_gpu, "cpu") == on_gpu, "decided once, decided for good"
    assert resolve(Example(loss=-0.3)).loss == 1.0


def test_threads_follow_the_processors_or_another_option():
    assert resolve(Example(count=0)).helpers == core_count()
    assert resolve(Example(count=5)).helpers == 5
    assert Cores(2, 4, spare=1).number(None) == max(2, min(4, core_count() - 1))


def test_help_tells_type_range_and_what_zero_stands_for():
    assert help_text(named("count")) == "a number of things; 0 to 9"
    assert help_text(named("switch")) == "a switch"
    assert help_text(named("batch")) == "leaves; 0 = 8 on the CPU, 64 on a GPU; 0 or more"
    assert help_text(named("loss")) == "a loss; -1 = 0.5 on the CPU, else 1.0; -1.0 or more"
    assert help_text(named("mode")) == "a mode; auto = 8 with policy-only, else 1"
    assert help_text(named("helpers")) == "threads; 0 = count where they are given, or one a core; 0 or more"


def test_the_search_is_left_to_the_engine_with_the_values_that_were_measured():
    cpu, gpu = (resolve(SearchOptions(), "network", device) for device in ("cpu", "gpu"))
    alone = resolve(SearchOptions(), "rollouts")
    assert (cpu.threads, cpu.evaluators, cpu.batch, cpu.visits_per_leaf, cpu.virtual_loss) == (
        1,
        core_count(),
        8,
        96,
        0.5,
    )
    assert (gpu.batch, gpu.visits_per_leaf, gpu.virtual_loss) == (64, 32, 1.0) and 2 <= gpu.threads <= 4
    assert (alone.threads, alone.batch, alone.visits_per_leaf, alone.virtual_loss) == (core_count(), 8, 32, 1.0)
    assert (cpu.c_puct, gpu.c_puct, alone.c_puct) == (1.4, 1.4, 5.0)
    assert (cpu.value_weight, cpu.value_bias, alone.value_weight, alone.value_bias) == (0.0, 0.0, 0.0, 0.0)
    katago = resolve(SearchOptions(), "network", "cpu", "katago")
    assert (katago.c_puct, katago.value_weight, katago.value_bias) == (1.0, 0.25, 0.45)
    assert resolve(SearchOptions(threads=3), "cpu").evaluators == 3
    assert resolve(TrainOptions(), "sgd").weight_decay == 1e-4


@pytest.mark.parametrize("kind", [PlayOptions, SearchOptions, TrainOptions])
def test_every_option_stands_under_one_heading(kind):
    listed = [item.name for _, items in sections(kind) for item in items]
    assert sorted(listed) == sorted(item.name for item in fields(kind))
