"""Every `degraded` message that the code can make is on its page, and the page has no others.

Messages are read from the source: whatever is noted as a loss, or given to a stage as the
consequence of losing it. An expression that cannot be read fails here, so that no message escapes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from tests.documentation import INLINE, ROOT, TEXTS

pytestmark = pytest.mark.slow

PAGE = TEXTS["docs/degraded.md"]
# Where a message has a number or a version, the page has one of these letters.
HOLE = re.compile(r"\b[NV]\b")
FAULTS = ("FAILED", "UNUSABLE", "ABSENT")
MODULES = sorted((ROOT / "serve").rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def module_constants(path: Path) -> dict[str, ast.expr]:
    """The names that a module gives a value, and those that it imports from modules of ours."""
    found: dict[str, ast.expr] = {}
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            source = ROOT / f"{node.module.replace('.', '/')}.py"
            if source.is_file() and node.module.startswith(("serve.", "cluster.")):
                theirs = module_constants(source)
                for alias in node.names:
                    if alias.name in theirs:
                        found[alias.asname or alias.name] = theirs[alias.name]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found


class UnreadableError(Exception):
    """An expression whose text does not stand in the source."""


class Module:
    """The messages of one module."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.constants = module_constants(path)
        self.functions = {
            node.name: node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)
        }

    def texts(self, node: ast.expr, local: dict[str, ast.expr]) -> Iterator[str]:
        """What `node` may say, with {} for each part that is known only at run time."""
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in parts)
            case ast.IfExp(body=one, orelse=other):
                yield from self.texts(one, local)
                yield from self.texts(other, local)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                for item in items:
                    yield from self.texts(item, local)
            case ast.Name(id=name) if name in local:
                yield from self.texts(local[name], local)
            case ast.Name(id=name) if name in self.constants:
                yield from self.texts(self.constants[name], local)
            case ast.Call(func=ast.Name(id=name)) if name in self.functions:
                for inner in ast.walk(self.functions[name]):
                    if isinstance(inner, ast.Return) and inner.value:
                        yield from self.texts(inner.value, local)
            case _:
                raise UnreadableError(f"{self.path.relative_to(ROOT)}:{node.lineno}")

    def messages(self) -> Iterator[str]:
        for function in ast.walk(tree(self.path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._of(function)

    def _of(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        # What a caller gives is read at the caller; loops give keys and values of a dict.
        given = {argument.arg for argument in arguments}
        local = {
            node.targets[0].id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for default in function.args.defaults:
            name = arguments[len(arguments) - len(function.args.defaults)].arg
            if name == "loss" and isinstance(default, ast.Constant):
                yield from self.texts(default, local)
        for expression in losses(function):
            if isinstance(expression, ast.Name) and expression.id in given:
                continue
            named = expression.id if isinstance(expression, ast.Name) else ""
            if named in {"consequence", "loss"} - local.keys():
                # A loop over the values of a dict of this function.
                yield from _values_of_dicts(function)
                continue
            yield from self.texts(expression, local)


def _values_of_dicts(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            for value in node.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


# The call, and which of its positional arguments is the message.
CALLS = {"note": 0, "with_loss": 0, "run": 3, "ask": 3, "encode": 1, "embed": 1, "entities": 1}


def losses(function: ast.AST) -> Iterator[ast.expr]:
    """The expressions that a function notes or hands on as messages."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in CALLS:
                if len(args) > CALLS[name]:
                    yield args[CALLS[name]]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="degraded"), attr="append")):
                yield node.args[0]
            case ast.AugAssign(target=ast.Name(id="degraded"), value=value):
                yield value
            case ast.Call(func=ast.Name(id="WrittenAnswer"), keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "degraded" and isinstance(keyword.value, ast.Tuple):
                        yield keyword.value
            case ast.AugAssign(target=ast.Subscript(value=held, slice=key)):
                if ast.unparse(held).endswith("losses"):
                    yield key


def faults() -> dict[str, str]:
    """Why a model gave no answer, by the constant's name."""
    constants = Module(ROOT / "serve/answer/ask_model.py").constants
    return {name: str(ast.literal_eval(constants[name])) for name in FAULTS}


@cache
def all_messages() -> frozenset[str]:
    found = {message for path in MODULES for message in Module(path).messages()}
    whole = set[str]()
    for message in found:
        if message.startswith("{}, "):
            whole |= {message.replace("{}", fault, 1) for fault in faults().values()}
        elif not message.startswith("{}: "):
            whole.add(message)
    return frozenset(whole)


# Of a table's row the first cell names the messages.
SHOWN = {
    code
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for code in INLINE.findall(line.split(" | ")[0])
}
STAGES = {row[1] for row in re.finditer(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \|$", PAGE, re.M)}


def said_by(message: str) -> re.Pattern[str]:
    return re.compile(re.escape(message).replace(r"\{\}", "[NV]"))


def stages() -> set[str]:
    """The stages that StageWatch runs, by the first argument of each call."""
    found: set[str] = set()
    for path, names in product(MODULES, [("run", 4), ("ask", 4)]):
        module = Module(path)
        for node in ast.walk(tree(path)):
            match node:
                case ast.Call(func=ast.Attribute(attr=name), args=args) if name == names[0]:
                    if len(args) >= names[1] and not (
                        isinstance(args[0], ast.Name) and args[0].id == "stage"
                    ):
                        found |= set(module.texts(args[0], {}))
    return found


def test_messages_are_found_in_the_code() -> None:
    messages = all_messages()
    assert {"BM25 only", "shard {} left out", "evidence without an answer"} <= messages
    assert {"llm: failed, extractive answer", "evidence: none found"} <= messages
    assert len(messages) >= 30


def test_every_message_is_explained() -> None:
    missing = [m for m in all_messages() if not any(map(said_by(m).fullmatch, SHOWN))]
    assert missing == []


def test_the_page_explains_no_message_that_there_is_not(subtests: pytest.Subtests) -> None:
    for code in sorted(SHOWN - STAGES):
        with subtests.test(code=code):
            assert any(said_by(message).fullmatch(code) for message in all_messages())


def test_every_stage_is_explained() -> None:
    assert stages() == STAGES
