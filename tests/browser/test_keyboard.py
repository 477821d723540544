"""Everything by keyboard alone: the order of the Tab key, and the keys of the pages."""

import re

from playwright.sync_api import expect

from test_operation import run_id, state


def focused(page):
    """What has the focus: its role or tag, and its name."""
    return page.evaluate(
        """() => {
            const at = document.activeElement;
            const label = at.labels && at.labels.length ? at.labels[0].innerText : "";
            return at.getAttribute("aria-label") || label || at.innerText || at.value || at.tagName;
        }"""
    ).strip().replace("\n", " ")


def tab_to(page, name, presses=80):
    """Presses Tab until what has this name is reached."""
    page.wait_for_load_state()
    passed = []
    for _ in range(presses):
        page.keyboard.press("Tab")
        at = focused(page)
        if re.search(name, at):
            return passed
        passed.append(at)
    raise AssertionError(f"{name} is not among {passed}")


def test_a_run_is_started_and_cancelled(server, visitors):
    page = visitors.visitor("run")
    tab_to(page, "^Workflows$")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/workflows$"))
    tab_to(page, "^Start… steps$")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/workflows/steps/start$"))
    tab_to(page, "^Start$")
    page.keyboard.press("Enter")
    expect(state(page)).to_have_text("Running")
    tab_to(page, "^Cancel$")
    page.keyboard.press("Enter")
    expect(state(page)).to_have_text("Cancelled")
    assert server.ended(run_id(page))["status"] == "CANCELLED"


def test_the_focus_goes_through_a_page_in_its_order_and_is_seen(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    passed = tab_to(page, "^Search this log$")
    order = ["Windlass", "Runs", "Run again…", "Retry what failed", "First error, line 604", "Timeline", "Log"]
    positions = [next(at for at, name in enumerate(passed) if name.startswith(wanted)) for wanted in order]
    assert positions == sorted(positions), passed
    outline = "getComputedStyle(document.activeElement.closest('label') || document.activeElement).outlineStyle"
    assert page.evaluate(outline) != "none"
    # The hundreds of lines of a log are no stations.
    tab_to(page, "^(Log of load.*|INFO.*)", presses=8)
    page.keyboard.press("Tab")
    assert not re.fullmatch(r"\d+", focused(page))


def test_skip_leads_past_the_bar(visitors, server):
    page = visitors.visitor("view")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_keys_of_the_list(server, visitors):
    runs = [server.submit("later") for _ in range(3)]
    page = visitors.visitor("run")
    expect(page.locator("[data-run]")).to_have_count(3)
    at = page.locator("tr.at")
    page.keyboard.press("j")
    expect(at).to_have_attribute("data-run", str(runs[2]))
    page.keyboard.press("j")
    expect(at).to_have_attribute("data-run", str(runs[1]))
    page.keyboard.press("k")
    expect(at).to_have_attribute("data-run", str(runs[2]))
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("2 runs selected")).to_be_visible()
    tab_to(page, "^Cancel…$", presses=120)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Cancel 2 runs?")).to_be_visible()
    tab_to(page, "^Cancel 2 runs$")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="2 runs cancelled")).to_be_visible()
    page.goto("/runs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{runs[1]}$"))


def test_keys_of_all_pages(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("run")
    page.keyboard.press("/")
    page.keyboard.type(f"#{run}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{run}$"))
    page.goto("/runs")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile(f"/runs/{run}"))
    expect(page.locator("#L604")).to_be_in_viewport()
    expect(page.locator("html")).to_have_attribute("data-zone", "Europe/Berlin")
    page.keyboard.press("u")
    expect(page.locator("html")).to_have_attribute("data-zone", "UTC")
    page.keyboard.press("u")
    expect(page.locator("html")).to_have_attribute("data-zone", "Europe/Berlin")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Go to the first error")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_keys_in_a_field_are_letters(server, visitors):
    page = visitors.visitor("run")
    page.keyboard.press("/")
    page.keyboard.type("ujx?e")
    expect(page.get_by_label("Go to run, job, key or workflow")).to_have_value("ujx?e")
    expect(page.locator("html")).to_have_attribute("data-zone", "Europe/Berlin")


def test_what_failed_is_retried_and_a_person_decides(server, visitors):
    failed = server.submit("nightly")
    server.ended(failed)
    server.allow("repaired")
    page = visitors.visitor("run")
    tab_to(page, "^Retry 1 of nightly$")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 run retried")).to_be_visible()
    assert server.ended(failed)["status"] == "SUCCESSFUL"
    asked = server.submit("release")
    server.reached(asked, lambda run: any(job["status"] == "WAITING" for job in run["jobs"]), "waiting for a person")
    page.goto("/approvals")
    tab_to(page, "^ticket")
    page.keyboard.type("OPS-7")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    tab_to(page, f"^Approve allowed of run {asked}$")
    page.keyboard.press("Enter")
    assert server.ended(asked)["status"] == "SUCCESSFUL"
    assert server.job(asked, "allowed")["output"]["fields"] == {"ticket": "OPS-7", "stage": "live"}
