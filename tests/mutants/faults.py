"""Small faults that can be put into a module: a comparison, a constant, a dropped line, swapped arguments."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ANY_ORDER = ("max", "min", "isinstance", "issubclass")
_UNSEEN = {"annotation", "returns", "decorator_list", "bases", "pattern"}
"""Parts in which a small change alters no result, or none that a test should notice; or is no valid code."""
KINDS = ("comparison", "constant", "logic", "dropped line", "swapped arguments", "dropped argument")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One change of a module's source.

    Args:
        kind: One of `KINDS`.
        function: The function that it is in; empty for a module's own lines.
        line: The line.
        change: The code before and after.
        lines: The lines that a test must have run to notice it; empty if it takes effect on import.
        start: Where in the source, in bytes, the change begins.
        end: Where it ends.
        text: The new code there.
    """

    kind: str
    function: str
    line: int
    change: str
    lines: range
    start: int
    end: int
    text: str

    def put_into(self, source: str) -> str:
        """The module with the fault."""
        code = source.encode()
        return (code[: self.start] + self.text.encode() + code[self.end :]).decode()


def faults_of(source: str) -> list[Fault]:
    """All faults that can be put into a module."""
    return _Finder(source).found


Choice = TypeVar("Choice", bound=tuple[Any, Fault])


def choose(found: Sequence[Choice], count: int, seed: int) -> list[Choice]:
    """Some of the faults, as many of each kind as there are: constants are too frequent to choose from all alike."""
    rng = random.Random(seed)
    queues = [[choice for choice in found if choice[1].kind == kind] for kind in KINDS]
    for queue in queues:
        rng.shuffle(queue)
    chosen: list[Choice] = []
    while len(chosen) < count and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    return chosen[:count]


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.found: list[Fault] = []
        self._source = source.encode()
        self._starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self._inside = False  # whether in a function: all other lines run on import
        self._lines = range(0)
        self.visit(ast.parse(source))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr):  # its nodes have no true positions before Python 3.12
            return
        if isinstance(node, ast.stmt) and self._inside:
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)
            self._lines = range(node.lineno, end + 1)
        for kind, changed in _changes(node):
            self._add(kind, node, changed)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._visit_definition(node)
        else:
            self._visit_parts(node)

    def _visit_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        before = self._inside, self._lines
        self._names.append(node.name)
        if not isinstance(node, ast.ClassDef):
            if not self._inside:  # its defaults matter to those who call it
                self._lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            self.visit(node.args)
            self._inside = True
        for statement in node.body:
            self.visit(statement)
        self._names.pop()
        self._inside, self._lines = before

    def _visit_parts(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST) and field not in _UNSEEN:
                    self.visit(part)

    def _add(self, kind: str, node: Any, changed: Any) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(changed)
        change = f"{_short(self._source[start:end].decode())} → {_short(text)}"
        if kind == "dropped argument":
            gone = next(word for word in node.keywords if word not in changed.keywords)
            change = f"{_short(ast.unparse(node.func))}(…) without {_short(ast.unparse(gone))}"
        self.found.append(
            Fault(
                kind=kind,
                function=".".join(self._names),
                line=node.lineno,
                change=change,
                lines=self._lines,
                start=start,
                end=end,
                text=text if isinstance(changed, ast.stmt) else f"({text})",
            )
        )


def _short(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= 70 else f"{code[:40]} … {code[-28:]}"


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare():
            yield "comparison", ast.Compare(node.left, [_OTHER[type(node.ops[0])](), *node.ops[1:]], node.comparators)
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", ast.Constant(value * 2 or 1.0)
        case ast.BoolOp():
            yield "logic", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "logic", node.operand
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            yield "dropped line", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "dropped line", ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "dropped line", ast.Return(ast.Constant(None))
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    first, second = (*node.args, None, None)[:2]
    starred = any(isinstance(argument, ast.Starred) for argument in (first, second))
    named = node.func.id if isinstance(node.func, ast.Name) else ""
    if first and second and not starred and named not in _ANY_ORDER and ast.dump(first) != ast.dump(second):
        yield "swapped arguments", ast.Call(node.func, [second, first, *node.args[2:]], node.keywords)
    for keyword in node.keywords:
        if keyword.arg:
            others = [other for other in node.keywords if other is not keyword]
            yield "dropped argument", ast.Call(node.func, node.args, others)
