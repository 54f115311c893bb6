"""Draws docs/architecture.svg from the imports of engine/ and app/: `python docs/draw_architecture.py [--check]`.

An arrow leads from a room to one that uses it, so data walks along the arrows, from the checkpoint at the top to the
window at the bottom. What follows from two other arrows is left out (transitive reduction). Rooms that use each other
stand in one frame. The words in a box are the first sentence of the room's docstring.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
SURFACE = "engine"
FACADE = "engine.engine"
MODULES = ("backend", "engine", "loading", "pace", "quantize", "sampling")
"""Single files of engine/ that are rooms of their own. The others are values and helpers, which everybody uses."""
GROUPS = {
    "app.application": "__main__ main application desktop single signals crash display",
    "app.window": "window frame modelwindow filewindow header menus dialogs toast selftestdialog",
    "app.services": "services",
    "app.worker": "worker pump",
}
"""Rooms of app/ that are several files. Its other single files are helpers and tools."""
BOX, GAP, ROW, DUMMY, MARGIN, FRAME = (186, 66), 22, 112, 14, 24, 8
FILLS = {"engine": ("#e8f0fb", "#5b84c4"), "app": ("#eaf5ea", "#5b9a5b")}


# -- what is in the code -----------------------------------------------------------------------------------


def room_of(module: str) -> str:
    """The room that a dotted module name belongs to, "" for helpers."""
    package, _, rest = module.partition(".")
    first = rest.partition(".")[0]
    if package == "app":
        groups = (room for room, names in GROUPS.items() if first in names.split())
        return next(groups, f"app.{first}" if (ROOT / "app" / first / "__init__.py").is_file() and first else "")
    if not first:
        return SURFACE
    return f"engine.{first}" if first in MODULES or (ROOT / "engine" / first / "__init__.py").is_file() else ""


def modules() -> dict[str, ast.Module]:
    """By dotted name. Files that are commands of their own (measurements, pictures) are no part of the way."""
    found = {}
    for path in sorted([*ROOT.glob("engine/**/*.py"), *ROOT.glob("app/**/*.py")]):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        if "\nif __name__ ==" not in text or name in GROUPS:
            found[name] = ast.parse(text)
    return found


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of every `from engine... import` and `from app... import`, those for type checkers left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in FILLS:
            yield from ((node.module or "", alias.name) for alias in node.names)
        yield from imports(node)


def edges(trees: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """(used, user) pairs of rooms."""
    exported = {name: module for module, name in imports(trees[SURFACE])}
    found = set()
    for module, tree in trees.items():
        user = room_of(module)
        for source, name in imports(tree):
            if source == SURFACE and user.startswith("engine."):
                # Inside the engine the surface is no room: what counts is where a name is made.
                source = exported.get(name, f"{SURFACE}.{name}" if f"{SURFACE}.{name}" in trees else FACADE)
            used = room_of(f"{source}.{name}" if f"{source}.{name}" in trees else source)
            if used and user and used != user:
                found.add((used, user))
    return found


def sentence(room: str, trees: Mapping[str, ast.Module]) -> str:
    """The first one of the docstring."""
    text = " ".join((ast.get_docstring(trees[room]) or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


# -- where it stands ---------------------------------------------------------------------------------------


@dataclass
class Cell:
    """A box, several rooms that use each other, or a bend of an arrow (no rooms). level: its row from the top."""

    rooms: tuple[str, ...]
    level: int
    x: float = 0.0
    up: list[Cell] = field(default_factory=list)
    down: list[Cell] = field(default_factory=list)

    @property
    def width(self) -> float:
        return len(self.rooms) * (BOX[0] + GAP) - GAP if self.rooms else DUMMY

    @property
    def frame(self) -> int:
        """Room around the boxes for the frame of several."""
        return FRAME if len(self.rooms) > 1 else 0

    @property
    def y(self) -> float:
        return MARGIN + self.level * ROW


def knots(pairs: set[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Per room the rooms that it cannot be parted from: those that it reaches and that reach it."""
    reach = {room: {room} for pair in pairs for room in pair}
    for _ in reach:
        for used, user in pairs:
            reach[used] |= reach[user]
    return {a: tuple(sorted(b for b in reach if b in reach[a] and a in reach[b])) for a in reach}


