"""What the tests share: a server, a browser, and pages that are watched for what no page may do."""

import os
import re
import shutil
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Error, expect, sync_playwright

from windlass_server import PATIENCE_S, Server

WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}

# Nothing but the server of the test can be reached.
WITHOUT_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

expect.set_options(timeout=PATIENCE_S * 1_000)


def children():
    """The processes of this machine, by their parents."""
    of_parent = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                of_parent.setdefault(int(after_name[1]), []).append(int(entry.name))
    return of_parent


def kill_browsers():
    """Kills each Chromium that this process has started, through the driver."""
    of_parent, found = children(), [os.getpid()]
    for process_id in found:
        found.extend(of_parent.get(process_id, []))
    for process_id in found[1:]:
        with suppress(OSError):
            if "chromium" in os.readlink(f"/proc/{process_id}/exe"):
                os.kill(process_id, signal.SIGKILL)


@contextmanager
def ended_within(seconds):
    """Chromium sometimes does not end when it is asked to. Then it is killed, and whoever waits for it gets an `Error`."""
    watch = threading.Timer(seconds, kill_browsers)
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


@pytest.fixture(scope="session")
def chromium():
    program = shutil.which("chromium")
    assert program, "there is no chromium: call scripts/setup"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[WITHOUT_NETWORK])
        yield browser
        # All tests are over: how the browser ends is not what they test.
        with ended_within(PATIENCE_S), suppress(Error):
            browser.close()


@pytest.fixture
def folder():
    """The folder of the sandbox, or a new one."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        yield Path(name)


# Databases of which each test uses one. Without them, each test uses a file.
databases = os.environ.get("DATABASES", "").split()


@pytest.fixture
def server(folder):
    server = Server(folder / "server", databases.pop() if databases else None)
    server.start()
    yield server
    server.stop()


class Visitors:
    """Browser windows of the test, each with cookies of its own, and what they did that no page may do."""

    def __init__(self, chromium, server):
        self.chromium = chromium
        self.server = server
        self.contexts = []
        self.complaints = []
        # Texts of the console that a test expects.
        self.expected = []

    def visitor(self, role=None, viewport=WIDE, **options):
        """A page. With a role it is signed in."""
        context = self.chromium.new_context(
            viewport=viewport, timezone_id="Europe/Berlin", locale="en-GB", base_url=self.server.origin,
            reduced_motion=options.pop("reduced_motion", "reduce"), **options,
        )
        context.set_default_timeout(PATIENCE_S * 1_000)
        context.on("request", self._watch_request)
        context.on("console", self._watch_console)
        context.on("weberror", lambda error: self.complaints.append(f"an error of the script: {error.error}"))
        self.contexts.append(context)
        page = context.new_page()
        if role is not None:
            page.goto(self.server.link(role))
            expect(page).to_have_url(re.compile("/runs$"))
        return page

    def expect_console(self, pattern):
        self.expected.append(re.compile(pattern))

    def _watch_request(self, request):
        if not request.url.startswith((f"{self.server.origin}/", "data:")):
            self.complaints.append(f"a request to {request.url}")

    def _watch_console(self, message):
        is_expected = any(pattern.search(message.text) for pattern in self.expected)
        if message.type in ("error", "warning") and not is_expected:
            self.complaints.append(f"{message.type} in the console of {message.page.url}: {message.text}")

    def close(self):
        with ended_within(PATIENCE_S):
            for context in self.contexts:
                context.close()
        assert self.complaints == []


@pytest.fixture
def visitors(chromium, server):
    visitors = Visitors(chromium, server)
    yield visitors
    visitors.close()
