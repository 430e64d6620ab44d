"""Wrong queries and broken lines against the real process, and what the fuzzer takes for a fault."""

import json

import pytest

from bench.reliability import fuzz_json
from bench.reliability.fuzz_json import JsonFuzzer, lines


@pytest.mark.parametrize("seed", [1, fuzz_json.ENDED])
def test_every_line_is_answered_once(seed):
    fuzzer = JsonFuzzer(seed, 400, "default")
    fuzzer.run()
    assert fuzzer.faults == []


def test_lines_follow_from_the_seed_and_none_is_blank():
    sent = list(lines(3, 2000))
    assert sent == list(lines(3, 2000)) != list(lines(4, 2000))
    assert all(line.strip() and b"\n" not in line for _, line in sent)
    names = [name for name, _ in sent if name]
    assert len(set(names)) == len(names) > 1800


ANSWERS = {
    "q0": [{"id": "q0", "isDuringSearch": False, "turnNumber": 1}],
    "q1": [{"id": "q1", "error": "no", "field": "komi"}],
    "": [{"error": "no"}],
}
"""To a query, to a wrong one, and to no JSON"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"q0": []}, "1 answers without an id, expected 2 for"),
        ({"q0": ANSWERS["q0"] * 2}, "reports of turns {1: 2}"),
        ({"q0": [{"id": "q0", "isDuringSearch": False, "turnNumber": 0}]}, "reports of turns {0: 1}"),
        ({"q1": ANSWERS["q1"] * 2}, "2 answers"),
        ({"q1": [{"id": "q7", "error": "no"}]}, "never sent"),
        ({"": [{"error": "internal error: KeyError"}]}, "an internal error"),
        ({"": [{"warning": "no"}]}, "neither an id nor an error"),
    ],
)
def test_what_is_missing_twice_or_ours_is_a_fault(change, words):
    fuzzer = JsonFuzzer(1, 0, "none")
    query = json.dumps({"id": "q0", "moves": [["B", "A1"]]}).encode()
    fuzzer._sent = [("q0", query), ("q1", b'{"id": "q1", "komi": "x"}'), ("", b"[")]
    for answers in (ANSWERS | change).values():
        for answer in answers:
            fuzzer._count(answer)
    fuzzer._check_answers()
    assert (words in " ".join(fuzzer.faults)) and bool(words) == bool(fuzzer.faults)
