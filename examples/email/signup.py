#!/usr/bin/env python3
"""Signs up users. One transaction writes a user and enqueues the mail that welcomes them, so there are both or neither.

Usage: signup.py DATABASE < ADDRESSES

It reads one address a line. Kill it at any moment and start it again with the same lines: it goes on with the addresses
that are not signed up yet.
"""

import json
import sys

from database import connect, now_ms

ADD_USER = """
INSERT INTO users (address, since_ms) VALUES (:address, :now) ON CONFLICT (address) DO NOTHING
"""
# A mail server that does not answer is asked again after 1 s, 2 s, 4 s and so on, up to 10 minutes, for about a day.
ENQUEUE = """
INSERT INTO jobs (queue, kind, payload, max_attempts, retry)
VALUES ('mail', 'email', :payload, 150, '{"delay_ms": 1000, "factor": 2.0, "max_delay_ms": 600000, "jitter": 0.1}')
"""


def welcome(address):
    return {"to": address, "subject": "Welcome", "text": f"Your account {address} is ready."}


def sign_up(database, address):
    """Returns whether the user is new."""
    with database.transaction():
        is_new = database.change(ADD_USER, address=address, now=now_ms()) == 1
        if is_new:
            database.change(ENQUEUE, payload=json.dumps(welcome(address)))
    return is_new


def main():
    database = connect(sys.argv[1])
    for line in sys.stdin:
        address = line.strip()
        if address:
            # The answer comes after the commit: from here on the user and the mail exist, whatever dies.
            print("signed up" if sign_up(database, address) else "known", address, flush=True)


if __name__ == "__main__":
    main()
