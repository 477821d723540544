"""What only a browser sees of the lists: the live state, a newer server, keys, selects, and forms that are sent twice."""

import re
from http.client import HTTPConnection

from playwright.sync_api import expect

from conftest import NARROW
from test_operation import button, is_the_same, link, mark
from windlass_server import eventually


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


def test_a_page_says_that_live_updates_are_paused_and_goes_on_by_itself(server, visitors):
    secret = server.token("ada", "view")
    page = visitors.visitor()
    context = page.context
    page.goto("/login")
    page.get_by_label("Token").fill(secret)
    button(page, "Sign in").click()
    expect(live(page)).to_have_text("Live")
    page.close()
    streams = []

    def is_the_last():
        stream = HTTPConnection("127.0.0.1", server.port)
        stream.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {secret}"})
        # Its stream ends with the answer.
        streams.append(stream.getresponse())
        return streams[-1].status == 429

    # The stream of the page that was closed may end a little later.
    eventually("a refusal", lambda: is_the_last() and len(streams) > 32)
    visitors.expect_console("status of 429|MIME type")
    other = context.new_page()
    other.clock.install()
    other.goto("/queues")
    note = other.locator("#paused")
    expect(note).to_be_visible()
    expect(note).to_contain_text("Live updates are paused, because this caller has 32 streams open")
    expect(note).to_contain_text("the page is read again every 30 seconds")
    expect(live(other)).to_have_text("Paused")
    # What changed meanwhile is read when the time has come, and the stream is still refused.
    server.windlass("queue", "limit", "mail", "--max-running", "3")
    with other.expect_response(lambda answer: "/live" in answer.url and answer.status == 429):
        other.clock.fast_forward("00:31")
    expect(other.get_by_text("3 at a time")).to_be_visible()
    expect(live(other)).to_have_text("Paused")
    for stream in streams:
        stream.close()

    def goes_on():
        other.clock.fast_forward("00:31")
        return live(other).text_content() == "Live"

    eventually("the stream is open", goes_on)
    expect(note).to_be_hidden()
    server.windlass("queue", "limit", "mail", "--max-running", "4")
    expect(other.get_by_text("4 at a time")).to_be_visible()


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
