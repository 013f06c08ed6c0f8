"""How large the product, its tests and its documentation are: `python -m tests.size [COMMIT]`.

A statement is an `ast.stmt` node that is not a bare string, and an expression an `ast.expr` node that is in no bare
string and no annotation: docstrings and types cost nothing. A setting is a field with a default of a pydantic model
that refuses unknown keys. Rows are rooms, then files of other kinds. With a commit, that commit is counted beside the
working tree.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("agents", "scenarios", "judging", "analysis", "training", "parley")
COLUMNS = ("files", "lines", "statements", "expressions", "settings")


def settings(trees: list[ast.Module]) -> int:
    """The fields with a value of pydantic models that refuse unknown keys, theirs or a parent's."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}

    def strict(name: str, seen: tuple[str, ...] = ()) -> bool:
        if name not in classes or name in seen:
            return False
        node = classes[name]
        parents = [ast.unparse(base).split(".")[-1].split("[")[0] for base in node.bases]
        forbids = any(word.arg == "extra" and ast.unparse(word.value) == "'forbid'" for word in node.keywords)
        return forbids or any(strict(parent, (*seen, name)) for parent in parents)

    fields = (part for name, node in classes.items() if strict(name) for part in node.body)
    return sum(isinstance(part, ast.AnnAssign) and part.value is not None for part in fields)


def count(paths: list[Path]) -> dict[str, int]:
    """The size of some Python files, by column."""
    texts = [path.read_text("utf-8") for path in paths]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in _code(tree)]
    return {
        "files": len(paths),
        "lines": sum(text.count("\n") for text in texts),
        "statements": sum(isinstance(node, ast.stmt) for node in nodes),
        "expressions": sum(isinstance(node, ast.expr) for node in nodes),
        "settings": settings(trees),
    }


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those below it, without bare strings and annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            bare = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not (bare and isinstance(child.value.value, str)):
                yield from _code(child)


def table(root: Path) -> dict[str, dict[str, int]]:
    """The sizes by room, and of what stands around the product."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [root / name for name in names if (root / name).is_file() and not (root / name).is_symlink()]

    def under(*folders: str, suffix: str = ".py") -> list[Path]:
        return [path for path in files if path.relative_to(root).parts[0] in folders and path.suffix == suffix]

    rows = {room: count(under(room)) for room in ROOMS} | {"product": count(under(*ROOMS))}
    rows |= {folder: count(under(folder)) for folder in ("tests", "docs", "benchmarks")}
    kinds = {"JavaScript and CSS": (".js", ".css"), "HTML": (".html",), "TOML": (".toml",)}
    for kind, suffixes in kinds.items():
        paths = [path for suffix in suffixes for path in under(*ROOMS, "docs", "benchmarks", suffix=suffix)]
        rows[kind] = {"files": len(paths), "lines": sum(len(_text(path).splitlines()) for path in paths)}
    pages = [*under("docs", suffix=".md"), root / "README.md"]
    rows["docs and README"] = {"files": len(pages), "words": sum(len(_text(path).split()) for path in pages)}
    return rows


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def show(rows: dict[str, dict[str, int]]) -> None:
    print(f"{'':20}" + "".join(f"{name:>13}" for name in (*COLUMNS, "words")))
    for name, row in rows.items():
        print(f"{name:20}" + "".join(f"{row.get(column, ''):>13}" for column in (*COLUMNS, "words")))


def main() -> None:
    root = Path(__file__).parents[1]
    for commit in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "clone", "-q", "--no-checkout", str(root), folder], check=True)
            subprocess.run(["git", "checkout", "-q", commit], cwd=folder, check=True)
            print(commit)
            show(table(Path(folder)))
    print("working tree")
    show(table(root))


if __name__ == "__main__":
    main()
