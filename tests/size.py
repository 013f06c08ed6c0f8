"""How large the product, its tests and its documentation are: `python -m tests.size [COMMIT]`.

A statement is an `ast.stmt` node, an expression an `ast.expr` node; a setting is a field with a default of a pydantic
model that refuses unknown keys. Rows are rooms. With a commit, that commit is counted beside the working tree.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
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
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {
        "files": len(paths),
        "lines": sum(text.count("\n") for text in texts),
        "statements": sum(isinstance(node, ast.stmt) for node in nodes),
        "expressions": sum(isinstance(node, ast.expr) for node in nodes),
        "settings": settings(trees),
    }


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
    scripts = [path for suffix in (".js", ".css") for path in under(*ROOMS, suffix=suffix)]
    rows["JavaScript and CSS"] = {
        "files": len(scripts),
        "lines": sum(len(_text(path).splitlines()) for path in scripts),
    }
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
