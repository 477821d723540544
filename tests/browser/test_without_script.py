"""The same pages in a browser that runs no script."""

import re

import pytest
from playwright.sync_api import expect

from test_operation import button, link, run_id, start, state


@pytest.fixture
def plain(visitors):
    return lambda role: visitors.visitor(role, java_script_enabled=False)


def test_a_run_is_started_read_and_retried(server, plain):
    page = plain("run")
    start(page, "nightly", rows="3", note="by hand", mode="changes")
    run = run_id(page)
    assert server.ended(run)["params"]["note"] == "by hand"
    page.reload()
    expect(state(page)).to_have_text("Failed")
    page.get_by_role("link", name="First error, line 604").click()
    expect(page).to_have_url(re.compile("#L604$|#error$"))
    expect(page.locator("#L604")).to_be_in_viewport()
    page.get_by_label("Search this log").fill("cleaning up part 300")
    button(page, "Search").click()
    expect(page.locator("mark")).to_be_visible()
    server.allow("repaired")
    page.goto(f"/runs/{run}")
    button(page, "Retry what failed").click()
    expect(state(page)).not_to_have_text("Failed")
    server.reached(run, lambda run: run["status"] == "SUCCESSFUL", "the retry")
    page.reload()
    expect(state(page)).to_have_text("Successful")


def test_all_lines_of_a_log_can_be_reached(server, plain):
    run = server.submit("nightly")
    server.ended(run)
    page = plain("view")
    page.goto(f"/runs/{run}")
    page.get_by_role("link", name=re.compile("lines after")).click()
    expect(page.locator("#L1204")).to_be_attached()
    # A page shows 500 lines or more.
    for _ in range(3):
        if page.locator("#L1").count():
            break
        first = page.locator(".ln").first.get_attribute("id")
        page.get_by_role("link", name=re.compile("lines before")).click()
        expect(page.locator(".ln").first).not_to_have_id(first)
    expect(page.locator("#L1")).to_contain_text("reading part 1")


def test_many_are_retried_and_cancelled_after_a_preview(server, plain):
    failed = [server.submit("nightly") for _ in range(2)]
    for run in failed:
        server.ended(run)
    server.allow("repaired")
    waiting = server.submit("later")
    page = plain("run")
    page.goto("/runs")
    for run in failed:
        page.get_by_label(f"Select run {run}").check()
    button(page, "Retry…").click()
    button(page, "Retry 2 runs").click()
    expect(page.get_by_role("heading", name="2 runs retried")).to_be_visible()
    assert [server.ended(run)["status"] for run in failed] == ["SUCCESSFUL"] * 2
    page.goto("/runs?workflow=later")
    page.get_by_label("all that match").check()
    button(page, "Cancel…").click()
    button(page, "Cancel 1 run").click()
    expect(page.get_by_role("heading", name="1 run cancelled")).to_be_visible()
    assert server.ended(waiting)["status"] == "CANCELLED"


def test_runs_are_filtered_and_found(server, plain):
    server.submit("later")
    run = server.submit("quick")
    server.ended(run)
    page = plain("view")
    page.goto("/runs")
    page.get_by_role("combobox", name="Workflow").select_option("quick")
    button(page, "Apply").click()
    expect(page.locator("[data-run]")).to_have_count(1)
    expect(page).to_have_url(re.compile("workflow=quick"))
    page.get_by_role("navigation", name="State").get_by_role("link", name=re.compile("Failed")).click()
    expect(page).to_have_url(re.compile("state=failed"))
    expect(page.locator("[data-run]")).to_have_count(0)
    page.get_by_label("Go to run, job, key or workflow").fill(str(run))
    page.get_by_label("Go to run, job, key or workflow").press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{run}$"))


def test_a_person_decides_and_a_queue_is_paused(server, plain):
    run = server.submit("decision")
    server.reached(run, lambda run: any(job["status"] == "WAITING" for job in run["jobs"]), "waiting for a person")
    page = plain("edit")
    page.goto(f"/runs/{run}?job={server.job(run, 'approved')['job_id']}")
    button(page, f"Approve approved of run {run}").click()
    expect(button(page, f"Approve approved of run {run}")).to_have_count(0)
    page.wait_for_load_state()
    assert server.ended(run)["status"] == "SUCCESSFUL"
    server.windlass("queue", "limit", "mail", "--max-running", "3")
    page.goto("/queues")
    button(page, "Pause mail").click()
    button(page, "Resume mail").click()
    expect(button(page, "Pause mail")).to_be_visible()


def test_times_are_shown_in_another_zone(server, plain):
    run = server.submit("quick")
    server.ended(run)
    page = plain("view")
    page.get_by_role("link", name=re.compile("^UTC")).click()
    page.get_by_label("Zone").select_option("Asia/Tokyo")
    button(page, "Show times in this zone").click()
    expect(page.get_by_role("link", name=re.compile("^Tokyo"))).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-zone", "Asia/Tokyo")


def test_a_form_shows_its_values_as_a_command(server, plain):
    page = plain("run")
    page.goto("/workflows/nightly/start")
    page.get_by_label("note").fill("by hand")
    button(page, "Show as command").click()
    expect(page.locator("#elsewhere")).to_contain_text("'note=by hand'")
    expect(page.get_by_label("note")).to_have_value("by hand")
    button(page, "Start").click()
    expect(page).to_have_url(re.compile(r"/runs/\d+$"))
    assert server.ended(run_id(page))["params"]["note"] == "by hand"
