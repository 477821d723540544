#!/usr/bin/env python3
"""Places orders, and with each the job that confirms it: both or neither, in one transaction.

Usage: producer.py DATABASE COUNT

Python's standard library is all it needs, and a database of Windlass: `windlass db migrate` makes one. The
table `orders` is its own and lies in the same file, so one commit covers both tables.
"""

import json
import sqlite3
import sys

ORDERS = """
CREATE TABLE IF NOT EXISTS orders (
    id        INTEGER PRIMARY KEY,
    customer  TEXT NOT NULL
)"""

# A second job for an order is refused while one is unfinished.
ENQUEUE = """
INSERT INTO jobs (kind, queue, payload, unique_key)
VALUES ('confirm', 'orders', :payload, :unique_key)
"""


def connect(path):
    # Wait for other writers instead of failing, and begin transactions only where it is said.
    database = sqlite3.connect(path, timeout=20, isolation_level=None)
    # Windlass moves the write-ahead log into the file. A SQLite older than 3.51.3 must leave that to it.
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
