"""Pages for people: their links lead somewhere, and the README stays short."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "config" / "README.md"])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LONGEST_README = 100  # lines


def anchors(page: Path) -> set[str]:
    """What may follow # in a link to a page: its headings, as GitHub and MkDocs name them."""
    headings = re.findall(
        r"^#+ +(.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    """Targets of a page's links and pictures, without code."""
    plain = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", plain) if not target.startswith("https://")]


def test_links_are_found():
    text = "[one](a.md), ![two](b.png)\n```\n[no](code.md)\n```\nand `[no](code.md)`, [away](https://example.org)"
    assert links(text) == ["a.md", "b.png"]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    broken = []
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert not broken


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


@pytest.mark.parametrize(
    "answer",
    [
        r"`entropy` \| mean",  # what is `entropy`?
        r"How lambda was chosen",
        r"add a lambda or seeds \| edit",
        r"core-seconds",  # what will it cost?
        r"the numbers behind each dot",
    ],
)
def test_the_readme_answers_five_questions(answer):
    assert re.search(answer, (ROOT / "README.md").read_text())


def test_every_page_is_reached_from_the_readme():
    reached, new = set(), {ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        targets = {(page.parent / target.partition("#")[0]).resolve() for target in links(page.read_text())}
        new |= {target for target in targets if target.suffix == ".md"} - reached
    assert set(PAGES) <= reached


def test_commands_name_what_the_makefile_has():
    commands = {command for page in PAGES for command in re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(), re.MULTILINE)}
    for command in commands:
        done = subprocess.run(["make", "-n", command, "ARCHIVE=a"], cwd=ROOT, capture_output=True, text=True)
        assert "No rule to make target" not in done.stderr, command
