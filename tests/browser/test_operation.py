"""What a person does with runs, in a browser: start, watch, read, cancel, retry."""

import re

from playwright.sync_api import expect

# A page that was loaded again has lost it.
MARK = "window.isTheSamePage = true"


def mark(page):
    page.evaluate(MARK)


def is_the_same(page):
    return page.evaluate("window.isTheSamePage === true")


def state(page):
    """The state of the run, as its page says it."""
    return page.locator("h1 .st")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def link(page, name):
    return page.get_by_role("link", name=name, exact=True)


def scroll_to(page, line):
    """Scrolls the output to its end, again and again, until it has the line."""
    page.wait_for_function(
        """line => {
            const lines = document.querySelector("#lines")
            lines.scrollTop = lines.scrollHeight
            return document.querySelector(line) !== null
        }""",
        arg=line, polling=50,
    )


def run_id(page):
    return int(re.search(r"/runs/(\d+)", page.url).group(1))


def start(page, workflow, **values):
    """Starts a run with the form of its workflow."""
    page.goto("/workflows")
    link(page, f"Start… {workflow}").click()
    for name, value in values.items():
        field = page.get_by_label(name)
        field.select_option(value) if name == "mode" else field.fill(value)
    button(page, "Start").click()
    expect(page).to_have_url(re.compile(r"/runs/\d+$"))


def test_a_run_is_started_by_a_form_and_watched(server, visitors):
    page = visitors.visitor("run")
    start(page, "steps")
    expect(state(page)).to_have_text("Running")
    mark(page)
    server.allow("first")
    expect(page.get_by_text("1 of 2 jobs successful")).to_be_visible()
    expect(page.get_by_text("second has begun")).to_be_visible()
    server.allow("second")
    expect(state(page)).to_have_text("Successful")
    expect(page.get_by_text("2 of 2 jobs successful")).to_be_visible()
    assert is_the_same(page)


def test_a_form_refuses_a_wrong_value_and_keeps_the_others(server, visitors):
    page = visitors.visitor("run")
    page.goto("/workflows/nightly/start")
    page.get_by_label("rows").fill("7")
    page.get_by_label("note").fill("a note & more")
    page.get_by_label("mode").select_option("changes")
    # Browsers check numbers and dates themselves; the server does too.
    page.locator("form.start").evaluate("form => form.noValidate = true")
    page.get_by_label("day").evaluate("field => { field.type = 'text'; field.value = 'someday' }")
    visitors.expect_console("status of 400|does not conform to the required format")
    button(page, "Start").click()
    expect(page.get_by_text("someday").first).to_be_visible()
    expect(page.get_by_label("rows")).to_have_value("7")
    expect(page.get_by_label("mode")).to_have_value("changes")
    expect(page.get_by_label("note")).to_have_value("a note & more")
    page.get_by_label("day").fill("2026-11-20")
    button(page, "Start").click()
    expect(page).to_have_url(re.compile(r"/runs/\d+$"))
    run = server.run(run_id(page))
    assert run["params"] == {"day": "2026-11-20", "rows": 7, "mode": "changes", "note": "a note & more"}


def test_a_log_opens_at_its_first_error(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}")
    page.get_by_role("link", name="First error, line 604").click()
    line = page.locator("#L604")
    expect(line).to_contain_text("ConnectionError: connection to warehouse refused")
    expect(line).to_be_in_viewport()
    expect(line.get_by_role("link", name="Line 604, the first error")).to_be_visible()
    page.get_by_label("Search this log").fill("warehouse refused")
    button(page, "Search").click()
    expect(page.locator("mark")).to_have_text("warehouse refused")
    expect(page.locator("mark")).to_be_in_viewport()
    page.goto(f"/runs/{run}?job={server.job(run, 'load')['job_id']}&attempt=1#job")
    expect(page.get_by_role("combobox", name="Attempt")).to_have_value("1")
    with page.expect_download() as download:
        link(page, "Download").click()
    text = download.value.path().read_text()
    assert text.count("\n") == 1_204 and "ConnectionError: connection to warehouse refused\n" in text


