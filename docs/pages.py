"""Pages of the site from outside this folder: README, configuration, contributing, changes, and the library from its docstrings.

MkDocs calls the functions by their names (mkdocs.yml, `hooks`). In the repository, pages link to each other by paths; here these
become links within the site.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FROM_ELSEWHERE = {  # page of the site: page of the repository
    "index.md": "README.md",
    "configuration.md": "config/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "agents.md": "AGENTS.md",
}
PLACE = {source: page for page, source in FROM_ELSEWHERE.items()}


def rooms() -> dict[str, str]:
    """The description of each entry of the package, from the package's docstring."""
    architecture = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
    return {name: words for name, (_, words) in architecture["described"]().items()}


def on_config(config: MkDocsConfig) -> None:
    """List the library's pages in the navigation."""
    config.nav.append({"Library": ["library/index.md", *({name: f"library/{name}.md"} for name in rooms())]})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, one page per room of the library, and the tables that pages link to."""
    for page, source in FROM_ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    listed = "".join(f"| [`{name}`]({name}.md) | {words} |\n" for name, words in rooms().items())
    files.append(File.generated(config, "library/index.md", content=f"# Library\n\n| room | what |\n| --- | --- |\n{listed}"))
    for name in rooms():
        files.append(File.generated(config, f"library/{name}.md", content=f"::: compositional.{name}\n"))
    for table in sorted((ROOT / "reference").glob("*.csv")):
        files.append(File.generated(config, f"reference/{table.name}", abs_src_path=str(table)))
    return files


def _within_the_site(target: str) -> str | None:
    """The page of the site for a path in the repository; None if the site has none."""
    if target in PLACE:
        return PLACE[target]
    if module := re.fullmatch(r"src/compositional/(\w+?)(?:\.py|/.*)", target):
        return f"library/{module[1]}.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return target if target.startswith("reference/") else None


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the site: `../config/README.md` is `configuration.md` here."""
    here = page.file.src_uri
    if here.startswith("library/"):
        return markdown
    source = FROM_ELSEWHERE.get(here, f"docs/{here}")

    def moved(match: re.Match) -> str:
        path, mark, anchor = match[1].partition("#")
        if not path or "://" in path:
            return match[0]
        target = _within_the_site(normpath(join(dirname(source), path)))
        return match[0] if target is None else f"]({relpath(target, dirname(here) or '.')}{mark}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, markdown)
