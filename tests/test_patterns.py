"""Regular expressions take time in proportion to what they are given: a hostile file must not freeze the process."""

import ast
import time

import pytest

from engine.system.jit import IMPORT
from tests.patterns import function_of, kinds, run, uses
from tests.rooms import PACKAGES, sources

LENGTH, MOST_S = 100_000, 0.1
"""Characters, and the processor time that they may take"""
SCREENED = (20, 100, 500, 4000)
"""Lengths at which the worst kinds are looked for, so that a bad one is found before it takes minutes"""
WORST = 4
"""Kinds that are given the full length"""
EXEMPT = {
    ("bench.strength.regress", "pattern"): "the suite's author wrote it, and the engine under test the answer",
    ("bench.strength.regress", "self.pattern"): "the same",
    ("engine.system.jit", repr(IMPORT.pattern)): "reads this project's own sources",
}
"""Patterns that meet no foreign text, by module and source, and why"""


@pytest.fixture(scope="module")
def found():
    """Every use of a regular expression in the sources."""
    return uses()


def seconds(pattern, method, text):
    """Processor time of one use."""
    begun = time.process_time()
    run(pattern, method, text)
    return time.process_time() - begun


def is_slow(pattern, method, kind, length, taken):
    """Whether a time is long, and grows more than in proportion: a slow machine is not a slow pattern."""
    if taken <= MOST_S:
        return False
    quarter = kind.text(length // 4, isinstance(pattern.pattern, bytes))
    return taken > 8 * min(seconds(pattern, method, quarter) for _ in range(2))


def slow_kind(pattern, method):
    """The kind of string for which a pattern takes too long, with its length and its time; None if there is none."""
    is_bytes, found = isinstance(pattern.pattern, bytes), []
    for kind in kinds(pattern):
        for length in SCREENED:
            taken = seconds(pattern, method, kind.text(length, is_bytes))
            if is_slow(pattern, method, kind, length, taken):
                return kind, length, taken
        found.append((taken, kind))
    for _, kind in sorted(found, key=lambda pair: pair[0])[-WORST:]:
        text = kind.text(LENGTH, is_bytes)
        taken = min(seconds(pattern, method, text) for _ in range(2))
        if is_slow(pattern, method, kind, LENGTH, taken):
            return kind, LENGTH, taken
    return None


def test_all_regular_expressions_are_found(found):
    """None is made by another name of ``re``, and each one's use is known."""
    for package in PACKAGES:
        for path in sources(package):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_other = isinstance(node, ast.ImportFrom) and node.module == "re"
                is_renamed = isinstance(node, ast.Import) and any(a.name == "re" and a.asname for a in node.names)
                is_taken = isinstance(node, ast.Call) and function_of(node) and not node.args
                assert not (is_other or is_renamed or is_taken), f"{path}:{node.lineno}"
    assert len(found) > 60
    for use in found:
        is_exempt = (use.module, use.source) in EXEMPT
        assert is_exempt or (use.pattern is not None and use.methods), use
    assert EXEMPT.keys() <= {(use.module, use.source) for use in found}


def test_regular_expressions_are_linear(found):
    asked = [use for use in found if (use.module, use.source) not in EXEMPT]
    slow = [(use, method, kind) for use in asked for method in use.methods if (kind := slow_kind(use.pattern, method))]
    assert not slow
