"""The page of a job without a run: with and without the script, by keyboard, and live."""

import json
import re

import pytest
from playwright.sync_api import expect

from test_keyboard import tab_to
from test_operation import button, state
from windlass_server import eventually


def enqueue(server, command, *options):
    return server.windlass("enqueue", "shell", "--payload", json.dumps({"run": command}), *options)["job_id"]


def reached(server, job, status):
    eventually(f"job {job}: {status}", lambda: server.windlass("inspect", f"j{job}")["status"] == status)


FAILING = 'echo begins; [ -e "$WORLD/repaired" ] && exit 0; echo "error: no route to the host" >&2; exit 7'


@pytest.mark.parametrize("script", [True, False])
def test_a_job_is_found_read_and_retried(server, visitors, script):
    job = enqueue(server, FAILING.replace("$WORLD", str(server.folder)), "--max-attempts", "1")
    reached(server, job, "FAILED")
    page = visitors.visitor("run", java_script_enabled=script)
    page.get_by_role("link", name="shell without a run").click()
    expect(page).to_have_url(re.compile(f"/jobs/{job}$"))
    expect(state(page)).to_have_text("Failed")
    expect(page.get_by_text("It failed: exit code 7")).to_be_visible()
    page.get_by_role("link", name="First error, line 2").click()
    expect(page).to_have_url(re.compile("#L2$"))
    expect(page.locator("#L2")).to_contain_text("no route to the host")
    page.get_by_role("link", name="In and out").click()
    expect(page.get_by_text("no route to the host")).not_to_have_count(0)
    server.allow("repaired")
    button(page, "Retry").click()
    reached(server, job, "SUCCESSFUL")
    if not script:
        page.reload()
    expect(state(page)).to_have_text("Successful")
    page.get_by_role("searchbox").or_(page.locator("#find")).fill(f"j{job}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{job}$"))


def test_a_job_is_watched_and_cancelled_by_keyboard(server, visitors):
    job = enqueue(server, f'echo begins; until [ -e "{server.folder}/more" ]; do sleep 0.05; done; echo more; sleep 600')
    page = visitors.visitor("run")
    page.goto(f"/jobs/{job}")
    expect(state(page)).to_have_text("Running")
    expect(page.locator("#L1")).to_contain_text("begins")
    server.allow("more")
    expect(page.locator("#L2")).to_contain_text("more")
    tab_to(page, "^Cancel$")
    page.keyboard.press("Enter")
    expect(state(page)).to_have_text("Cancelled")
    reached(server, job, "CANCELLED")


def test_a_job_of_a_run_leads_to_the_page_of_the_run(server, visitors):
    run = server.submit("quick")
    server.ended(run)
    job = server.job(run, "only")["job_id"]
    page = visitors.visitor("view")
    page.goto(f"/jobs/{job}?panel=why")
    expect(page).to_have_url(re.compile(f"/runs/{run}\\?job={job}&panel=why#job$"))
    expect(page.locator("#job-title")).to_contain_text("only")
