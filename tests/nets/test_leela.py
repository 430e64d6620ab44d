"""Leela Zero's files: read against a twin that is written after its format's description, written and read back."""

import gzip
from functools import cache

import numpy as np
import pytest
import torch

import engine.nets.files.leela_zero
from engine.features.encoder import sample_inputs
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.files.leela_zero import save_leela
from engine.nets.model import load_model
from engine.nets.on_device import load_network
from tests.memory import at_most_mib
from tests.nets.models import leela_model, toy
from tests.nets.twin import convolve, rectify

CHANNELS = 3
ZERO, ELF = "alphago-zero", "elf-opengo"


def made_lines(blocks=1, channels=CHANNELS, seed=0):
    """Numbers of every line behind the version, as the description of the format has them."""
    rng = np.random.default_rng(seed)

    def norm(outputs, inputs, kernel):
        spread = (inputs * kernel * kernel) ** -0.5
        weight = rng.normal(0, spread, outputs * inputs * kernel * kernel)
        return [weight, rng.normal(0, 0.2, outputs), rng.normal(0, 0.2, outputs), rng.uniform(0.5, 2, outputs)]

    lines = norm(channels, 18, 3)
    for _ in range(2 * blocks):
        lines += norm(channels, channels, 3)
    lines += [*norm(2, channels, 1), rng.normal(0, 0.1, 362 * 722), rng.normal(0, 0.1, 362)]
    lines += [*norm(1, channels, 1), rng.normal(0, 0.1, 256 * 361), rng.normal(0, 0.1, 256)]
    lines += [rng.normal(0, 0.1, 256), rng.normal(0, 0.1, 1)]
    return [line.astype(np.float32) for line in lines]


def text_of(lines, version=1):
    """A file's text."""
    return "\n".join([str(version), *(" ".join(["%.9g"] * len(line)) % tuple(line.tolist()) for line in lines)]) + "\n"


@cache
def sound():
    """A sound file, plain and packed."""
    text = text_of(made_lines()).encode()
    return text, gzip.compress(text, 1)


def twin(lines, planes):
    """Logits and Black's or the mover's value for planes[18, 19, 19] as Leela Zero has them, rows from the bottom."""
    rest = [line.astype(np.float64) for line in lines]

    def norm(x, kernel):
        weight, bias, mean, variance = (rest.pop(0) for _ in range(4))
        x = convolve(x, weight.reshape(len(bias), len(x), kernel, kernel), bias)
        return (x - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]

    def dense(x):
        weight, bias = rest.pop(0), rest.pop(0)
        return weight.reshape(len(bias), -1) @ x + bias

    x = rectify(norm(planes, 3))
    while len(rest[0]) == 9 * CHANNELS**2:
        inner = rectify(norm(x, 3))
        x = rectify(x + norm(inner, 3))
    logits = dense(rectify(norm(x, 1)).reshape(-1))
    hidden = rectify(dense(rectify(norm(x, 1)).reshape(-1)))
    return logits, np.tanh(dense(hidden)[0])


def evaluated(model, planes):
    """Logits and values of a model."""
    with torch.no_grad():
        policy, value, *_ = model.eval()(torch.as_tensor(planes), torch.zeros(len(planes), 0))
    return policy.numpy(), value.tanh().numpy()


@pytest.fixture(scope="module")
def positions():
    """Planes "leela-18" of positions with White and with Black to move."""
    planes, _ = sample_inputs("leela-18", 19)
    chosen = planes[2:4].copy()
    chosen[1, 16:] = 1 - chosen[1, 16:]
    assert chosen[0, 16, 0, 0] != chosen[1, 16, 0, 0]
    return chosen


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_file_means_what_its_format_says(version, blocks, positions, tmp_path):
    lines = made_lines(blocks)
    path = tmp_path / "net.txt"
    path.write_text(text_of(lines, version))
    model, spec, record = leela_model(path)
    assert (spec.name, spec.encoder, spec.min_size, spec.max_size, record) == ("net", "leela-18", 19, 19, {})
    assert model.shape.blocks == blocks and model.shape.channels == CHANNELS
    policy, value = evaluated(model, positions)
    for row, planes in enumerate(positions):
        logits, expected = twin(lines, planes[:, ::-1].astype(np.float64))
        logits = np.append(logits[:-1].reshape(19, 19)[::-1].reshape(-1), logits[-1])
        black = 1 if planes[16, 0, 0] else -1
        np.testing.assert_allclose(policy[row], logits, atol=1e-5)
        assert value[row] == pytest.approx(expected * (black if version == 2 else 1), abs=1e-6)


