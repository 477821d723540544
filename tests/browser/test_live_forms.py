"""What a person is writing, has chosen or has opened stays while a page follows what changes."""

import re

from playwright.sync_api import expect

from test_operation import button, is_the_same, mark, state


def submit_and_await_question(server, version):
    run = server.submit("release", f"version={version}")
    waits = lambda run: any(job["status"] == "WAITING" for job in run["jobs"])
    server.reached(run, waits, "waiting for a person")
    return run


def row_of(page, run):
    """The question of a run, on the page of all questions."""
    return page.get_by_role("region", name=re.compile(f"release#{run} "))


CARET = "[document.activeElement.id, document.activeElement.selectionStart]"


def test_an_approval_that_is_half_filled_in(server, visitors):
    first, second = submit_and_await_question(server, "1.1"), submit_and_await_question(server, "1.2")
    page = visitors.visitor("run")
    page.goto("/approvals")
    own = row_of(page, second)
    expect(own).to_contain_text("Release 1.2?")
    mark(page)
    own.get_by_label("stage").select_option("live")
    own.get_by_label("Reason for rejecting").fill("not on Friday")
    own.get_by_label("ticket").fill("OPS-12")
    page.keyboard.press("ArrowLeft")
    caret = page.evaluate(CARET)
    # The question before it leaves, and another one comes.
    server.windlass("approve", f"{first}/allowed", "-p", "ticket=OPS-1")
    expect(row_of(page, first)).to_have_count(0)
    third = submit_and_await_question(server, "1.3")
    expect(row_of(page, third)).to_be_visible()
    expect(own.get_by_label("ticket")).to_have_value("OPS-12")
    expect(own.get_by_label("stage")).to_have_value("live")
    expect(own.get_by_label("Reason for rejecting")).to_have_value("not on Friday")
    assert page.evaluate(CARET) == caret
    for run in (first, third):
        if row_of(page, run).count():
            expect(row_of(page, run).get_by_label("ticket")).to_have_value("")
    assert is_the_same(page)
    button(page, f"Approve allowed of run {second}").click()
    assert server.ended(second)["status"] == "SUCCESSFUL"
    output = server.job(second, "allowed")["output"]
    assert output["fields"] == {"ticket": "OPS-12", "stage": "live"}
    assert server.run(third)["finished_at"] is None


def test_a_person_fills_in_fields_on_the_page_of_the_run(server, visitors):
    run = submit_and_await_question(server, "2.0")
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}?job={server.job(run, 'allowed')['job_id']}")
    approve = button(page, f"Approve allowed of run {run}")
    approve.click()
    expect(page.get_by_label("ticket")).to_be_focused()
    assert server.run(run)["finished_at"] is None, "a required field is missing"
    page.get_by_label("ticket").fill("OPS-3")
    page.get_by_label("stage").select_option("live")
    approve.click()
    expect(page).to_have_url(re.compile(f"/runs/{run}"))
    expect(state(page)).to_have_text("Successful")
    assert server.job(run, "allowed")["output"]["fields"] == {"ticket": "OPS-3", "stage": "live"}
    page.goto(f"/runs/{run}?job={server.job(run, 'publish')['job_id']}")
    expect(page.get_by_text("ticket OPS-3 to live")).to_be_visible()


def test_a_person_rejects_on_the_page_of_the_run(server, visitors):
    run = submit_and_await_question(server, "2.1")
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}?job={server.job(run, 'allowed')['job_id']}")
    reject = button(page, f"Reject allowed of run {run}")
    reject.click()
    expect(page.get_by_label("Reason for rejecting")).to_be_focused()
    assert server.run(run)["finished_at"] is None, "a reason is needed"
    page.get_by_label("Reason for rejecting").fill("the tests are red")
    reject.click()
    expect(state(page)).to_have_text("Failed")
    expect(page.get_by_text("the tests are red").first).to_be_visible()
    expect(reject).to_have_count(0)
    job = server.job(run, "allowed")
    assert job["status"] == "FAILED" and "the tests are red" in job["last_error"]


def test_the_limit_of_a_queue_stays_with_its_queue(server, visitors):
    server.windlass("queue", "limit", "mail", "--max-running", "3")
    page = visitors.visitor("edit")
    page.goto("/queues")
    field = page.get_by_label("Jobs of mail at a time")
    expect(field).to_have_value("3")
    mark(page)
    field.fill("12")
    page.keyboard.press("ArrowLeft")
    # A row comes before it.
    server.windlass("queue", "limit", "alpha", "--max-running", "5")
    expect(page.get_by_label("Jobs of alpha at a time")).to_have_value("5")
    expect(field).to_have_value("12")
    expect(field).to_be_focused()
    assert page.evaluate("document.activeElement.selectionStart") == 1
    assert is_the_same(page)
    page.keyboard.press("Enter")
    expect(page.get_by_text("12 at a time")).to_be_visible()
    queues = {queue["queue"]: queue["max_running"] for queue in server.windlass("queue")}
    assert queues["mail"] == 12 and queues["alpha"] == 5


def test_filters_a_selection_and_the_position_of_a_list(server, visitors):
    runs = [server.submit("later") for _ in range(30)]
    page = visitors.visitor("run", viewport={"width": 1280, "height": 500})
    page.goto("/runs")
    expect(page.locator("[data-run]")).to_have_count(30)
    mark(page)
    page.get_by_label(f"Select run {runs[3]}").check()
    page.get_by_label(f"Select run {runs[4]}").check()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Key", exact=True).fill("half a k")
    page.get_by_label("Tag", exact=True).fill("nig")
    page.locator(f"[data-run='{runs[5]}']").scroll_into_view_if_needed()
    top = f"document.querySelector('[data-run=\"{runs[5]}\"]').getBoundingClientRect().top"
    before = page.evaluate(top)
    # A note, a cause of failures and a run come above.
    server.windlass("queue", "pause", "default")
    failed = server.submit("nightly")
    expect(page.locator(f"[data-run='{failed}']")).to_be_attached()
    server.windlass("queue", "resume", "default")
    server.ended(failed)
    expect(page.get_by_text("1 run, 1 cause")).to_be_attached()
    expect(page.get_by_label("Key", exact=True)).to_have_value("half a k")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("nig")
    expect(page.get_by_label("Tag", exact=True)).to_be_focused()
    expect(page.get_by_label(f"Select run {runs[3]}")).to_be_checked()
    expect(page.get_by_text("2 runs selected")).to_be_attached()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(2)
    assert abs(page.evaluate(top) - before) < 60
    assert is_the_same(page)


def test_a_search_a_dialog_and_the_position_in_a_run(server, visitors):
    run = server.submit("steps")
    page = visitors.visitor("run", viewport={"width": 1280, "height": 400})
    page.goto(f"/runs/{run}")
    expect(state(page)).to_have_text("Running")
    mark(page)
    server.allow("first")
    expect(page.get_by_text("second has begun")).to_be_attached()
    page.get_by_label("Search this log").fill("has be")
    page.keyboard.press("ArrowLeft")
    caret = page.evaluate(CARET)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    position = page.evaluate("scrollY")
    server.allow("second")
    server.ended(run)
    expect(state(page)).to_have_text("Successful")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search this log")).to_have_value("has be")
    assert caret == ["log-find", 5]
    assert abs(page.evaluate("scrollY") - position) < 60
    assert is_the_same(page)
