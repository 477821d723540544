"""A server of Windlass in a folder of its own: its workflows, its runs, and its links."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

# How long a condition may take. It is generous, because machines are shared.
PATIENCE_S = int(os.environ.get("PATIENCE_S", "90"))
LOOK_EVERY_S = 0.02

WORKFLOWS = Path(__file__).parent / "workflows"


def eventually(what, probe):
    """Calls `probe` until it returns something true."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}")
        time.sleep(LOOK_EVERY_S)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """`windlass serve` with all workflows of the folder beside this file."""

    def __init__(self, folder, database=None, settings=""):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.binary = os.environ["WINDLASS_BIN"]
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        # Jobs of the workflows look for files there.
        self.environment = {**os.environ, "WORLD": str(self.folder)}
        self.environment["WINDLASS_DB"] = database or str(self.folder / "windlass.db")
        shutil.copytree(WORKFLOWS, self.folder / "workflows")
        listen = f'[web]\nlisten = "127.0.0.1:{self.port}"\n{settings}'
        (self.folder / "windlass.toml").write_text(listen)
        self.process = None

    def start(self):
        """Starts it, and waits until it says where its pages are."""
        log = self.folder / "serve.log"
        with log.open("w") as output:
            command = [self.binary, "serve", "--workflows", "workflows", "--grace", "1s"]
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
            )

        def is_there():
            assert self.process.poll() is None, log.read_text()
            return "page: http://" in log.read_text()

        eventually("the address of the pages", is_there)

    def stop(self):
        """Ends it like a service manager does."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.process = None

    def windlass(self, *arguments):
        """What a command of Windlass prints, as JSON."""
        done = subprocess.run(
            [self.binary, *arguments, "-o", "json"], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def link(self, role="admin"):
        """A link that signs a browser in, once."""
        return self.windlass("open", "--role", role)["url"]

    def token(self, name, role):
        return self.windlass("token", "add", name, "--role", role)["secret"]

    def submit(self, workflow, *params):
        """Starts a run of a workflow of the folder."""
        named = [part for param in params for part in ("-p", param)]
        return self.windlass("submit", f"workflows/{workflow}.toml", *named)["run_id"]

    def run(self, run_id):
        return self.windlass("inspect", str(run_id))

    def ended(self, run_id):
        """Waits for the end of a run and returns it."""
        return self.reached(run_id, lambda run: run["finished_at"] is not None, "its end")

    def reached(self, run_id, has_reached, what):
        def probe():
            run = self.run(run_id)
            return run if has_reached(run) else None

        return eventually(f"run {run_id}: {what}", probe)

    def job(self, run_id, name):
        return next(job for job in self.run(run_id)["jobs"] if job["job"] == name)

    def allow(self, name):
        """Makes the file that a job waits for."""
        (self.folder / name).touch()

    def forbid(self, name):
        (self.folder / name).unlink(missing_ok=True)