def reduced(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the pairs that follow from others. The pairs have no cycle."""
    below: dict[str, set[str]] = {}
    for used, user in pairs:
        below.setdefault(used, set()).add(user)

    def reaches(start: str, end: str) -> bool:
        return any(step == end or reaches(step, end) for step in below.get(start, ()))

    return {(a, b) for a, b in pairs if not any(step != b and reaches(step, b) for step in below[a])}


def arrange(pairs: set[tuple[str, str]]) -> list[list[Cell]]:
    """Rows of cells: a row is as high as the longest way to it; in a row, cells stand under what they use."""
    knot = knots(pairs)
    name = {room: " ".join(rooms) for room, rooms in knot.items()}
    whole = reduced({(name[a], name[b]) for a, b in pairs if name[a] != name[b]})
    levels = dict.fromkeys(sorted(set(name.values())), 0)
    for _ in levels:
        for used, user in whole:
            levels[user] = max(levels[user], levels[used] + 1)
    # A source stands just above the first that needs it.
    for key in levels:
        users = [levels[user] for used, user in whole if used == key]
        if users and not any(user == key for _, user in whole):
            levels[key] = min(users) - 1
    cells = {key: Cell(tuple(key.split()), level) for key, level in levels.items()}
    rows: list[list[Cell]] = [[] for _ in range(max(levels.values()) + 1)]
    for cell in cells.values():
        rows[cell.level].append(cell)
    for used, user in sorted(whole):
        last = cells[used]
        for level in range(cells[used].level + 1, cells[user].level):
            bend = Cell((), level)
            rows[level].append(bend)
            link(last, bend)
            last = bend
        link(last, cells[user])
    for turn in range(24):
        for row in rows if turn % 2 == 0 else reversed(rows):
            place(row, [cell.up if turn % 2 == 0 else cell.down for cell in row])
    return rows


def link(a: Cell, b: Cell) -> None:
    a.down.append(b)
    b.up.append(a)


def place(row: list[Cell], neighbours: Sequence[Sequence[Cell]]) -> None:
    """Order a row by the middle of each cell's neighbours, and put the cells there as far as there is room."""
    wanted = {
        id(cell): sum(n.x for n in near) / len(near) if near else cell.x
        for cell, near in zip(row, neighbours, strict=True)
    }
    row.sort(key=lambda cell: (wanted[id(cell)], cell.rooms))
    for cell in row:
        cell.x = wanted[id(cell)]
    for _ in range(40):
        for left, right in pairwise(row):
            overlap = left.x + left.width / 2 + GAP + right.width / 2 - right.x
            if overlap > 0:
                left.x -= overlap / 2
                right.x += overlap / 2


# -- the picture -------------------------------------------------------------------------------------------


def draw(trees: Mapping[str, ast.Module]) -> str:
    rows = arrange(edges(trees))
    cells = [cell for row in rows for cell in row]
    left = min(cell.x - cell.width / 2 for cell in cells) - MARGIN
    width = round(max(cell.x + cell.width / 2 for cell in cells) + MARGIN - left)
    height = MARGIN * 2 + (len(rows) - 1) * ROW + BOX[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{round(left)} 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
        "<title>Rooms of the code and the way that data takes through them</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#8a8f98"/></marker></defs>',
        f'<rect x="{round(left)}" width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    parts += [arrow(way) for cell in cells if cell.rooms for way in ways(cell)]
    parts += [part for cell in cells if cell.rooms for part in boxes(cell, trees)]
    return "\n".join([*parts, "</svg>", ""])


def ways(cell: Cell) -> Iterator[list[Cell]]:
    """From a cell along its bends to each cell below."""
    for first in cell.down:
        way = [cell, first]
        while not way[-1].rooms:
            way += way[-1].down
        yield way


def arrow(way: Sequence[Cell]) -> str:
    x, y = way[0].x, way[0].y + BOX[1] + way[0].frame
    path = [f"M{x:.0f} {y:.0f}"]
    for step in way[1:]:
        end = step.y - step.frame
        bend = (y + end) / 2
        path.append(f"C{x:.0f} {bend:.0f} {step.x:.0f} {bend:.0f} {step.x:.0f} {end:.0f}")
        x, y = step.x, end
        if not step.rooms:  # straight down between the boxes of its row
            y += BOX[1]
            path.append(f"V{y:.0f}")
    return f'<path d="{" ".join(path)}" fill="none" stroke="#8a8f98" stroke-width="1.2" marker-end="url(#tip)"/>'


def boxes(cell: Cell, trees: Mapping[str, ast.Module]) -> Iterator[str]:
    x = cell.x - cell.width / 2
    if cell.frame:
        y, width, height = cell.y - FRAME, cell.width + 2 * FRAME, BOX[1] + 2 * FRAME
        yield (
            f'<rect x="{x - FRAME:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height}" rx="10" '
            'fill="#f6f6f6" stroke="#b5b5b5" stroke-dasharray="4 3"/>'
        )
    for room in cell.rooms:
        fill, line = FILLS[room.partition(".")[0]]
        size = f'width="{BOX[0]}" height="{BOX[1]}" rx="6"'
        yield f'<rect x="{x:.0f}" y="{cell.y:.0f}" {size} fill="{fill}" stroke="{line}"/>'
        title = "engine: the public surface" if room == SURFACE else room.replace(".", "/")
        yield text(x + 9, cell.y + 17, title, 'font-size="12" font-weight="bold" fill="#1c2733"')
        for n, words in enumerate(textwrap.wrap(sentence(room, trees), 33, max_lines=3, placeholder=" …")):
            yield text(x + 9, cell.y + 32 + 13 * n, words, 'font-size="10.5" fill="#3c4a58"')
        x += BOX[0] + GAP


def text(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'


def main() -> int:
    """Write the picture; with --check only say whether the one that is there is right."""
    drawn = draw(modules())
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == drawn:
        return 0
    sys.stderr.write(f"{PICTURE} is not what the code says: run `python docs/draw_architecture.py`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
