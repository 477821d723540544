"""What axe finds on a page: what people with disabilities can't use."""

from pathlib import Path

import axe_playwright_python

SCRIPT = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()

# WCAG 2.0, 2.1 and 2.2, A and AA.
OPTIONS = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "rules": {"target-size": {"enabled": True}},
    "resultTypes": ["violations"],
}


def violations(page):
    """A line for each element that breaks a rule."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    found = page.evaluate("options => axe.run(document, options)", OPTIONS)["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} ({node['failureSummary'].splitlines()[-1].strip()})"
        for rule in found
        for node in rule["nodes"]
    ]