@pytest.mark.parametrize(
    "write",
    [
        lambda path, text: path.write_text(text.removesuffix("\n")),
        lambda path, text: path.write_text(text + "\n \n"),
        lambda path, text: path.write_bytes(text.replace("\n", " \r\n").encode()),
        lambda path, text: path.write_bytes(text.replace(" ", "\t\t ").encode()),
        lambda path, text: path.write_bytes(gzip.compress(text.encode(), 1)),
        lambda path, text: path.write_bytes(gzip.compress(text[:999].encode()) + gzip.compress(text[999:].encode(), 1)),
    ],
    ids=["no last newline", "empty lines", "Windows", "tabs", "gzip", "gzip in parts"],
)
def test_line_ends_blanks_and_packing_do_not_matter(write, tmp_path):
    (tmp_path / "plain").write_bytes(sound()[0])
    write(tmp_path / "other", sound()[0].decode())
    plain = leela_model(tmp_path / "plain")[0].state_dict()
    other = leela_model(tmp_path / "other")[0].state_dict()
    assert all(torch.equal(value, other[name]) for name, value in plain.items())


@pytest.mark.parametrize("name", ["net.txt", "net.gz"])
@pytest.mark.parametrize("architecture", [ZERO, ELF])
def test_what_was_written_is_read_back_bit_for_bit(architecture, name, tmp_path):
    model = toy(architecture, planes=18, size=19, value_hidden=256)
    for part, value in model.state_dict().items():
        if part.endswith(("scale", "shift")):
            value.fill_(part.endswith("scale"))
    save_leela(tmp_path / name, model, new_spec(model, "made", "leela-18"))
    read, spec, _ = leela_model(tmp_path / name)
    assert type(read) is type(model) and read.shape == model.shape and spec.name == "net"
    assert all(torch.equal(value, read.state_dict()[part]) for part, value in model.state_dict().items())
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("hidden", [16, 256])
def test_our_networks_say_the_same_as_leela_zeros(hidden, tmp_path):
    model = toy(ZERO, size=19, value_hidden=hidden)
    # The start of training, where blocks do nothing, and a channel turned round.
    model.blocks[0].second.scale.data.zero_()
    model.stem.scale.data[0] = -0.5
    save_leela(tmp_path / "net.txt", model, new_spec(model, "made"))
    read, _, _ = leela_model(tmp_path / "net.txt")
    ours, theirs = evaluated(model, sample_inputs("zero-17", 19)[0]), evaluated(read, sample_inputs("leela-18", 19)[0])
    np.testing.assert_allclose(ours[0], theirs[0], atol=2e-6)
    np.testing.assert_allclose(ours[1], theirs[1], atol=2e-6)
    assert ours[0].std() > 0.1 and ours[1].std() > 1e-3


