"""The test of scripts/soak-upkeep.

Usage: soak_upkeep.py WINDLASS SEED SECONDS, where WINDLASS is the path of a built binary
"""

import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORKFLOW = """name = "load"
[jobs.first]
run = "echo one; echo two"
[jobs.second]
needs = ["first"]
run = "true"
"""
CONFIG = """database = "windlass.db"
workflows = "workflows"
durability = "normal"
[retention]
max_age = "5s"
max_runs_per_workflow = 50
"""
# More growth than this between the first third and the end is an error; less is noise.
FACTOR, SLACK = 1.5, {"file": 8 << 20, "wal": 24 << 20, "memory": 24 << 20, "files": 8}


def connect(folder):
    database = sqlite3.connect(os.path.join(folder, "windlass.db"), timeout=30, isolation_level=None)
    database.execute("PRAGMA wal_autocheckpoint = 0")
    return database


def wait_for(what, question, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := question()) is not None:
            return found
        time.sleep(0.002)
    sys.exit(f"waited too long for {what}")


def start_latency(database, chance):
    """Milliseconds from the INSERT's commit to the start of the attempt, on a machine that is idle otherwise."""
    taken = []
    for _ in range(50):
        time.sleep(0.2 + chance.random() / 10)
        job = database.execute(
            "INSERT INTO jobs (kind, payload) VALUES ('shell', '{\"command\": [\"true\"]}') RETURNING id").fetchall()[0][0]
        committed = time.time_ns() // 1_000_000
        started = wait_for("a start", lambda: database.execute(
            "SELECT started_at FROM jobs WHERE id = ? AND started_at IS NOT NULL", (job,)).fetchone())[0]
        taken.append(max(0, started - committed))
    return taken


def measure(folder, pid):
    with open(f"/proc/{pid}/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    wal = os.path.join(folder, "windlass.db-wal")
    return {
        "file": os.path.getsize(os.path.join(folder, "windlass.db")),
        "wal": os.path.getsize(wal) if os.path.exists(wal) else 0,
        "memory": resident,
        "files": len(os.listdir(f"/proc/{pid}/fd")),
    }


def load(folder, windlass, chance, over):
    """Keeps a few hundred jobs waiting, and submits runs."""
    database = connect(folder)
    payload = json.dumps({"command": ["true"], "comment": "x" * 500})
    while not over.is_set():
        waiting = database.execute("SELECT count(*) FROM jobs WHERE finished_at IS NULL").fetchone()[0]
        if waiting < 300:
            database.executemany("INSERT INTO jobs (kind, payload) VALUES ('shell', ?)", [(payload,)] * 100)
            subprocess.run([windlass, "submit", "load"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        time.sleep(0.02 + chance.random() / 50)


def main():
    windlass, seed, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "workflows"))
        for name, text in (("workflows/load.toml", WORKFLOW), ("windlass.toml", CONFIG)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        log = open(os.path.join(folder, "log"), "w")
        serve = subprocess.Popen([windlass, "serve"], cwd=folder, stdout=log, stderr=log)
        try:
            wait_for("the worker", lambda: os.path.exists(os.path.join(folder, "windlass.db")) or None)
            time.sleep(2)
            database = connect(folder)
            taken = start_latency(database, chance)
            print(f"seed {seed}: a row that Python inserts starts after {statistics.median(taken):.0f} ms (median), "
                  f"{max(taken)} ms at most, of {len(taken)}", flush=True)
            over = threading.Event()
            loader = threading.Thread(target=load, args=(folder, windlass, chance, over))
            loader.start()
            measured, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(10)
                measured.append(measure(folder, serve.pid))
                done = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone()[0]
                kept = database.execute("SELECT count(*) FROM jobs").fetchone()[0]
                shown = ", ".join(f"{name} {value >> 10} kB" if name != "files" else f"{name} {value}"
                                  for name, value in measured[-1].items())
                print(f"{shown}; {done} jobs so far, {kept} kept", flush=True)
            over.set()
            loader.join()
        finally:
            serve.send_signal(signal.SIGTERM)
            serve.wait()
        subprocess.run([windlass, "db", "check"], cwd=folder, check=True)
        grown = []
        third = max(1, len(measured) // 3)
        for name, slack in SLACK.items():
            before = max(sample[name] for sample in measured[:third])
            after = max(sample[name] for sample in measured[-third:])
            if after > before * FACTOR + slack:
                grown.append(f"{name} grew from {before} to {after}")
        sys.exit("; ".join(grown) if grown else 0)


if __name__ == "__main__":
    main()
