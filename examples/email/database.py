"""A connection to the database of Windlass, which is a SQLite file or is on a PostgreSQL server.

Statements name their parameters as `:name` on both. SQLite needs Python's standard library only, PostgreSQL the
package `psycopg`.
"""

import contextlib
import re
import sqlite3
import time


def connect(address):
    return Server(address) if address.startswith("postgres") else File(address)


def now_ms():
    return time.time_ns() // 1_000_000


class File:
    is_server = False

    def __init__(self, path):
        # Wait for other writers instead of failing. Begin transactions only with an explicit BEGIN.
        self.connection = sqlite3.connect(path, timeout=20, isolation_level=None)
        # Windlass makes the checkpoints of the write-ahead log. A SQLite older than 3.51.3 must make none.
        self.connection.execute("PRAGMA wal_autocheckpoint = 0")

    def rows(self, statement, **values):
        # Fetch all rows: SQLite completes a statement only when its last row was read.
        return self.connection.execute(statement, values).fetchall()

    def change(self, statement, **values):
        """Returns how many rows were changed."""
        return self.connection.execute(statement, values).rowcount

    @contextlib.contextmanager
    def transaction(self):
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def version(self):
        """Changes when another connection commits. Reading it costs almost nothing."""
        return self.rows("PRAGMA data_version")


class Server:
    is_server = True

    def __init__(self, address):
        import psycopg

        self.connection = psycopg.connect(address, autocommit=True)

    def _execute(self, statement, values):
        return self.connection.execute(re.sub(r":(\w+)", r"%(\1)s", statement), values)

    def rows(self, statement, **values):
        return self._execute(statement, values).fetchall()

    def change(self, statement, **values):
        """Returns how many rows were changed."""
        return self._execute(statement, values).rowcount

    def transaction(self):
        return self.connection.transaction()
