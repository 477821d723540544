#!/usr/bin/env python3
"""A worker in Python, which may run beside workers of Windlass. It claims jobs of kind `confirm` from the queue
`orders`, executes them, and reports their results. It needs Python's standard library only.

Usage: worker.py DATABASE

A second thread renews its lease. If the lease was not renewed in time, or the worker was fenced, the program exits
at once, because other workers may have its jobs. After SIGTERM or Ctrl-C it finishes its current job.
docs/guide/sql-workers.md explains each of these statements.
"""

import json
import os
import signal
import socket
import sqlite3
import sys
import threading
import time

LEASE_MS = 5_000
QUEUE, KIND = "orders", "confirm"

REGISTER = """
INSERT INTO workers (host, pid, process, queues, kinds, lease_ms, heartbeat_at, started_at)
VALUES (:host, :pid, 'sql', :queues, :kinds, :lease_ms, :now, :now)
RETURNING id
"""
RENEW = """
UPDATE workers SET heartbeats = heartbeats + 1, heartbeat_at = :now
WHERE id = :worker AND status IN ('ALIVE', 'DRAINING')
"""
WAITING = "SELECT 1 FROM claimable_jobs WHERE queue = :queue AND kind = :kind LIMIT 1"
CLAIM = """
UPDATE jobs
SET status = 'RUNNING', worker_id = :worker, attempt = attempt + 1, ready_at = updated_at,
    started_at = :now, updated_at = :now
WHERE id = (SELECT id FROM claimable_jobs WHERE queue = :queue AND kind = :kind
            ORDER BY claim_order, id LIMIT 1)
  AND status = 'PENDING'
  AND EXISTS (SELECT 1 FROM workers WHERE id = :worker AND status = 'ALIVE')
RETURNING id, run_id, attempt, payload, timeout_ms
"""
START_RUN = """
UPDATE runs SET status = 'RUNNING', started_at = :now, updated_at = :now, deadline_at = :now + timeout_ms
WHERE id = :run AND status = 'PENDING'
"""
SUCCEED = """
UPDATE jobs SET status = 'SUCCESSFUL', output = :output, updated_at = :now
WHERE id = :job AND status = 'RUNNING' AND attempt = :attempt AND worker_id = :worker
"""
FAIL = """
UPDATE jobs SET status = 'FAILED', last_error = :error, updated_at = :now
WHERE id = :job AND status = 'RUNNING' AND attempt = :attempt AND worker_id = :worker
"""
LEAVE = """
UPDATE workers SET status = 'STOPPED', stopped_at = :now
WHERE id = :worker AND status IN ('ALIVE', 'DRAINING')
"""

CONFIRMATIONS = "CREATE TABLE IF NOT EXISTS confirmations (order_id INTEGER NOT NULL, worker INTEGER NOT NULL)"


def now_ms():
    return time.time_ns() // 1_000_000


def connect(path):
    database = sqlite3.connect(path, timeout=20, isolation_level=None)
    # Windlass makes the checkpoints of the write-ahead log. A SQLite older than 3.51.3 must make none.
    database.execute("PRAGMA wal_autocheckpoint = 0")
    return database


class Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK after an exception."""

    def __init__(self, database):
        self.database = database

    def __enter__(self):
        self.database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind, _error, _trace):
        self.database.execute("COMMIT" if kind is None else "ROLLBACK")


class LostJob(Exception):
    """The attempt belongs to another worker now, so its result is discarded."""


def register(database):
    return database.execute(REGISTER, {
        "host": socket.gethostname(), "pid": os.getpid(), "queues": json.dumps([QUEUE]),
        "kinds": json.dumps([KIND]), "lease_ms": LEASE_MS, "now": now_ms(),
    }).fetchone()[0]


def renew_until(path, worker, left):
    """Renews the lease every sixth of its length. Four renewals may fail before the worker must stop."""
    database = connect(path)
    confirmed = time.monotonic()
    while not left.wait(LEASE_MS / 6_000):
        sent, is_ours = time.monotonic(), True
        try:
            is_ours = database.execute(RENEW, {"worker": worker, "now": now_ms()}).rowcount == 1
        except sqlite3.OperationalError as error:
            print("the lease was not renewed:", error, file=sys.stderr)
            sent = confirmed
        is_late = time.monotonic() - confirmed > 0.8 * LEASE_MS / 1_000
        if (is_late or not is_ours) and not left.is_set():
            print("the lease is lost", file=sys.stderr)
            os._exit(1)
        confirmed = sent


def claim(database, worker):
    """Takes the most urgent job, or returns None. One statement takes it, so no other worker can take it too."""
    wanted = {"queue": QUEUE, "kind": KIND}
    if database.execute(WAITING, wanted).fetchone() is None:
        return None
    now = now_ms()
    with Transaction(database):
        # Fetch all rows: SQLite completes a statement only when its last row was read.
        rows = database.execute(CLAIM, {"worker": worker, "now": now, **wanted}).fetchall()
        if rows and rows[0][1] is not None:
            database.execute(START_RUN, {"run": rows[0][1], "now": now})
    return rows[0] if rows else None


def execute(database, worker, job, attempt, payload):
    """Confirms the order and reports the result in one transaction, so the effect happens exactly once."""
    order = json.loads(payload)["order"]
    with Transaction(database):
        database.execute("INSERT INTO confirmations (order_id, worker) VALUES (?, ?)", (order, worker))
        report(database, SUCCEED, worker, job, attempt, output=json.dumps({"order": order}))


def report(database, statement, worker, job, attempt, **result):
    ends = {"worker": worker, "job": job, "attempt": attempt, "now": now_ms(), **result}
    if database.execute(statement, ends).rowcount != 1:
        raise LostJob(f"job {job}: attempt {attempt} is not this worker's any more")


def serve(database, worker, stopped):
    seen = None
    while not stopped.is_set():
        claimed = claim(database, worker)
        if claimed is None:
            # `data_version` changes when another connection commits. Reading it costs almost nothing.
            while (now := database.execute("PRAGMA data_version").fetchone()[0]) == seen:
                if stopped.wait(0.02):
                    return
            seen = now
            continue
        job, _run, attempt, payload, _timeout_ms = claimed
        try:
            try:
                execute(database, worker, job, attempt, payload)
            except (ValueError, KeyError, TypeError) as error:
                # Windlass retries the job as its `max_attempts` and `retry` say.
                report(database, FAIL, worker, job, attempt, error=f"{type(error).__name__}: {error}")
        except LostJob as lost:
            print(lost, file=sys.stderr)


def main():
    path = sys.argv[1]
    database = connect(path)
    database.execute(CONFIRMATIONS)
    worker = register(database)
    print("worker", worker, flush=True)
    stopped, left = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    threading.Thread(target=renew_until, args=(path, worker, left), daemon=True).start()
    serve(database, worker, stopped)
    left.set()
    database.execute(LEAVE, {"worker": worker, "now": now_ms()})


if __name__ == "__main__":
    main()
