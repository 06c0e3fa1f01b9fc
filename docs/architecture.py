"""Draw the floors of the library from its imports: python docs/architecture.py (part of `make docs`).

A room is an entry of src/compositional/, either a folder or a module. It is one floor above the highest room that it imports.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import networkx

LIBRARY = Path(__file__).parents[1] / "src" / "compositional"
PICTURE = Path(__file__).with_suffix(".svg")
COLORS = {"Plug-ins": "#FBE3D0", "What the plug-ins are made of": "#D9EBF7", "What surrounds the plug-ins": "#E9E9E9"}
WIDTH, HEIGHT, GAP, MARGIN, PER_ROW = 200, 100, 12, 60, 6  # sizes of a box in pixels; number of boxes per row


def modules() -> dict[str, Path]:
    """Files of the library by dotted name within it; a folder's `__init__` has the folder's name."""
    paths = sorted(LIBRARY.rglob("*.py"))
    names = {path: path.relative_to(LIBRARY).with_suffix("").parts for path in paths}
    return {".".join(part for part in parts if part != "__init__"): path for path, parts in names.items()}


def imports() -> list[tuple[str, str]]:
    """Pairs of modules of the library: the importing and the imported one, including imports within functions."""
    known, found = modules(), set()
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                wanted = [
                    whole if whole.removeprefix("compositional.") in known else node.module
                    for alias in node.names
                    if (whole := f"{node.module}.{alias.name}")
                ]
            else:
                continue
            found |= {(name, whole.removeprefix("compositional.")) for whole in wanted if whole.startswith("compositional.")}
    return sorted(found)


def room(module: str) -> str:
    """The entry of src/compositional/ that a module belongs to."""
    return module.partition(".")[0]


def rooms() -> networkx.DiGraph:
    """Rooms as nodes, an edge from each room to every other one that it imports."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(sorted({room(name) for name in modules()} - {""}))
    graph.add_edges_from(sorted({(room(one), room(other)) for one, other in imports() if room(one) != room(other)}))
    return graph


def cycles() -> list[list[str]]:
    """Groups of rooms that import each other, directly or not: there must be none."""
    return sorted(sorted(group) for group in networkx.strongly_connected_components(rooms()) if len(group) > 1)


def floors() -> list[list[str]]:
    """Rooms by floor, starting with the ground floor; rooms that import each other share a floor."""
    groups = networkx.condensation(rooms())
    generations = networkx.topological_generations(groups.reverse())
    return [sorted(name for group in floor for name in groups.nodes[group]["members"]) for floor in generations]


def directly_needed() -> dict[str, list[str]]:
    """For every room, the rooms that it imports and does not reach through another one."""
    graph = rooms()
    groups = networkx.condensation(graph)
    group, kept = groups.graph["mapping"], networkx.transitive_reduction(groups)
    return {
        name: sorted(other for other in graph[name] if group[name] == group[other] or kept.has_edge(group[name], group[other]))
        for name in graph
    }


def described() -> dict[str, tuple[str, str]]:
    """Section and description of every room, from the list in the package's docstring."""
    found, section = {}, ""
    for line in (ast.get_docstring(ast.parse((LIBRARY / "__init__.py").read_text(encoding="utf-8"))) or "").splitlines():
        if entry := re.fullmatch(r"    (\w+) +(.+)", line):
            found[entry[1]] = (section, entry[2])
        elif heading := next((name for name in COLORS if line.startswith(name)), None):
            section = heading
    return found


def picture() -> str:
    """The drawing, as SVG: the same bytes for the same imports."""
    about, needed = described(), directly_needed()
    levels = reversed([*enumerate(floors())])
    rows = [(number, floor[at : at + PER_ROW]) for number, floor in levels for at in range(0, len(floor), PER_ROW)]
    width, height = MARGIN + PER_ROW * (WIDTH + GAP), len(rows) * (HEIGHT + GAP) + 2 * GAP + 20
    drawing = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        style="font-family: sans-serif; font-size: 11px",
    )

    def draw(kind: str, **attributes: object) -> ElementTree.Element:
        return ElementTree.SubElement(drawing, kind, {name: str(value) for name, value in attributes.items()})

    def write(x: int, y: int, text: str, **style: str) -> None:
        draw("text", x=x, y=y, **style).text = text

    draw("rect", width=width, height=height, fill="white")
    for row, (number, names) in enumerate(rows):
        y = GAP + row * (HEIGHT + GAP)
        write(GAP, y + 20, f"floor {number}", fill="#555555")
        for column, name in enumerate(names):
            x = MARGIN + column * (WIDTH + GAP)
            section, words = about[name]
            draw("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=4, fill=COLORS[section], stroke="#888888")
            write(x + 8, y + 17, name, **{"font-weight": "bold", "font-size": "13"})
            for line, text in enumerate(textwrap.wrap(words, 31, max_lines=3, placeholder=" ...")):
                write(x + 8, y + 33 + 13 * line, text)
            below = ", ".join(needed[name])
            for line, text in enumerate(textwrap.wrap(f"on {below}" if below else "", 35)):
                write(x + 8, y + 78 + 12 * line, text, fill="#0B5394", **{"font-size": "10"})
    for column, (section, color) in enumerate(COLORS.items()):
        x = MARGIN + column * (WIDTH + GAP)
        draw("rect", x=x, y=height - 24, width=14, height=14, fill=color, stroke="#888888")
        write(x + 20, height - 13, section.lower())
    ElementTree.indent(drawing)
    return ElementTree.tostring(drawing, encoding="unicode") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
