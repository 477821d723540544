"""With the network cut all pages are complete: they name no other host, and everything that they load comes from the server.
A request to another host ends each test with a browser: see `conftest.py`."""

from all_pages import addresses, fill

# What the attributes of the page lead to, with the names of other hosts.
NAMED = """() => [...document.querySelectorAll('*')].flatMap(element =>
  ['href', 'xlink:href', 'src', 'srcset', 'action', 'formaction', 'data', 'poster', 'cite', 'ping', 'background']
    .filter(name => element.hasAttribute(name))
    .map(name => ({name, tag: element.localName, value: element.getAttribute(name)}))
    .filter(({value}) => !['data:', 'blob:'].some(scheme => value.startsWith(scheme)))
    .filter(({value}) => new URL(value, document.baseURI).origin !== location.origin)
    .map(({name, tag, value}) => `<${tag} ${name}="${value}">`))"""


def test_no_page_needs_another_host(server, visitors):
    numbers = fill(server)
    page = visitors.visitor("admin")
    visitors.expect_console("status of 404")
    complaints, files = [], {}
    page.context.on("request", lambda request: files.update({request.url: request.resource_type}))
    for address in addresses(numbers):
        page.goto(address, wait_until="load")
        complaints += [f"{address}: {named}" for named in page.evaluate(NAMED)]
    files = {url: kind for url, kind in files.items() if kind not in ("document", "eventsource", "fetch")}
    assert {"stylesheet", "script"} <= set(files.values()), files
    for url in files:
        if not url.startswith(f"{server.origin}/"):
            # The fixture complains of it.
            continue
        got = page.request.get(url)
        # The name of the language of images is no address.
        text = got.text().replace("http://www.w3.org/2000/svg", "")
        named = [begin for begin in ("http://", "https://", "url(//", "@import") if begin in text]
        complaints += [f"{url}: {got.status} {named}"] if named or not got.ok else []
    assert complaints == []
