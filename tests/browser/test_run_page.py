"""The page of one run: its output by scrolling, following and linking, and what happens when the network fails."""

import re

import pytest
from playwright.sync_api import expect

from conftest import NARROW, WIDE
from test_operation import button, is_the_same, link, mark, scroll_to, state

LINES = ".ln"
# The most lines of an output that are in a page.
LINES_MAX = 620


def follow(page):
    return page.get_by_role("button", name=re.compile("Follow"))


def scroll(page, to):
    page.locator("#lines").evaluate(f"lines => {{ lines.scrollTop = {to} }}")


def talking(server):
    """A run whose job writes 1,500 lines and goes on when the test says so."""
    run = server.submit("talk")
    server.reached(run, lambda found: found["jobs"][0]["status"] == "RUNNING", "its job")
    return run


def test_a_link_to_a_line_shows_it_to_others(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}?job={server.job(run, 'load')['job_id']}&attempt=1")
    scroll_to(page, "#L1150")
    page.locator("#L1150 .no").click()
    expect(page).to_have_url(re.compile("attempt=1&line=1150#L1150$"))
    # Its attempt is the second one now, and the link still shows the first.
    other = page.context.new_page()
    other.goto(page.url)
    line = other.locator("#L1150")
    expect(line).to_contain_text("cleaning up part 546")
    expect(line).to_be_in_viewport()
    expect(line).to_have_class(re.compile("asked"))
    expect(other.get_by_role("combobox", name="Attempt")).to_have_value("1")


def test_an_attempt_is_shown_as_soon_as_it_is_chosen_and_hits_by_enter(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}")
    # A choice is followed at once if it is made by a pointer.
    page.get_by_role("combobox", name="Attempt").click()
    page.get_by_role("combobox", name="Attempt").select_option("1")
    expect(page).to_have_url(re.compile("attempt=1"))
    find = page.get_by_label("Search this log")
    find.fill("part 600")
    find.press("Enter")
    expect(page.locator(".hit")).to_have_text("1 of 2")
    find.press("Enter")
    expect(page.locator(".hit")).to_have_text("2 of 2")
    expect(page.locator("#L1204")).to_be_in_viewport()
    link(page, "Previous").click()
    expect(page.locator(".hit")).to_have_text("1 of 2")
    find.fill("part 7")
    find.press("Enter")
    expect(page.locator(".hit")).to_have_text(re.compile("^1 of "))
    expect(page.locator("#L7 mark")).to_have_text("part 7")


def test_rows_of_the_timeline_are_opened_by_keys_and_the_first_error_at_once(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"job={server.job(run, 'extract')['job_id']}#job$"))
    expect(page.locator("#lines abbr").first).to_have_text("err")
    page.goto("/runs")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile(f"/runs/{run}#error$"))
    expect(page.locator("#L604")).to_be_in_viewport()


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_following_is_a_choice_and_few_lines_are_kept(server, visitors, viewport):
    run = talking(server)
    page = visitors.visitor("view", viewport=viewport)
    page.goto(f"/runs/{run}")
    expect(page.locator("#L1500")).to_be_attached()
    expect(follow(page)).to_have_attribute("aria-pressed", "true")
    mark(page)
    scroll(page, 0)
    expect(follow(page)).to_have_attribute("aria-pressed", "false")
    page.wait_for_timeout(500)
    first = page.locator(LINES).first.get_attribute("id")
    server.allow("more")
    expect(page.locator("#lines > .more").last).to_contain_text("lines after")
    assert page.locator(LINES).count() <= LINES_MAX
    assert page.locator(f"#{first}").count() == 1, "what is read stays"
    follow(page).click()
    expect(page.locator("#L3000")).to_be_attached()
    scroll(page, "lines.scrollHeight")
    expect(follow(page)).to_have_attribute("aria-pressed", "true")
    server.allow("end")
    expect(page.locator("#L3020")).to_be_attached()
    expect(state(page)).to_have_text("Successful")
    assert page.locator(LINES).count() <= LINES_MAX
    page.wait_for_function(
        """() => {
            const lines = document.querySelector("#lines")
            return lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40
        }"""
    )
    assert is_the_same(page)


def test_output_grows_to_its_end_without_a_stream(server, visitors):
    run = talking(server)
    page = visitors.visitor("view")
    visitors.expect_console("status of 503")
    page.route(re.compile("/live"), lambda route: route.fulfill(status=503))
    page.goto(f"/runs/{run}")
    expect(page.locator("#L1500")).to_be_attached()
    mark(page)
    server.allow("more")
    expect(page.locator("#L3000")).to_be_attached()
    server.allow("end")
    expect(page.locator("#L3020")).to_be_attached()
    expect(state(page)).to_have_text("Successful")
    assert is_the_same(page)


def test_lines_that_could_not_be_loaded_are_loaded_later(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    visitors.expect_console("ERR_FAILED")
    asked = []

    def once(route):
        asked.append(route.request.url)
        route.abort() if len(asked) == 1 else route.continue_()

    page.route(re.compile("[?&]from="), once)
    page.goto(f"/runs/{run}")
    expect(page.locator("#L604")).to_be_in_viewport()
    scroll(page, "lines.scrollHeight")
    expect(page.locator("#L1000")).to_be_attached()
    assert len(asked) > 1
