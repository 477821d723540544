"""What a person does from a telephone: 390 px wide, by touch."""

import pytest
from playwright.sync_api import expect

from conftest import NARROW
from test_operation import button, link, run_id, start, state


@pytest.fixture
def telephone(visitors):
    return lambda role: visitors.visitor(role, viewport=NARROW, has_touch=True, is_mobile=True)


def test_a_run_is_started_watched_and_cancelled(server, telephone):
    page = telephone("run")
    start(page, "steps")
    expect(state(page)).to_have_text("Running")
    server.allow("first")
    expect(page.get_by_text("1 of 2 jobs successful")).to_be_visible()
    button(page, "Cancel").tap()
    expect(state(page)).to_have_text("Cancelled")
    assert server.ended(run_id(page))["status"] == "CANCELLED"


def test_what_failed_is_found_read_and_repeated(server, telephone):
    failed = [server.submit("nightly") for _ in range(2)]
    for run in failed:
        server.ended(run)
    page = telephone("run")
    page.goto("/runs")
    page.get_by_role("link", name=f"nightly#{failed[0]}").first.tap()
    page.get_by_role("link", name="First error, line 604").tap()
    expect(page.locator("#L604")).to_be_in_viewport()
    server.allow("repaired")
    link(page, "Retry from…").tap()
    page.get_by_role("radio", name="load").check()
    button(page, "Retry").tap()
    expect(state(page)).to_have_text("Successful")
    page.goto("/runs")
    button(page, "Retry 1 of nightly").tap()
    expect(page.get_by_role("heading", name="1 run retried")).to_be_visible()
    assert server.ended(failed[1])["status"] == "SUCCESSFUL"


def test_every_part_of_the_page_is_reached(server, telephone):
    page = telephone("view")
    bar = page.get_by_role("navigation", name="Main, small screens")
    for name in ("Workflows", "Approvals", "Queues", "System", "Runs"):
        bar.get_by_role("link", name=name).tap()
        expect(bar.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