@pytest.mark.parametrize("version", [1, 2])
def test_leela_zeros_networks_become_files_of_ours(version, positions, tmp_path):
    (tmp_path / "net").write_text(text_of(made_lines(), version))
    model, spec, record = leela_model(tmp_path / "net")
    save_network(tmp_path / "net.safetensors", model, spec, record)
    read, _, _ = load_model(tmp_path / "net.safetensors")
    for one, other in zip(evaluated(model, positions), evaluated(read, positions), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_plays_like_any_other_network(positions, tmp_path):
    (tmp_path / "net").write_text(text_of(made_lines(channels=16)))
    network = load_network(tmp_path / "net", "cpu", sample_inputs)
    output = network.evaluate(positions, np.zeros((2, 0), np.float32))
    policy, value = evaluated(leela_model(tmp_path / "net")[0], positions)
    np.testing.assert_allclose(output.policy, policy, atol=0.05)
    np.testing.assert_allclose(output.value, value, atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (toy("keima-resnet"), "keima-1"), "a ResNet on keima-1, expected .* on zero-17 or leela-18"),
        (lambda: (toy(ZERO, size=19), "keima-1"), "a ZeroNet on keima-1, expected .* on zero-17 or leela-18"),
        (lambda: (toy(ZERO, size=19, planes=18), "zero-17"), "reads 18 planes, expected 17"),
        (lambda: (toy(ZERO, size=9), "zero-17"), "plays boards of 9x9, expected 19x19"),
        (lambda: (toy(ZERO, size=19, value_hidden=257), "zero-17"), "257 hidden units, expected at most 256"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(make, message, tmp_path):
    model, encoder = make()
    with pytest.raises(ValueError, match=f"network made cannot be written for Leela Zero: .*{message}") as caught:
        save_leela(tmp_path / "net", model, new_spec(model, "made", encoder))
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


def changed(line, change):
    """A sound network's file with one of its lines changed; line 1 is the version."""
    lines = made_lines()
    lines[line - 2] = change(lines[line - 2])
    return text_of(lines).encode()


def with_word(line, word):
    """A sound file with the third number of a line replaced."""
    rows = sound()[0].split(b"\n")
    numbers = rows[line - 1].split()
    rows[line - 1] = b" ".join([*numbers[:2], word, *numbers[3:]])
    return b"\n".join(rows)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: b"", "line 1: '', expected version 1 or 2"),
        (lambda: b"17\n0 0 0\n", r"line 1: '17\\n', expected version 1 or 2"),
        (lambda: b"1", "line 2: no numbers, the file may be truncated; expected weights of the first convolution"),
        (lambda: b"1\n\n", "line 2: no numbers"),
        (lambda: sound()[0][:9000], r"line \d+: .*expected"),
        (lambda: sound()[0][: len(sound()[0]) // 2], r"line \d+: [\d,]+ numbers, expected [\d,]+: weights of"),
        (lambda: sound()[0].rsplit(b"\n", 2)[0], "line 27: no numbers, the file may be truncated; expected bias of"),
        (lambda: sound()[0] + b"0.5\n", r"line 28: '0.5\\n', expected the end of the file"),
        (lambda: changed(2, lambda row: row[1:]), "line 2: 485 numbers, expected a multiple of 162"),
        (lambda: changed(2, lambda row: np.tile(row, 1000)), "line 2: more numbers than 331,776"),
        (lambda: changed(3, lambda row: row[1:]), "line 3: 2 numbers, expected 3: biases of a convolution with 3"),
        (lambda: changed(5, lambda row: -row), "line 5: -.*, expected variances, which are not negative"),
        (lambda: changed(6, lambda row: row[1:]), r"line 6: 80 numbers, expected 81 \(a block\) or 6 \(the policy"),
        (lambda: changed(18, lambda row: row[: 82 * 162]), "line 18: 13,284 numbers, expected 261,364: .* of 19x19"),
        (lambda: with_word(2, b"nan"), "line 2: 'nan', expected a finite number"),
        (lambda: with_word(4, b"inf"), "line 4: 'inf', expected a finite number"),
        (lambda: with_word(9, b"1e39"), "line 9: '1e39', expected a finite number"),
        (lambda: with_word(18, b"O.5"), "line 18: 'O.5', expected a number"),
        (lambda: with_word(3, b"\xff\0" * 9), "line 3: .*, expected a number"),
        (lambda: sound()[1][:-9], "truncated, expected more of its gzip archive"),
        (lambda: sound()[1][: len(sound()[1]) // 2], "truncated, expected more of its gzip archive"),
        (lambda: sound()[1][:9000] + bytes(200) + sound()[1][9200:], "damaged, expected a sound gzip archive|line"),
        (lambda: sound()[1][:-8] + bytes(4) + sound()[1][-4:], "damaged, expected a sound gzip archive"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(data, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(data())
    with pytest.raises(ValueError, match=message) as caught:
        leela_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


ONE_CHANNEL = b"1\n" + b"0 " * 162 + b"\n0\n0\n0\n"


@pytest.mark.parametrize(
    ("start", "filling", "message"),
    [
        (lambda: b"1\n", b"0 ", "more numbers than 331,776"),
        (lambda: b"1\n", b"        ", "more numbers than 331,776"),
        (lambda: b"1\n", b"00000000", "more numbers than 331,776"),
        (lambda: ONE_CHANNEL, b"0 0 0 0 0 0 0 0 0\n0\n0\n0\n", "more blocks than 255"),
        (lambda: sound()[0], b"        ", "expected the end of the file"),
        (lambda: b"", b"1", "expected version"),
    ],
    ids=["numbers", "blanks", "digits", "blocks", "tail", "one line"],
)
def test_what_blows_up_is_given_up_before_it_takes_memory(start, filling, message, tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(start())
        for _ in range(48):
            file.write(filling * ((1 << 20) // len(filling)))
        file.write(b"x")
    with at_most_mib(64), pytest.raises(ValueError, match=message):
        leela_model(path)


def test_blanks_behind_the_network_are_read_up_to_a_limit(tmp_path):
    path = tmp_path / "blank.gz"
    for blanks in (1 << 19, 1 << 21):
        path.write_bytes(gzip.compress(sound()[0] + b" " * blanks, 1))
        if blanks < 1 << 20:
            assert leela_model(path)
            continue
        with pytest.raises(ValueError, match="line 28: more than 1,048,576 blanks"):
            leela_model(path)


def test_so_many_parameters_are_given_up_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(engine.nets.files.leela_zero, "MAX_PARAMETERS", 1000)
    (tmp_path / "net").write_text(text_of(made_lines()))
    with pytest.raises(ValueError, match="line 18: more than 1,000 parameters"):
        leela_model(tmp_path / "net")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="none: cannot be read"):
        leela_model(tmp_path / "none")
