"""Documentation pages: links have targets, and the README stays short."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.browser import UnavailableError, browser

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "config" / "README.md"])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LONGEST_README = 100  # lines


def anchors(page: Path) -> set[str]:
    """The anchors of a page, which may follow # in a link: those that GitHub and MkDocs make from its headings."""
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
def test_targets_of_links_exist(name):
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


def test_documented_make_targets_exist():
    commands = {command for page in PAGES for command in re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(), re.MULTILINE)}
    for command in commands:
        done = subprocess.run(["make", "-n", command, "ARCHIVE=a"], cwd=ROOT, capture_output=True, text=True)
        assert "No rule to make target" not in done.stderr, command


def test_make_help_lists_every_target():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    # `make` alone makes `figure`, and `env` calls `install`.
    assert {target for target in targets if f"  make {target} " not in shown} == {"figure", "help", "install"}


def test_help_explains_every_argument_of_a_script():
    unexplained = [
        f"{path.name}:{call.lineno}"
        for path in [*(ROOT / "workflow").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        if not {"help", None} & {keyword.arg for keyword in call.keywords}  # None: **options
    ]
    assert unexplained == []


def test_pages_name_tests_and_files_that_exist():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in PAGES:
        if page.name in ("options.md", "extending.md"):  # options begin with test_, and examples are files to write
            continue
        text = page.read_text()
        missing = [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in tests]
        files = re.findall(
            r"`((?:tests|src|docs|config|workflow|rules|benchmarks|envs|slurm|local-gpu|reference)/[\w/.+-]+)`", text
        )
        missing += [name for name in files if not (ROOT / name).exists()]
        assert not missing, page


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built like `make docs` builds it; a link without a target stops the build (mkdocs.yml, `strict`)."""
    folder = tmp_path_factory.mktemp("site")
    command = ["mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_and_every_room(site):
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    for name in ("index", "configuration", "contributing", "changelog"):
        assert (site / f"{name}.html").exists()
    for room in (path.stem for path in (ROOT / "src" / "compositional").iterdir() if path.name[0] not in "._"):
        text = (site / "library" / f"{room}.html").read_text()
        assert f"compositional.{room}" in text
    assert "Half width of the 95 % confidence interval" in (site / "library" / "figures.html").read_text()


def test_the_site_opens_offline_without_requests_or_console_messages(site):
    try:
        with browser() as running:
            page = running.new_context(offline=True).new_page()
            requests, messages = [], []
            page.on("request", lambda request: requests.append(request.url))
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            # Only servers use 404.html.
            for path in [*site.glob("[!4]*.html"), site / "library" / "index.html", site / "library" / "figures.html"]:
                page.goto(path.as_uri())
                assert page.title(), path
            page.goto(f"{(site / 'index.html').as_uri()}?q=redundant+component")
            found = page.locator(".md-search-result__item")
            found.first.wait_for()
            assert "glossary" in " ".join(link.get_attribute("href") for link in found.locator("a").all())
            widest = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    except UnavailableError as error:
        pytest.skip(str(error))
    assert not [url for url in requests if not url.startswith("file:")]
    assert not messages
    assert widest[0] <= widest[1]  # nothing is wider than the window
