"""All pages for all people: no violation of WCAG 2.2, levels A and AA, in both colours, wide and narrow."""

import pytest
from playwright.sync_api import expect

from all_pages import addresses, fill
from axe import ALL_RULES, CONTRAST, violations
from conftest import NARROW, WIDE
from test_operation import button


def check(page, where, complaints):
    """Adds what is wrong with the page as it is, in each form that it has."""
    for size, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(viewport)
        for colours, rules in (("light", ALL_RULES), ("dark", CONTRAST)):
            page.emulate_media(color_scheme=colours)
            complaints += [f"{where}, {size}, {colours}: {found}" for found in violations(page, rules)]


def test_all_pages(server, visitors):
    numbers = fill(server)
    page = visitors.visitor("admin")
    visitors.expect_console("status of 404")
    complaints = []
    for address in addresses(numbers):
        page.goto(address)
        check(page, address, complaints)
    assert complaints == []


def test_what_opens_on_a_page(server, visitors):
    numbers = fill(server)
    page = visitors.visitor("admin")
    complaints = []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page, "the list of keys", complaints)
    page.keyboard.press("Escape")
    page.get_by_label(f"Select run {numbers['failed_run']}").check()
    page.get_by_text("More", exact=True).click()
    check(page, "a selected run", complaints)
    assert complaints == []


def test_pages_that_answer_a_form(server, visitors):
    numbers = fill(server)
    page = visitors.visitor("admin", java_script_enabled=True)
    complaints = []
    page.goto("/workflows/nightly/start")
    page.locator("form.start").evaluate("form => form.noValidate = true")
    page.get_by_label("rows").fill("many")
    visitors.expect_console("status of 400|status of 401")
    button(page, "Start").click()
    expect(page.locator("[aria-invalid=true]")).to_be_visible()
    check(page, "a form with an error", complaints)
    page.goto(f"/runs/batch?action=retry&run={numbers['failed_run']}")
    button(page, "Retry 1 run").click()
    expect(page.get_by_role("heading", name="1 run retried")).to_be_visible()
    check(page, "the result of a batch", complaints)
    stranger = visitors.visitor()
    stranger.goto("/login")
    stranger.get_by_label("Token").fill("windlass_wrong")
    button(stranger, "Sign in").click()
    expect(stranger.get_by_role("alert")).to_be_visible()
    check(stranger, "a login that failed", complaints)
    assert complaints == []


@pytest.mark.parametrize("width", [390, 320])
def test_no_page_scrolls_to_the_side(server, visitors, width):
    numbers = fill(server)
    # Names as long as somebody in a hurry writes them.
    name = "recompute-the-quarterly-consolidated-figures-for-every-subsidiary-and-currency"
    job = name.replace("-", "_")
    text = f'name = "{name}"\n[params]\n{job} = {{ default = "{name}" }}\n[jobs.{job}]\nqueue = "{name}"\nrun = "echo {job}; exit 1"\n'
    (server.folder / "workflows" / "long.toml").write_text(text)
    long = server.submit("long")
    server.ended(long)
    server.windlass("queue", "pause", name)
    named = [f"/runs/{long}", f"/runs/{long}?view=table", f"/runs/{long}?panel=data", f"/workflows/{name}"]
    page = visitors.visitor("admin", viewport={"width": width, "height": 844})
    visitors.expect_console("status of 404")
    too_wide = []
    for address in addresses(numbers) + named:
        page.goto(address)
        inner = page.evaluate("document.scrollingElement.scrollWidth")
        if inner > width:
            too_wide.append(f"{address}: {inner}")
    assert too_wide == []


def test_nothing_moves_for_who_wants_that(server, visitors):
    numbers = fill(server)
    moving = "document.getAnimations().length"
    page = visitors.visitor("view", reduced_motion="no-preference")
    page.goto(f"/runs/{numbers['running_run']}")
    assert page.evaluate(moving) > 0
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(moving) == 0
