"""The regular expressions of the sources, and the strings that each of them takes longest for."""

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from tests.rooms import IMPORTS, MODULES

FLAGS_AT = {
    "compile": 1,
    "match": 2,
    "fullmatch": 2,
    "search": 2,
    "findall": 2,
    "finditer": 2,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
"""Functions of ``re``, and where among their arguments the flags are"""
METHODS = FLAGS_AT.keys() - {"compile"}
OTHERS = "\x00 \t\n0159aAbzZ.,-/_!#:()[]" + "é子\u4e00"
"""Characters that are tried besides those of the pattern"""
LOCALS = {"gtp.cli.settings": {"key": "c-puct"}}
"""Values of local names that patterns are made of"""
MOST_TOGETHER = 3
"""Neighbours in a pattern that are repeated together"""


@dataclass
class Use:
    """A regular expression in the sources."""

    module: str
    line: int
    source: str
    """the expression that makes the pattern"""
    pattern: re.Pattern[Any] | None = None
    """None where it is made of what only a running function knows"""
    methods: set[str] = field(default_factory=set)
    """of ``re.Pattern``, by which it is used"""


def uses() -> list[Use]:
    """All regular expressions of the packages, in order."""
    files = {name: _File(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
    return [
        _use(module, node, function, files)
        for module, file in files.items()
        for node in file.nodes
        if (function := function_of(node)) is not None
    ]


def function_of(node: ast.AST) -> str | None:
    """The function of ``re`` that a node calls, if it is a call of one that takes a pattern."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr)) if attr in FLAGS_AT:
            return attr
    return None


class _File:
    """A source file."""

    def __init__(self, text: str):
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))

    def value(self, node: ast.AST, local: dict[str, Any]) -> Any:
        """What an expression of constants and of the file's own names comes to."""
        names = dict(local)
        for name in {inside.id for inside in ast.walk(node) if isinstance(inside, ast.Name)} - names.keys():
            for given in self.tree.body:
                if isinstance(given, ast.Assign) and isinstance(given.targets[0], ast.Name | ast.Tuple):
                    targets = [given.targets[0]] if isinstance(given.targets[0], ast.Name) else given.targets[0].elts
                    if name in (known := [target.id for target in targets]):
                        value = self.value(given.value, local)
                        names[name] = value if targets[0] is given.targets[0] else value[known.index(name)]
        return eval(ast.unparse(node), names)


def _use(module: str, call: ast.Call, function: str, files: dict[str, _File]) -> Use:
    use = Use(module, call.lineno, ast.unparse(call.args[0]))
    flags = [word.value for word in call.keywords if word.arg == "flags"] + call.args[FLAGS_AT[function] :]
    with contextlib.suppress(NameError):
        local = LOCALS.get(module, {}) | {"re": re}
        use.pattern = re.compile(*(files[module].value(node, local) for node in (call.args[0], *flags)))
    use.methods = {function} if function != "compile" else _methods(module, call, files)
    return use


def _methods(module: str, call: ast.Call, files: dict[str, _File]) -> set[str]:
    """By which methods a compiled pattern is used, under whatever names it is given."""
    names = set()
    for node in files[module].nodes:
        if isinstance(node, ast.Assign) and node.lineno <= call.lineno <= (node.end_lineno or 0):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
            names |= {target.id for target, value in pairs if isinstance(target, ast.Name) and call in ast.walk(value)}
    found = _methods_of(names, files[module])
    for other in {name for name, imports in IMPORTS.items() if any(found.target == module for found in imports)}:
        found |= _methods_of(names & _imported(files[other], module), files[other])
    return found


def _imported(file: _File, module: str) -> set[str]:
    """The names that a file imports from a module."""
    statements = (node for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in statements for alias in node.names}


def _methods_of(names: set[str], file: _File) -> set[str]:
    """The methods of patterns that are called on some names, and on what loops take out of them."""
    if not names:
        return set()
    names = set(names)
    for node in file.nodes:
        if isinstance(node, ast.For | ast.comprehension) and _names_in(node.iter) & names:
            names |= _names_in(node.target)
    return {
        node.attr
        for node in file.nodes
        if isinstance(node, ast.Attribute) and node.attr in METHODS and _is_of(node.value, names)
    }


def _is_of(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression is one of the names, or an entry of one."""
    return (
        _is_of(node.value, names)
        if isinstance(node, ast.Subscript)
        else isinstance(node, ast.Name) and node.id in names
    )


def _names_in(node: ast.AST) -> set[str]:
    return {inside.id for inside in ast.walk(node) if isinstance(inside, ast.Name)}


def run(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    """Use a pattern up to its last match."""
    if method in ("sub", "subn"):
        getattr(pattern, method)(text[:0], text)
    elif method == "finditer":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)


@dataclass(frozen=True)
class Kind:
    """A string of any length: something repeated, behind a beginning that matches, before an end that should not."""

    before: str
    repeated: str
    after: str

    def text(self, length: int, is_bytes: bool) -> str | bytes:
        """The string of a length."""
        room = max(1, length - len(self.before) - len(self.after))
        text = self.before + (self.repeated * (room // len(self.repeated) + 1))[:room] + self.after
        return text.encode("latin-1") if is_bytes else text


def kinds(pattern: re.Pattern[Any]) -> list[Kind]:
    """The strings to try: every neighbourhood of the pattern repeated, behind all that stands before it or nothing."""
    return list(dict.fromkeys(_Strings(pattern).kinds()))


class _Strings:
    """What a pattern is made of, as strings."""

    def __init__(self, pattern: re.Pattern[Any]):
        self._is_bytes = isinstance(pattern.pattern, bytes)
        self._tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        literals = dict.fromkeys(character for character in _characters(self._tree.data))
        self._alphabet = [sign for sign in (*literals, *OTHERS) if not self._is_bytes or ord(sign) < 256]
        self._ends = ["", *dict.fromkeys((*"\x00\n !x/", *_refused(self._tree.data)))]

    def kinds(self) -> Iterator[Kind]:
        for before, items in self._sequences("", self._tree.data):
            for first, item in enumerate(items):
                beginnings = {"", before + self._sample(items[:first])}
                repeated = [self._sample(items[first : first + n]) for n in range(1, MOST_TOGETHER + 1)]
                repeated.append(before + self._sample(items[: first + 1]))
                for text in filter(None, dict.fromkeys(repeated + self._members(item))):
                    yield from (Kind(start, text, end) for start in beginnings for end in self._ends)

    def _sequences(self, before: str, items: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """All sequences of the pattern, and a string that matches what stands before each."""
        yield before, items
        for first, item in enumerate(items):
            start = before + self._sample(items[:first])
            for inside in _inside(item):
                yield from self._sequences(start, inside)

    def _sample(self, items: list[Any]) -> str:
        """A string that a sequence matches; what may be missing is there."""
        text = ""
        for operation, value in items:
            if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
                text += self._sample(value[2].data) * max(1, value[0])
            elif operation in (_constants.ASSERT, _constants.ASSERT_NOT, _constants.AT, _constants.GROUPREF):
                continue
            elif inside := list(_inside((operation, value))):
                text += self._sample(inside[0])
            else:
                text += next(iter(self._members((operation, value))), "")
        return text

    def _members(self, item: Any) -> list[str]:
        """Characters of the alphabet that one place of the pattern takes."""
        while item[0] in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            if len(item[1][2].data) != 1:
                return []
            item = item[1][2].data[0]
        if item[0] not in (_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY):
            return []
        state = _parser.State()
        state.str, state.flags = self._tree.state.str, self._tree.state.flags
        one = _compiler.compile(_parser.SubPattern(state, [item]), self._tree.state.flags)
        return [sign for sign in self._alphabet if one.fullmatch(sign.encode("latin-1") if self._is_bytes else sign)]


def _inside(item: Any) -> Iterator[list[Any]]:
    """The sequences that an item of a pattern holds."""
    operation, value = item
    if operation is _constants.BRANCH:
        yield from (branch.data for branch in value[1])
    elif operation is not _constants.IN and isinstance(value, tuple | _parser.SubPattern):
        parts = value if isinstance(value, tuple) else (value,)
        yield from (part.data for part in parts if isinstance(part, _parser.SubPattern))


def _characters(items: list[Any]) -> Iterator[str]:
    """All characters that a pattern names, ends of ranges included."""
    for item in items:
        operation, value = item
        if operation in (_constants.LITERAL, _constants.NOT_LITERAL):
            yield chr(value)
        elif operation is _constants.RANGE:
            yield from map(chr, value)
        elif operation is _constants.IN:
            yield from _characters(value)
        for inside in _inside(item):
            yield from _characters(inside)


def _refused(items: list[Any]) -> Iterator[str]:
    """Characters that a pattern must not find behind something."""
    for item in items:
        for inside in _inside(item):
            yield from _characters(inside) if item[0] is _constants.ASSERT_NOT else _refused(inside)
