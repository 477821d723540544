"""Every page of the server, in every state that it can show. `pages.json` has the list; a test of the server's own compares it
with the list of its routes."""

import json
from pathlib import Path

from windlass_server import eventually

LIST = Path(__file__).parent / "pages.json"


def fill(server):
    """Makes runs in all states, and returns their numbers by name."""
    failed = server.submit("nightly")
    server.submit("nightly", "day=2026-11-20")
    parts = server.submit("parts")
    waiting = server.submit("decision")
    asked = server.submit("release")
    sleeping = server.submit("later")
    cancelled = server.submit("later")
    server.windlass("cancel", str(cancelled))
    running = server.submit("steps")
    failing = '{"run": "echo begins; echo \'error: no route to the host\' >&2; exit 7"}'
    alone = server.windlass("enqueue", "shell", "--payload", failing, "--max-attempts", "1")["job_id"]
    later_alone = server.windlass("enqueue", "render", "--queue", "reports", "--delay", "3h")["job_id"]
    server.ended(server.submit("quick"))
    server.windlass("queue", "limit", "mail", "--max-running", "3")
    server.windlass("queue", "pause", "reports")
    for run in (failed, failed + 1, parts, cancelled):
        server.ended(run)
    eventually(f"job {alone} fails", lambda: server.windlass("inspect", f"j{alone}")["status"] == "FAILED")
    server.reached(waiting, lambda run: any(job["status"] == "WAITING" for job in run["jobs"]), "waiting")
    server.reached(asked, lambda run: any(job["status"] == "WAITING" for job in run["jobs"]), "waiting")
    server.reached(running, lambda run: any(job["status"] == "RUNNING" for job in run["jobs"]), "running")
    return {
        "failed_run": failed,
        "failed_job": server.job(failed, "load")["job_id"],
        "asked_run": asked,
        "asked_job": server.job(asked, "allowed")["job_id"],
        "waiting_run": waiting,
        "waiting_job": server.job(waiting, "approved")["job_id"],
        "sleeping_run": sleeping,
        "cancelled_run": cancelled,
        "running_run": running,
        "run_of_parts": parts,
        "job_alone": alone,
        "later_job_alone": later_alone,
    }


def addresses(numbers):
    """The addresses of all pages."""
    found = []
    for row in json.loads(LIST.read_text()):
        for address in row.get("addresses", []):
            for name, number in numbers.items():
                address = address.replace("{" + name + "}", str(number))
            assert "{" not in address, f"{address}: nothing has this name"
            found.append(address)
    return found
