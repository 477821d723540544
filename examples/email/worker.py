"""A worker by the statements of docs/guide/sql-workers.md, for one queue and one kind, on SQLite and PostgreSQL."""

import contextlib
import json
import os
import socket
import sys
import threading
import time
from typing import NamedTuple

from database import connect, now_ms

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
CLAIM_ON_POSTGRES = """
WITH alive AS MATERIALIZED (
    SELECT id FROM workers WHERE id = :worker AND status = 'ALIVE' FOR SHARE
), chosen AS MATERIALIZED (
    SELECT id FROM claimable_jobs WHERE queue = :queue AND kind = :kind AND EXISTS (SELECT 1 FROM alive)
    ORDER BY claim_order, id LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE jobs
SET status = 'RUNNING', worker_id = :worker, attempt = attempt + 1, ready_at = updated_at,
    started_at = :now, updated_at = :now
FROM chosen
WHERE jobs.id = chosen.id AND jobs.status = 'PENDING'
RETURNING jobs.id, jobs.run_id, jobs.attempt, jobs.payload, jobs.timeout_ms
"""
KEY = "SELECT created_at || '-' || token FROM jobs WHERE id = :job"
SUCCEED = """
UPDATE jobs SET status = 'SUCCESSFUL', output = :output, updated_at = :now
WHERE id = :job AND status = 'RUNNING' AND attempt = :attempt AND worker_id = :worker
"""
FAIL = """
UPDATE jobs SET status = 'FAILED', last_error = :error, updated_at = :now
WHERE id = :job AND status = 'RUNNING' AND attempt = :attempt AND worker_id = :worker
"""
# The same, and Windlass makes no other attempt.
FAIL_FOR_GOOD = """
UPDATE jobs SET status = 'FAILED', last_error = :error, updated_at = :now, max_attempts = failures + 1
WHERE id = :job AND status = 'RUNNING' AND attempt = :attempt AND worker_id = :worker
"""
LEAVE = """
UPDATE workers SET status = 'STOPPED', stopped_at = :now
WHERE id = :worker AND status IN ('ALIVE', 'DRAINING')
"""


class Job(NamedTuple):
    id: int
    attempt: int
    payload: str
    # The same in every attempt, and different for every other job.
    key: str


class LostJob(Exception):
    """The attempt belongs to another worker now, so its result is discarded."""


class Hopeless(Exception):
    """Another attempt would fail too."""


class Worker:
    """Executes jobs of this queue and kind, which must not belong to runs, one after the other."""

    def __init__(self, address, queue, kind, lease_ms=30_000):
        self.address, self.database, self.lease_ms = address, connect(address), lease_ms
        self.wanted, self.seen = {"queue": queue, "kind": kind}, None
        self.left = threading.Event()
        self.id = self.database.rows(
            REGISTER, host=socket.gethostname(), pid=os.getpid(), queues=json.dumps([queue]),
            kinds=json.dumps([kind]), lease_ms=lease_ms, now=now_ms(),
        )[0][0]
        threading.Thread(target=self._renew, daemon=True).start()

    def run(self, handle, stopped):
        """Calls `handle(job)` for each job until the event `stopped` is set. `handle` reports a success itself, with
        `success`. What it raises is reported as a failure."""
        while not stopped.is_set():
            job = self._claim()
            if job is None:
                self._wait(stopped)
                continue
            try:
                try:
                    handle(job)
                except Hopeless as error:
                    self._report(FAIL_FOR_GOOD, job, error=str(error))
                except (OSError, ValueError) as error:
                    # Windlass retries the job as its `max_attempts` and `retry` say.
                    self._report(FAIL, job, error=f"{type(error).__name__}: {error}")
            except LostJob as lost:
                print(lost, file=sys.stderr)
        self.left.set()
        self.database.change(LEAVE, worker=self.id, now=now_ms())

    @contextlib.contextmanager
    def success(self, job, output):
        """A transaction for what `handle` changes in the database. The report of the success is a part of it."""
        with self.database.transaction():
            yield
            self._report(SUCCEED, job, output=json.dumps(output))

    def _claim(self):
        # A read comes first, because a claim takes SQLite's write lock.
        if not self.database.rows(WAITING, **self.wanted):
            return None
        claim = CLAIM_ON_POSTGRES if self.database.is_server else CLAIM
        with self.database.transaction():
            claimed = self.database.rows(claim, worker=self.id, now=now_ms(), **self.wanted)
        if not claimed:
            return None
        job, _run, attempt, payload, _timeout_ms = claimed[0]
        return Job(job, attempt, payload, self.database.rows(KEY, job=job)[0][0])

    def _report(self, statement, job, **result):
        ends = {"worker": self.id, "job": job.id, "attempt": job.attempt, "now": now_ms(), **result}
        if self.database.change(statement, **ends) != 1:
            raise LostJob(f"job {job.id}: attempt {job.attempt} is not this worker's any more")

    def _wait(self, stopped):
        """On SQLite until another connection has committed since the last time, on a server for a moment."""
        if self.database.is_server:
            stopped.wait(0.1)
            return
        while (now := self.database.version()) == self.seen:
            if stopped.wait(0.02):
                return
        self.seen = now

    def _renew(self):
        """Renews the lease every sixth of its length. Four renewals may fail before the worker must stop."""
        database, confirmed = connect(self.address), time.monotonic()
        while not self.left.wait(self.lease_ms / 6_000):
            sent, is_ours = time.monotonic(), True
            try:
                is_ours = database.change(RENEW, worker=self.id, now=now_ms()) == 1
            except Exception as error:  # of either database
                print("the lease was not renewed:", error, file=sys.stderr)
                sent = confirmed
            is_late = time.monotonic() - confirmed > 0.8 * self.lease_ms / 1_000
            if (is_late or not is_ours) and not self.left.is_set():
                print("the lease is lost", file=sys.stderr)
                os._exit(1)
            confirmed = sent
