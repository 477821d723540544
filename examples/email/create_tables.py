#!/usr/bin/env python3
"""Creates the tables of this example. Usage: create_tables.py DATABASE, after `windlass db migrate`."""

import pathlib
import sys

from database import connect


def main():
    database = connect(sys.argv[1])
    text = (pathlib.Path(__file__).parent / "tables.sql").read_text(encoding="utf-8")
    for statement in text.split(";"):
        if statement.strip():
            database.change(statement)


if __name__ == "__main__":
    main()
