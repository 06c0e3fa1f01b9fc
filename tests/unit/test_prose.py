"""Pages, docstrings and comments are free of phrases that need a second reading."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "config" / "README.md"]
SOURCES = [path for folder in ("src", "docs", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
_THINGS = (
    "batch|cell|channel|chunk|class|component|core|dataset|distance|epoch|example|figure|gate|generation|head|image|"
    "initialization|item|iteration|job|kernel|kind|lambda|layer|line|loop|member|mode|model|name|network|pack|pair|panel|process|"
    "protocol|recorded step|regularizer|"
    "release|row|rule|run|seed|set|split|stage|step|study|symbol|task|test|time|token|word"
)
# Pattern: what to write instead.
PHRASES = {
    rf"\b(?:axis|block|column|combinations|dash|entry|examples?|file|folder|images?|job|lines?|log|module|number|ones?|panel|permutation|product|record|row|rule|script|sum|table|time|"
    rf"task|tasks|two|units?|value|vector) an? (?:{_THINGS})\b(?! of|'s)": 'per: "one log per job"',
    r"\b(?:go|goes|going|went) on (?:from|where|with the same|training)\b": "resume, continue",
    r"\b(?:can|can't|cannot|could|could not|couldn't|not|to) be had\b|\bwas had\b": "is available, was unavailable",
    r"\bnot begun\b": "has not started",
    r"\bin place of\b": "instead of",
    r"\bat hand\b": "available",
    r"\b0?\.\d+ for 0?\.\d+\b": 'say what is compared with what: "0.958 (plain 0.263)"',
    r"\bbeside (?:the|our|its) aim\b|\bthe aim (?:was|is|of)\b": "no aims that nobody outside knows",
    r"\bshall\b": "must, should",
    r"\bnext to (?:never|nothing|no)\b": "almost never",
    r"\bof two minds\b": "contradicts itself",
    r"\bfor want of\b": "because there is no",
    r"\bby (?:its|their|the) being (?:there|here)\b": "because it exists",
    r"\bwhat came of\b": "the results of",
    r"\banew\b": "again",
    r"\b(?:no|some)body's\b": "name whose it is",
    r"\bone's own\b": "your own, its own",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\b(?:and|or) the like\b": "and similar things: name them",
    r"\bis of no use\b": "does not help",
    r"\bbeside\b": "next to, in addition to, compared with",
    r"\b(?:told|tells?|telling) (?:\w+ )?apart\b": "distinguish",
    r"\b(?:is|are|was|were) no (?:archive|category|number|part|record|result|test|text)s?\b": "is not a",
    r"\bthat (?:is|are) there\b": "that exists, existing",
    r"\bnobody\b": "no one: name who does not",
    r"\bleaves? out 0\b": "excludes 0",
    r"\bstands? (?:in|there|twice|before)\b": "is",
}


def found(text: str) -> list[str]:
    """Phrases of a text with what to write instead; quotations of code do not count."""
    plain = re.sub(r"```.*?```|`[^`\n]*`", "``", text, flags=re.DOTALL)
    return [
        f"{match[0]!r}: {instead}"
        for pattern, instead in PHRASES.items()
        for match in re.finditer(pattern, plain, flags=re.IGNORECASE)
    ]


def prose(source: str) -> str:
    """Docstrings and comments of a module."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join([*docstrings, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def test_phrases_are_found_and_good_sentences_are_not():
    bad = "A log a job; it goes on where it stood, in place of what could not be had: 0.7 for 0.6."
    assert len(found(bad)) == 5
    assert not found("One log per job. It resumes instead of starting again, and 0.7 is compared with 0.6. `a log a job`")
    assert prose('"""Doc."""\nx = "in place of"  # why\n') == "Doc.\n# why"


def test_pages_have_no_riddles():
    assert {path: riddles for path in PAGES if (riddles := found(path.read_text()))} == {}


def test_docstrings_and_comments_have_no_riddles():
    assert {path: riddles for path in SOURCES if (riddles := found(prose(path.read_text())))} == {}
