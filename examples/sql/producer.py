#!/usr/bin/env python3
"""Places orders. One transaction inserts an order and the job that confirms it, so there are both or neither.

Usage: producer.py DATABASE COUNT

It needs Python's standard library only, and a database of Windlass, which `windlass db migrate` creates. The
table `orders` belongs to this program. It is in the same file, so one commit covers both tables.
"""

import json
import sqlite3
import sys

ORDERS = """
CREATE TABLE IF NOT EXISTS orders (
    id        INTEGER PRIMARY KEY,
    customer  TEXT NOT NULL
)"""

# The unique key refuses a second job for an order while the first one is unfinished.
ENQUEUE = """
INSERT INTO jobs (kind, queue, payload, unique_key)
VALUES ('confirm', 'orders', :payload, :unique_key)
"""


def connect(path):
    # Wait for other writers instead of failing. Begin transactions only with an explicit BEGIN.
    database = sqlite3.connect(path, timeout=20, isolation_level=None)
    # Windlass makes the checkpoints of the write-ahead log. A SQLite older than 3.51.3 must make none.
    database.execute("PRAGMA wal_autocheckpoint = 0")
    return database


def place_order(database, customer):
    database.execute("BEGIN IMMEDIATE")
    try:
        order = database.execute("INSERT INTO orders (customer) VALUES (?)", (customer,)).lastrowid
        payload = json.dumps({"order": order, "customer": customer})
        database.execute(ENQUEUE, {"payload": payload, "unique_key": f"confirm-{order}"})
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    return order


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    database = connect(path)
    database.execute(ORDERS)
    for number in range(count):
        print("order", place_order(database, f"customer {number}"))


if __name__ == "__main__":
    main()
