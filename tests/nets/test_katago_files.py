"""KataGo's files that are damaged, truncated, foreign or made to do harm: one line each, and little memory."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.nets.katago.blocks import MAX_DEPTH
from engine.nets.katago.model import load_katago
from tests.memory import at_most_mib
from tests.nets.katago_files import SILU, random_network, written

ATTENTION = ("attention", 4, 2, 2, 3, "learnt")
NETWORK = random_network(17, ("pooling", ("nested", (ATTENTION, "feed_forward"))), SILU, "plain")
CONTENT = written(NETWORK)
TEXT = written(NETWORK, is_binary=False)
HEADER = b"tiny 8 22 19 trunk 1 16384 1 1 1 1 "


def refused(path, content, match="expected"):
    """The one line that a file gets."""
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match) as caught:
        load_katago(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and "\n" not in line and len(line) < 400 + len(str(path))
    assert line.isascii() and line.isprintable() and "expected" in line
    return line


def swapped(content, old, new):
    """A content with one of its words changed."""
    assert content.count(old) >= 1
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "byte 0, name of the network: the file ends, expected a word"),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "byte 0, name of the network: no text, expected a word of at most 256"),
        (b"x" * 97 + b" 8 22 19", "name of the network: 'x{59}, expected up to 96 printable ASCII characters"),
        (b"#!/bin/sh\nexit 0\n", "model version: 'exit', expected a whole number from 8 to 17"),
        (b"1\n0.25 0.5\n", r"byte 6, model version: '0\.25', expected a whole number from 8 to 17"),
        (b"x" * 5000, "name of the network: no text"),
        (b"net 7 22 19\n", "model version: 7, expected a whole number from 8 to 17"),
        (b"net 18 22 19\n", "model version: 18, expected"),
        (b"net 8 21 19\n", "input planes: 21, expected 22"),
        (b"net 8 22 20\n", "global inputs: 20, expected 19"),
        (b"net 8 22 19 trunk 0 ", "trunk: blocks: 0, expected a whole number from 1 to 1024"),
        (b"net 8 22 19 trunk 1 99999999999999999999 ", "trunk: channels of the trunk: 9{20}, expected"),
        (b"net 14 22 19 20 20 nan ", "multiplier score_deviation: 'nan', expected a number above 0"),
        (b"net 15 22 19 20 20 20 20 40 1 1 2 ", "encoder of players and dates: 2, expected a whole number from 0 to 1"),
        (b"net 15 22 19 20 20 20 20 40 1 1 0 0 0 3 ", "model option 1 of 5 unknown ones: 3, expected 0"),
        (HEADER + b"conv 4 5 22 16384 1 1 ", "conv: convolution: 4x5, expected odd height and width"),
        (HEADER + b"conv 39 5 22 16384 1 1 ", "height of a convolution: 39, expected a whole number from 1 to 37"),
        (HEADER + b"conv 5 5 22 16383 1 1 ", "conv: output channels: 16383, expected 16384"),
        (HEADER + b"conv 5 5 22 16384 1 1 @BIN@" + bytes(4000), "conv: weights: the file ends after 1,000, expected 9"),
        (HEADER + b"conv 5 5 22 16384 1 1 0.5 1e-3 ", "conv: weights: the file ends after 2, expected 9,011,200"),
        (HEADER + b"conv 5 5 22 16384 1 1 0.5 half ", "conv: weights: no number, expected 9,011,200 numbers, or @BIN@"),
        (HEADER + b"conv 5 5 22 16384 1 1 " + b"7" * 5000, "conv: weights: no number, expected"),
        (HEADER + b"conv 37 37 22 16384 1 1 @BIN@", "weights: 493,453,312 so far, expected at most 268,435,456"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused_in_one_line(content, match, tmp_path):
    refused(tmp_path / "net.bin", content, match)
    refused(tmp_path / "net.bin.gz", gzip.compress(content), match)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (
            b"gpool_block\n",
            b"dilated_block\n",
            "kind of block: 'dilated_block', expected one of ordinary_block, gpool_",
        ),
        (SILU.encode(), b"ACTIVATION_GELU", "activation: ACTIVATION_GELU, expected one of ACTIVATION_IDENTITY"),
        (b"\n4\n2\n2\n3\n1\n1\n", b"\n4\n3\n2\n3\n1\n1\n", "query heads: 4, expected a multiple of 3"),
        (b"\n4\n2\n2\n3\n1\n1\n", b"\n4\n2\n3\n3\n1\n1\n", "width of a query head: 3, expected an even one"),
        (b"\n4\n5\n1\n", b"\n4\n5\n0\n", "whether there is a gate: 0, expected 1"),
        (b"\n4\n5\n1\n", b"\n5\n5\n1\n", "channels: 5, expected 4"),
        (b"\n2\n1\n2\n", b"\n2\n2\n2\n", "pairs: 2, expected 1"),
        (b"\n6\n1e-06\n0\n0\n", b"\n6\n1e-06\n0\n4\n", "channels of a group: 4, expected 0"),
        (b"\n6\n1e-06\n0\n0\n", b"\n6\n-1\n0\n0\n", "epsilon: '-1', expected a number above 0, at most 1"),
        (b"\n2\n0\n0\n0\n", b"\n3\n0\n0\n0\n", "policy channels: 3, expected 2 or 4"),
        (b"\n2\n0\n0\n0\n", b"\n2\n0\n1\n0\n", "policy option 2 of 3 unknown ones: 1, expected 0"),
    ],
)
@pytest.mark.parametrize("content", [CONTENT, TEXT], ids=["binary", "text"])
def test_what_no_network_says_is_refused_with_its_layer(content, old, new, match, tmp_path):
    line = refused(tmp_path / "net", swapped(content, old, new), match)
    assert ": byte " in line


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_binary", [False, True])
def test_weights_that_are_no_finite_numbers_are_refused(value, is_binary, tmp_path):
    network = random_network(8)
    network["value"]["layers"][0]["weight"][0, 0, 2, 1] = value
    refused(tmp_path / "net", written(network, is_binary), "weights: a number that is not finite, expected finite ones")


def test_negative_variances_are_refused(tmp_path):
    network = random_network(8)
    network["tip"][0]["variance"][3] = -0.5
    refused(tmp_path / "net", written(network), "variance: -0.5, expected none below 0")


def test_weights_that_normalisation_makes_infinite_are_refused(tmp_path):
    network = random_network(8)
    scaling = network["blocks"][0]["layers"][3]
    scaling["variance"][0], scaling["epsilon"] = 0.0, 1e-38
    network["blocks"][0]["layers"][2]["weight"][:] = 1e38
    refused(tmp_path / "net", written(network), "weights: infinite ones once they are normalised, expected finite")


def test_more_data_than_a_network_are_refused(tmp_path):
    refused(tmp_path / "net", CONTENT + b"more", "after the last layer: more data, expected the end of the file")
    (tmp_path / "net").write_bytes(CONTENT + b"\n \n")
    assert load_katago(tmp_path / "net")


def test_a_wrong_checksum_is_refused(tmp_path):
    packed = bytearray(gzip.compress(CONTENT))
    packed[-6] ^= 1
    refused(tmp_path / "net.gz", bytes(packed), "content: CRC check failed.*expected a whole, undamaged file")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"none\.bin\.gz: cannot be read \(No such file"):
        load_katago(tmp_path / "none.bin.gz")


def test_stacks_within_stacks_end(tmp_path):
    kind = "residual"
    for _ in range(MAX_DEPTH - 1):
        kind = ("nested", (kind,))
    (tmp_path / "net").write_bytes(written(random_network(8, (kind,))))
    assert load_katago(tmp_path / "net")
    deeper = written(random_network(8, (("nested", (kind,)),)))
    refused(tmp_path / "net", deeper, f"blocks: {MAX_DEPTH + 1} stacks within each other, expected at most {MAX_DEPTH}")


@settings(max_examples=60, derandomize=True)
@given(is_packed=st.booleans(), is_binary=st.booleans(), share=st.floats(0, 1, exclude_max=True))
def test_every_truncation_is_refused(is_packed, is_binary, share, tmp_path_factory):
    whole = (CONTENT if is_binary else TEXT).rstrip(b"\n")
    if not is_binary:
        # A number that lost its last digits is still one.
        share = whole.rindex(b" ") / len(whole) * share
    whole = gzip.compress(whole, 1) if is_packed else whole
    refused(tmp_path_factory.getbasetemp() / "truncated", whole[: int(len(whole) * share)])


@settings(max_examples=80, derandomize=True)
@given(
    is_packed=st.booleans(),
    is_binary=st.booleans(),
    share=st.floats(0, 1, exclude_max=True),
    bits=st.integers(1, 255),
)
def test_damage_is_refused_in_one_line_or_does_no_harm(is_packed, is_binary, share, bits, tmp_path_factory):
    content = CONTENT if is_binary else TEXT
    damaged = bytearray(gzip.compress(content, 1) if is_packed else content)
    damaged[int(len(damaged) * share)] ^= bits
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(bytes(damaged))
    try:
        load_katago(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error) and "expected" in str(error)


def bomb():
    """Zeros, packed, that go on as long as a network may have weights."""
    layers = [
        ("conv 5 5 22 16384 1 1", 9011200),
        ("matrix 19 16384", 311296),
        ("ordinary_block b s 16384 1 0 0", 16384),
    ]
    layers += [("", 16384), ("a c 1 1 16384 8192 1 1", 1 << 24)]
    return gzip.compress(HEADER + b"".join(words.encode() + b" @BIN@" + bytes(4 * count) for words, count in layers), 1)


@pytest.mark.parametrize(
    ("content", "match", "limit_mib"),
    [
        (
            bomb,
            "content: more than 67,108,864 bytes once unpacked, expected a network",
            200,
        ),
        (lambda: gzip.compress(b"net" + b" " * (1 << 27), 1), "content: more than 67,108,864 bytes once unpacked", 8),
        (lambda: gzip.compress(b"n" * (1 << 26), 9), "name of the network: no text", 8),
        (lambda: HEADER + b"conv 1 1 22 16384 1 1 @BIN@", "the file ends after 0, expected 360,448", 8),
        (lambda: HEADER + b"conv 19 19 22 16384 1 1 0 ", "the file ends after 1, expected 130,121,728", 8),
    ],
    ids=["weights", "spaces", "word", "binary", "text"],
)
def test_memory_stays_bounded(content, match, limit_mib, tmp_path):
    content = content()
    with at_most_mib(limit_mib):
        refused(tmp_path / "net", content, match)


def test_rotations_that_a_small_file_makes_many_of_are_refused(tmp_path):
    """The file holds those of the one key head; each query head has them again, at every point."""
    network = random_network(17, (("attention", 512, 1, 512, 1, "learnt"),))
    refused(tmp_path / "net", written(network), "pairs: 513 heads of 256, expected at most 4,194,304 angles")
