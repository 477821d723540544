"""Signing in, the end of a session, and a restart of the server under open pages."""

import re

from playwright.sync_api import expect

from test_operation import button, mark, is_the_same, state


def test_a_link_works_once(server, visitors):
    first, second = visitors.visitor(), visitors.visitor()
    url = server.link("view")
    first.goto(url)
    expect(first).to_have_url(re.compile("/runs$"))
    visitors.expect_console("status of 401")
    second.goto(url)
    expect(second.get_by_role("alert")).to_contain_text("used before")


def test_a_token_signs_in_and_leads_to_the_wanted_page(server, visitors):
    token = server.token("ada", "run")
    run = server.submit("quick")
    server.ended(run)
    page = visitors.visitor()
    page.goto(f"/runs/{run}?view=table")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    visitors.expect_console("status of 401")
    page.get_by_label("Token").fill("windlass_wrong")
    button(page, "Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.goto(f"/runs/{run}?view=table")
    page.get_by_label("Token").fill(token)
    button(page, "Sign in").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run}\?view=table$"))
    expect(state(page)).to_have_text("Successful")


def test_the_end_of_a_session_leads_to_the_login(server, visitors):
    token = server.token("ada", "run")
    run = server.submit("later")
    page = visitors.visitor()
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    button(page, "Sign in").click()
    expect(page).to_have_url(re.compile("/runs$"))
    page.goto(f"/runs/{run}")
    expect(button(page, "Cancel")).to_be_visible()
    visitors.expect_console("status of 401|ERR_")
    server.windlass("token", "revoke", "ada")
    page.goto(f"/runs/{run}")
    expect(page).to_have_url(re.compile(rf"/login\?next=%2Fruns%2F{run}$"))
    page.get_by_label("Token").fill(server.token("ada", "run"))
    button(page, "Sign in").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run}$"))


def test_an_open_page_goes_on_after_a_restart(server, visitors):
    run = server.submit("steps")
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}?view=table")
    expect(state(page)).to_have_text("Running")
    mark(page)
    visitors.expect_console("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|status of 503")
    server.stop()
    server.start()
    server.allow("first")
    server.allow("second")
    expect(state(page)).to_have_text("Successful")
    expect(page.get_by_text("2 of 2 jobs successful")).to_be_visible()
    assert is_the_same(page)


def test_what_a_role_may_not_do_is_not_offered(server, visitors):
    run = server.submit("later")
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}")
    expect(state(page)).to_be_visible()
    for name in ("Cancel", "Retry what failed"):
        expect(button(page, name)).to_have_count(0)
    page.goto("/runs")
    expect(page.get_by_role("checkbox")).to_have_count(0)
    visitors.expect_console("status of 403")
    page.goto("/workflows/quick/start")
    expect(page.get_by_role("heading", name="The role does not allow it")).to_be_visible()


def test_a_change_after_a_restart_needs_no_new_login(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}")
    expect(state(page)).to_have_text("Failed")
    visitors.expect_console("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|status of 503")
    server.stop()
    server.start()
    server.allow("repaired")
    button(page, "Retry what failed").click()
    expect(state(page)).to_have_text("Successful")
