"""Write prompts that are answered best by copying: a piece of this project's source, then its first lines again.

python -m datasets.copying > datasets/copying.jsonl
"""

import ast
import json
from pathlib import Path

_SOURCES = ("text", "blocks", "scheduler", "records", "counters", "acceptance", "sequence", "reconcile")
_MOST = 1200  # characters of a piece
_LINES = 3  # of it that are given again


def pieces(path: Path) -> list[str]:
    """Return the sources of a file's functions and classes, cut at the length that is enough."""
    source = path.read_text(encoding="utf-8")
    nodes = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    found = (ast.get_source_segment(source, node) or "" for node in nodes)
    return [piece[:_MOST] for piece in found if len(piece) > _MOST // 2]


def main() -> None:
    """Write one bare row for each of up to two pieces of each file."""
    package = Path(__file__).parent.parent / "batchspec"
    for name in _SOURCES:
        for number, piece in enumerate(pieces(package / f"{name}.py")[:2]):
            again = "\n".join(piece.splitlines()[:_LINES])
            prompt = f"# {name}.py\n{piece}\n\n\n# {name}.py, once more\n{again}\n"
            print(json.dumps({"custom_id": f"{name}-{number}", "prompt": prompt}))


if __name__ == "__main__":
    main()
