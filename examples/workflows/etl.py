"""The stages of etl.toml, one function each. Usage: python3 etl.py STAGE, with SCRATCH set.

A stage may be stopped at any moment and run again: it writes its whole result in one transaction, or
to a new file that it then renames.
"""

import csv
import json
import os
import sqlite3
import sys
from pathlib import Path

SCRATCH = Path(os.environ["SCRATCH"])
RAW = SCRATCH / "files.csv"
CLEAN = SCRATCH / "clean.csv"
DATABASE = SCRATCH / "files.db"
SKIPPED_FOLDERS = {".git", "target"}
MOST_FILES = 100_000


def write_rows(path, rows):
    """Writes all rows, and returns their number. Readers see all of them or none."""
    count = 0
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        for row in rows:
            writer.writerow(row)
            count += 1
    part.replace(path)
    return count


def read_rows(path):
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        yield from csv.reader(file)


def files_below(folder):
    found = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.join(parent, name)
            found += 1
            if found > MOST_FILES:
                sys.exit(f"{folder} has more than {MOST_FILES} files: choose a smaller tree")
            if os.path.isfile(path):
                yield path, os.path.getsize(path)


def extract():
    rows = write_rows(RAW, files_below(os.environ["WINDLASS_PARAM_FOLDER"]))
    print(json.dumps({"rows": rows}))


def transform():
    """Rejects empty files and names that are not printable. The kind of the others is their suffix."""
    read = 0

    def kept():
        nonlocal read
        for path, size in read_rows(RAW):
            read += 1
            if int(size) > 0 and path.isprintable():
                yield path, Path(path).suffix.lstrip(".").lower() or "(none)", size

    rows = write_rows(CLEAN, kept())
    print(json.dumps({"rows": rows, "rejected": read - rows}))


def load():
    with sqlite3.connect(DATABASE) as database:
        database.execute("DROP TABLE IF EXISTS files")
        database.execute("CREATE TABLE files (path TEXT PRIMARY KEY, kind TEXT, bytes INTEGER)")
        database.executemany("INSERT INTO files VALUES (?, ?, ?)", read_rows(CLEAN))


def check():
    expected = int(os.environ["EXTRACTED"]) - int(os.environ["REJECTED"])
    minimum = int(os.environ["WINDLASS_PARAM_MINIMUM"])
    with sqlite3.connect(DATABASE) as database:
        (loaded,) = database.execute("SELECT count(*) FROM files").fetchone()
    if loaded != expected:
        sys.exit(f"{loaded} files were loaded, but {expected} were extracted and not rejected")
    if loaded < minimum:
        sys.exit(f"only {loaded} files were loaded, at least {minimum} were wanted")
    print(f"{loaded} files were loaded, as many as were extracted and not rejected")


def publish():
    with sqlite3.connect(DATABASE) as database:
        rows = database.execute(
            "SELECT kind, count(*), sum(bytes) FROM files GROUP BY kind ORDER BY 3 DESC, 1 LIMIT 10"
        )
        print(f"{'kind':<12} {'files':>7} {'bytes':>12}")
        for kind, files, size in rows:
            print(f"{kind:<12} {files:>7} {size:>12}")


STAGES = {stage.__name__: stage for stage in (extract, transform, load, check, publish)}

if __name__ == "__main__":
    STAGES[sys.argv[1]]()
