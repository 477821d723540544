#!/usr/bin/env python3
"""Updates the tables and graphs of the guide from recorded measurements.

Usage: scripts/draw_performance.py [--check]

It reads docs/guide/performance/{sqlite,postgres}.json, which scripts/record-performance writes, and replaces the
tables between the markers. With --check it writes nothing, and exits with 1 if the guide differs from the record or
names a figure outside of the tables. It needs Python's standard library only.
"""

import html
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guide/performance-figures.md"
FOLDER = ROOT / "docs/guide/performance"
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

# The name of each part in the guide.
PARTS = {
    "drain": "Jobs that wait are executed",
    "enqueue": "Jobs are accepted, each acknowledged",
    "chain": "Jobs one after the other",
    "fan": "Wide graphs",
    "process": "Jobs that are processes",
    "latency": "How soon a job starts on an idle worker",
    "scale": "Rows that can't be claimed now",
    "memory": "Memory, and an idle service",
}


def digits(value):
    """Three significant digits."""
    size = abs(value)
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{places}f}"


def number(unit, value):
    """A value in its unit, as `windlass bench` shows it."""
    mebibyte = 1024 * 1024
    if unit == "bytes":
        return f"{digits(value / mebibyte)} MiB" if abs(value) >= mebibyte else f"{value:,.0f} B"
    suffix = {
        "per_second": "/s",
        "milliseconds": " ms",
        "microseconds": " µs",
        "seconds": " s",
        "count": "",
        "percent_of_core": " %",
    }[unit]
    return digits(value) + suffix


def machine_table(records):
    lines = ["| | |", "| --- | --- |"]
    first = next(iter(records.values()))["machine"]
    lines.append(f"| processor | {first['processor']}, {first['cores']} cores |")
    lines.append(f"| memory | {first['memory_bytes'] / 1024 ** 3:.0f} GiB |")
    lines.append(f"| system | Linux {first['kernel']} |")
    files = records["sqlite"]["machine"]
    lines.append(f"| file | {files['database']} on {files['file_system']} |")
    lines.append(f"| server | {records['postgres']['machine']['database']}, on the same machine |")
    lines.append(f"| Windlass | {records['sqlite']['windlass_version']} |")
    for name, record in records.items():
        rounds = "once" if record["rounds"] == 1 else f"{record['rounds']} times"
        lines.append(f"| {DATABASES[name]} | each figure {rounds}, `--jobs {record['jobs']}` |")
        if record["machine"]["warning"]:
            lines.append(f"| warning | {record['machine']['warning']} |")
    return lines


def figures_table(record):
    lines = []
    for part, title in PARTS.items():
        figures = [figure for figure in record["figures"] if figure["part"] == part]
        if not figures:
            continue
        by_name = {figure["name"]: figure for figure in figures}
        lines += ["", f"**{title}**", "", "| | median | lowest to highest | ratio |", "| --- | ---: | ---: | ---: |"]
        for figure in figures:
            if figure["kind"] != "windlass":
                continue
            lines.append(row(figure["about"], figure, ""))
            for ratio in figure["ratios"]:
                other = by_name[ratio["to"]]
                lines.append(row(f"— beside: {other['about']}", other, f"{ratio['median']:.2f}"))
    return lines[1:]


def row(about, figure, ratio):
    value = lambda name: number(figure["unit"], figure[name])
    return f"| {about} | {value('median')} | {value('min')} to {value('max')} | {ratio} |"


# ---------------------------------------------------------------------------------------------------- graphs