def test_lines_are_loaded_when_they_come_into_sight(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("view")
    page.goto(f"/runs/{run}")
    expect(page.locator("#L604")).to_be_in_viewport()
    mark(page)
    expect(page.get_by_role("region", name="Log of load, attempt 2")).to_be_visible()
    scroll_to(page, "#L1204")
    expect(page.locator("#L1204")).to_contain_text("cleaning up part 600")
    numbers = [int(number) for number in page.locator(".ln .no").all_inner_texts()]
    assert numbers == list(range(numbers[0], 1_205)) and len(numbers) <= 1_200
    assert is_the_same(page)


def test_a_run_is_cancelled(server, visitors):
    run = server.submit("steps")
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}")
    button(page, "Cancel").click()
    expect(state(page)).to_have_text("Cancelled")
    assert server.ended(run)["status"] == "CANCELLED"
    expect(button(page, "Cancel")).to_have_count(0)


def test_what_failed_is_retried_and_a_run_from_a_job_on(server, visitors):
    run = server.submit("nightly")
    server.ended(run)
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}")
    expect(page.get_by_text("connection to warehouse refused").first).to_be_visible()
    server.allow("repaired")
    button(page, "Retry what failed").click()
    expect(state(page)).to_have_text("Successful")
    expect(page.get_by_text("3 of 3 jobs successful")).to_be_visible()
    server.forbid("repaired")
    again = server.submit("nightly")
    server.ended(again)
    page.goto(f"/runs/{again}")
    server.allow("repaired")
    link(page, "Retry from…").click()
    page.get_by_role("radio", name="extract").check()
    button(page, "Retry").click()
    expect(state(page)).to_have_text("Successful")
    assert server.job(again, "extract")["attempt"] == 2


def test_a_run_is_started_again_with_other_values(server, visitors):
    server.allow("repaired")
    run = server.submit("nightly", "note=first")
    server.ended(run)
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}")
    link(page, "Run again…").click()
    expect(page.get_by_label("note")).to_have_value("first")
    page.get_by_label("note").fill("second")
    button(page, "Start").click()
    expect(page).not_to_have_url(re.compile(f"/runs/{run}(/|$)"))
    expect(page).to_have_url(re.compile(r"/runs/\d+$"))
    assert server.run(run_id(page))["params"]["note"] == "second"


def test_a_cause_is_retried_by_one_click(server, visitors):
    failed = [server.submit("nightly") for _ in range(3)]
    for run in failed:
        server.ended(run)
    page = visitors.visitor("run")
    page.goto("/runs")
    expect(page.get_by_text("3 runs, 1 cause")).to_be_visible()
    server.allow("repaired")
    button(page, "Retry 3 of nightly").click()
    expect(page.get_by_role("heading", name="3 runs retried")).to_be_visible()
    for run in failed:
        expect(page.get_by_role("link", name=f"#{run}", exact=True)).to_be_visible()
    assert [server.ended(run)["status"] for run in failed] == ["SUCCESSFUL"] * 3


def test_selected_runs_are_cancelled(server, visitors):
    runs = [server.submit("later") for _ in range(3)]
    page = visitors.visitor("run")
    page.goto("/runs")
    for run in runs[:2]:
        page.get_by_label(f"Select run {run}").check()
    expect(page.get_by_text("2 runs selected")).to_be_visible()
    button(page, "Cancel…").click()
    button(page, "Cancel 2 runs").click()
    expect(page.get_by_role("heading", name="2 runs cancelled")).to_be_visible()
    assert [server.ended(run)["status"] for run in runs[:2]] == ["CANCELLED"] * 2
    assert server.run(runs[2])["finished_at"] is None


def test_two_tabs_show_what_one_of_them_changes(server, visitors):
    run = server.submit("steps")
    page = visitors.visitor("run")
    other = page.context.new_page()
    other.goto("/runs")
    row = other.locator(f"[data-run='{run}']")
    expect(row).to_contain_text("Running")
    mark(other)
    page.goto(f"/runs/{run}")
    button(page, "Cancel").click()
    expect(state(page)).to_have_text("Cancelled")
    other.bring_to_front()
    expect(row).to_contain_text("Cancelled")
    assert is_the_same(other)


def test_a_person_decides(server, visitors):
    run = server.submit("decision")
    server.reached(run, lambda run: any(job["status"] == "WAITING" for job in run["jobs"]), "waiting for a person")
    page = visitors.visitor("run")
    page.goto(f"/runs/{run}?job={server.job(run, 'approved')['job_id']}")
    button(page, f"Approve approved of run {run}").click()
    expect(button(page, f"Approve approved of run {run}")).to_have_count(0)
    assert server.ended(run)["status"] == "SUCCESSFUL"
    expect(state(page)).to_have_text("Successful")
