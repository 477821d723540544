"""What only a browser sees of the lists: the live state, a newer server, keys, selects, and forms that are sent twice."""

import re

from playwright.sync_api import expect

from conftest import NARROW
from test_operation import button, is_the_same, link, mark


def live(page):
    return page.get_by_role("status").first


def test_the_live_state_is_on_all_pages_and_on_narrow_ones(server, visitors):
    page = visitors.visitor("view", viewport=NARROW)
    run = server.submit("later")
    for address in ("/runs", "/queues", "/workflows", "/system", f"/runs/{run}"):
        page.goto(address)
        expect(live(page)).to_have_text("Live")
        expect(live(page)).to_be_visible()


def test_the_end_of_a_session_is_told(server, visitors):
    run = server.submit("steps")
    page = visitors.visitor()
    page.goto("/login")
    page.get_by_label("Token").fill(server.token("ada", "run"))
    button(page, "Sign in").click()
    expect(page).to_have_url(re.compile("/runs$"))
    visitors.expect_console("status of 401|ERR_|MIME type")
    for address in ("/runs", f"/runs/{run}"):
        page.goto(address)
        expect(live(page)).to_have_text("Live")
    server.windlass("token", "revoke", "ada")
    expect(live(page)).to_have_text("Signed out. Sign in")
    link(page, "Sign in").click()
    expect(page).to_have_url(re.compile(rf"/login\?next=%2Fruns%2F{run}$"))


def test_a_person_signs_out(server, visitors):
    page = visitors.visitor("run")
    page.locator("details.who summary").click()
    expect(page.get_by_text("role run")).to_be_visible()
    button(page, "Sign out").click()
    expect(page).to_have_url(re.compile("/login$"))
    page.goto("/runs")
    expect(page).to_have_url(re.compile("/login"))


def test_a_page_of_an_older_server_is_loaded_again_unless_somebody_types(server, visitors):
    page = visitors.visitor("run")

    def newer(route):
        is_fragment = "x-fragment" in route.request.headers
        response = route.fetch()
        headers = {**response.headers, "x-assets": "another"} if is_fragment else response.headers
        route.fulfill(response=response, headers=headers)

    page.goto("/runs")
    expect(live(page)).to_have_text("Live")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Key", exact=True).fill("half")
    mark(page)
    page.route("**/runs", newer)
    server.submit("later")
    expect(live(page)).to_have_text("The server is a newer version. Load the page again")
    assert is_the_same(page)
    page.unroute("**/runs")
    page.evaluate("sessionStorage.clear()")
    page.goto("/runs")
    expect(page.locator("[data-run]")).to_have_count(1)
    expect(live(page)).to_have_text("Live")
    mark(page)
    page.route("**/runs", newer)
    server.submit("later")
    page.wait_for_function("() => window.isTheSamePage !== true")
    expect(page.locator("[data-run]")).to_have_count(2)
    page.unroute_all(behavior="ignoreErrors")


def test_the_bar_for_selected_runs_comes_with_the_first_run(server, visitors):
    page = visitors.visitor("run")
    expect(live(page)).to_have_text("Live")
    mark(page)
    run = server.submit("later")
    page.get_by_label(f"Select run {run}").check()
    expect(page.get_by_text("1 run selected")).to_be_visible()
    expect(button(page, "Cancel…")).to_be_visible()
    assert is_the_same(page)


def test_keys_are_turned_off_in_their_list(visitors, server):
    server.submit("later")
    page = visitors.visitor("view")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Use these keys").uncheck()
    button(page, "Close").click()
    expect(dialog).to_be_hidden()
    for _ in range(2):
        page.keyboard.press("/")
        page.keyboard.press("?")
        expect(dialog).to_be_hidden()
        assert page.evaluate("document.activeElement.id") != "find"
        page.reload()
    page.locator("details.who summary").click()
    button(page, "Keys…").click()
    dialog.get_by_label("Use these keys").check()
    button(page, "Close").click()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"


def test_a_choice_with_the_keyboard_waits_for_enter(server, visitors):
    server.submit("later")
    page = visitors.visitor("view")
    mark(page)
    accepted = page.get_by_role("combobox", name="Accepted")
    accepted.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(accepted).to_have_value("30d")
    expect(button(page, "Apply")).to_be_visible()
    # What changes meanwhile takes neither the choice nor the button away.
    server.submit("later")
    expect(page.locator("[data-run]")).to_have_count(2)
    expect(accepted).to_have_value("30d")
    expect(button(page, "Apply")).to_be_visible()
    assert is_the_same(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("since=30d"))


def test_a_form_shows_its_values_as_a_command_while_they_are_typed(server, visitors):
    page = visitors.visitor("run")
    page.goto("/workflows/nightly/start")
    page.get_by_label("note").fill("it's late")
    expect(page.locator("#elsewhere")).to_contain_text(r"-p 'note=it'\''s late'")
    expect(page.locator("#elsewhere")).to_contain_text("api/v1/runs")


def test_a_form_that_is_pressed_twice_starts_one_run(server, visitors):
    page = visitors.visitor("run")
    page.goto("/workflows/later/start")
    button(page, "Start").dblclick()
    expect(page).to_have_url(re.compile(r"/runs/\d+$"))
    page.goto("/runs")
    expect(page.locator("[data-run]")).to_have_count(1)