WIDTH, LABELS, VALUES, BAR, GAP, GROUP_GAP = 920, 390, 110, 18, 4, 16

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .group { font-weight: 600 }
    .windlass { fill: #1f6feb }
    .machine { fill: #b6bfc9 }
    .spread { stroke: #1f2328; stroke-width: 1 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .machine { fill: #59636e }
      .spread { stroke: #e6edf3 }
    }
"""


def graph(title, groups):
    """Horizontal bars from 0, each group with a heading; a line from the lowest to the highest round."""
    bars = [figure for _, figures in groups for figure in figures]
    most = max((figure["max"] for figure in bars), default=1) or 1
    room = WIDTH - LABELS - VALUES
    body, y = [], 34
    for heading, figures in groups:
        body.append(f'<text class="group" x="0" y="{y + 13}">{html.escape(heading)}</text>')
        y += BAR + GAP
        for figure in figures:
            width, low, high = (figure[name] / most * room for name in ("median", "min", "max"))
            middle = y + BAR / 2
            body.append(f'<text x="12" y="{y + 13}">{html.escape(short(figure["about"]))}</text>')
            body.append(
                f'<rect class="{figure["kind"]}" x="{LABELS}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>'
            )
            body.append(
                f'<line class="spread" x1="{LABELS + low:.1f}" x2="{LABELS + high:.1f}"'
                f' y1="{middle}" y2="{middle}"/>'
            )
            value = number(figure["unit"], figure["median"])
            body.append(f'<text x="{LABELS + high + 8:.1f}" y="{y + 13}">{html.escape(value)}</text>')
            y += BAR + GAP
        y += GROUP_GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
        f' role="img" aria-label="{html.escape(title)}">'
    )
    caption = f'<text class="group" x="0" y="16">{html.escape(title)}</text>'
    return "\n".join([head, f"<style>{STYLE}</style>", caption, *body, "</svg>"]) + "\n"


def short(text, most=60):
    return text if len(text) <= most else text[: most - 1] + "…"


def group(record, part, names):
    found = {figure["name"]: figure for figure in record["figures"] if figure["part"] == part}
    return [found[name] for name in names if name in found]


def graphs(records):
    drains, times, accepted = [], [], []
    for name, record in records.items():
        database = DATABASES[name]
        for durability in ("full", "normal"):
            raw = [f"raw_{durability}_1000_without_insert", f"raw_{durability}_1000"]
            figures = group(record, "drain", [f"drain_{durability}", *raw])
            drains.append((f"{database}, durability {durability}", figures))
        commits = group(record, "enqueue", ["enqueue_1_thread", "enqueue_8_threads", "raw_commits"])
        accepted.append((database, commits))
        times.append(
            (
                database,
                group(record, "chain", ["chain_link", "raw_commit"])
                + group(record, "process", ["process_link", "raw_spawn_and_commits"])
                + group(record, "latency", ["own_process_idle_p50", "other_process_idle_p50"]),
            )
        )
    return {
        "drain.svg": graph("Jobs and raw rows a second: longer is better", drains),
        "enqueue.svg": graph("Jobs accepted one by one, and single commits, a second: longer is better", accepted),
        "times.svg": graph("Milliseconds: shorter is better", times),
    }


# ---------------------------------------------------------------------------------------------------- the page


def filled(page, blocks):
    for name, lines in blocks.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            sys.exit(f"{PAGE.relative_to(ROOT)} must have `{begin}` and `{end}` once each")
        before, rest = page.split(begin)
        _old, after = rest.split(end)
        page = "\n".join([before + begin, "", *lines, "", end]) + after
    return page


def figures_in_prose(page):
    """Figures that no record holds: in nothing but the tables may there be any."""
    prose = re.sub(r"<!-- begin: .*?<!-- end: [^>]*-->", "", page, flags=re.S)
    prose = re.sub(r"```.*?```", "", prose, flags=re.S)
    return re.findall(r"\b\d[\d,.]*\s?(?:ms|µs|seconds?|/s|jobs a second|MiB|MB|GiB|%|times)(?!\w)", prose)


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit("usage: scripts/draw_performance.py [--check]")
    records = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in DATABASES}
    blocks = {"machine": machine_table(records)} | {name: figures_table(records[name]) for name in DATABASES}
    page = PAGE.read_text()
    wanted = {PAGE: filled(page, blocks)} | {FOLDER / name: svg for name, svg in graphs(records).items()}
    if found := figures_in_prose(page):
        sys.exit(f"{PAGE.relative_to(ROOT)} names figures that are in no table: {', '.join(found)}")
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if is_check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"not what the record says: {names}; run scripts/draw_performance.py")
    for path in stale:
        path.write_text(wanted[path])


if __name__ == "__main__":
    main()
