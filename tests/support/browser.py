"""A real browser for tests: Debian's Chromium, installed if it is missing, controlled by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Root cannot use the sandbox. The other options prevent network requests by the browser's own services.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


class UnavailableError(RuntimeError):
    """No browser is available here; the message says why."""


def find() -> str:
    """The browser's program, installed if necessary.

    Raises:
        UnavailableError: there is none, and this is not Debian, or the user is not root, or the package is unavailable.
    """
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        raise UnavailableError("there is no Chromium, and only root can install Debian's package")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        done = subprocess.run(["apt-get", *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"apt-get {command[0]} failed: {done.stderr.strip()[-300:]}")
    return shutil.which("chromium") or "chromium"


@contextmanager
def browser() -> Iterator[Browser]:
    """A running browser without a window."""
    program = find()
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()
