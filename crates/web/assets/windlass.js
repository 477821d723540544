// Everything works without this script. It adds keys, the selection, the reader's zone, and what changes.
"use strict";
(() => {
  const root = document.documentElement;
  const base = root.dataset.base || "";
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("script");

  // The zone: a cookie tells the server, which writes all times. UTC is one key away.
  const cookie = (name) => (document.cookie.match(`(?:^|; )${name}=([^;]*)`) || [])[1];
  const setCookie = (name, value) => {
    document.cookie = `${name}=${value}; Path=${base || "/"}; Max-Age=31536000; SameSite=Lax`;
  };
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const encoded = (zone) => encodeURIComponent(zone);
  if (cookie("zone") === undefined && navigator.cookieEnabled && root.dataset.zone !== own) {
    setCookie("zone", encoded(own));
    if (cookie("zone") !== undefined) location.reload();
  }
  const toggleZone = () => {
    setCookie("zone", encoded(root.dataset.zone === "UTC" ? own : "UTC"));
    location.reload();
  };

  // Filters apply as soon as something is chosen with a pointer. With keys each step through the choices is a change, so there
  // Enter or the button applies them. The mark is on the root, which no live update writes.
  let isByPointer = false, isTyped = false, sent = new WeakSet();
  addEventListener("pointerdown", () => { isByPointer = true; }, true);
  addEventListener("keydown", (event) => {
    isByPointer = false;
    if (event.key !== "Enter" || !event.target.matches("form[data-auto] select")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  }, true);
  addEventListener("input", () => { isTyped = true; });
  document.addEventListener("change", (event) => {
    const field = event.target, form = field.closest("form[data-auto]");
    if (form && field.name === "since" && field.value) for (const at of $$(".at", form)) at.value = "";
    if (form && field.matches("select")) { if (isByPointer) form.requestSubmit(); else root.classList.add("changed"); }
    if (field.closest("#runs")) showSelection();
  });
  // Who presses twice wants it once.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (sent.has(event.target)) event.preventDefault();
    sent.add(event.target);
  });
  addEventListener("pageshow", (event) => { if (event.persisted) sent = new WeakSet(); });
  // Empty fields stay out of the address.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-auto]")) return;
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
  });

  const showSelection = () => {
    const bulk = $("#bulk");
    if (!bulk) return;
    const count = $$("#runs input[name=run]:checked").length;
    const all = $("#bulk input[name=all]").checked;
    if (count) bulk.hidden = false;
    bulk.classList.toggle("on", count > 0 || all);
    $("#selected").textContent = count === 1 ? "1 run selected" : `${count} runs selected`;
  };

  // Keys. `j` and `k` move through rows, `enter` opens one.
  const rows = () => $$("[data-run],[data-row]");
  let at = -1;
  // A row of the timeline is a link itself.
  const linkOf = (row) => row && (row.matches("a") ? row : $("a", row));
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    if (all[at]) all[at].classList.remove("at");
    at = Math.max(0, Math.min(all.length - 1, at + step));
    all[at].classList.add("at");
    const link = linkOf(all[at]);
    if (link) link.focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
  };
  const select = () => {
    const row = rows()[at];
    const box = row && $("input[name=run]", row);
    if (!box) return;
    box.checked = !box.checked;
    showSelection();
  };
  const keys = [
    ["/", "Find a run, a job, a key or a workflow"], ["j k", "Move down and up"], ["x", "Select the run"],
    ["enter", "Open"], ["e", "Go to the first error"], ["u", "Times in UTC, or in your zone"], ["?", "This list"],
  ];
  // Who speaks to the computer can turn the keys off, because words are letters.
  const stored = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch (error) { return value; }
  };
  const areKeysOn = () => stored("keys") !== "off";
  const help = () => {
    let dialog = $("#keys");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.id = "keys";
      const title = document.createElement("h2");
      title.textContent = "Keys";
      title.id = "keys-name";
      dialog.setAttribute("aria-labelledby", title.id);
      const list = document.createElement("dl");
      for (const [key, words] of keys) {
        const dt = document.createElement("dt");
        for (const part of key.split(" ")) {
          const kbd = document.createElement("kbd");
          kbd.textContent = part;
          dt.append(kbd, " ");
        }
        const dd = document.createElement("dd");
        dd.textContent = words;
        list.append(dt, dd);
      }
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.checked = areKeysOn();
      box.addEventListener("change", () => stored("keys", box.checked ? "on" : "off"));
      label.append(box, " Use these keys");
      const close = document.createElement("button");
      close.className = "btn s";
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      dialog.append(title, list, label, close);
      dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
      document.body.append(dialog);
    }
    dialog.showModal();
  };
  const firstError = () => {
    const line = $(".ln.first"), shown = $("#first-error"), link = linkOf(rows()[at]);
    if (line) line.scrollIntoView({ block: "center" });
    else if (shown) shown.click();
    // The page of the run goes on from there.
    else if (link) location.href = `${link.href.split("#")[0]}#error`;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=checkbox]),select,textarea,[contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const actions = {
      "/": () => ($("#log-find") || $("#find")).focus(), j: () => move(1), k: () => move(-1), x: select,
      e: firstError, u: toggleZone, "?": help,
    };
    const action = actions[event.key];
    if (!action || !areKeysOn()) return;
    event.preventDefault();
    action();
  });
  showSelection();
  const showKeys = $("#show-keys");
  if (showKeys) { showKeys.hidden = false; showKeys.addEventListener("click", help); }

  // The command of a form, for what is filled in.
  const commandForm = $("form[data-command]");
  if (commandForm) {
    let wait = 0, asked = 0;
    commandForm.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(async () => {
        const own = ++asked, body = new URLSearchParams(new FormData(commandForm));
        body.set("show", "1");
        const options = { method: "POST", body, redirect: "error", headers: { "X-Fragment": "main" } };
        const answer = await fetch(commandForm.action, options).catch(() => null);
        if (!answer || !answer.ok || own !== asked) return;
        const then = $("#elsewhere", new DOMParser().parseFromString(await answer.text(), "text/html"));
        if (then) $("#elsewhere").replaceWith(document.importNode(then, true));
      }, 300);
    });
    // A form that comes back from the browser's memory starts another run.
    addEventListener("pageshow", (event) => {
      if (!event.persisted) return;
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      commandForm.elements.form_key.value = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    });
  }
  // A batch goes on with its next step.
  const next = $("form[data-continue]");
  if (next) next.requestSubmit();

  // Another version of this page, or the page of a link.
  const fetched = async (href) => {
    const response = await fetch(href, { credentials: "same-origin", redirect: "error" });
    if (!response.ok) throw new Error(response.status);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };

  // The output: lines are loaded as they come into sight, and few of them are kept.
  const kept = 500, slack = 100;
  let lines = null, seen = null, scrolled = false, isEmpty = false, follows = false;
  const numberOf = (line) => Number(line.id.slice(1));
  const isOpen = () => Boolean(lines && lines.dataset.open !== undefined);
  const isMore = (node) => Boolean(node && node.classList.contains("more"));
  const isAtEnd = () => lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
  const toEnd = () => { lines.scrollTop = lines.scrollHeight; };
  const more = (number, words) => {
    const link = document.createElement("a");
    link.className = "more";
    link.href = `?job=${lines.dataset.job}&attempt=${lines.dataset.attempt}&from=${number}#job`;
    link.textContent = words;
    return link;
  };
  const watch = () => { seen.disconnect(); for (const link of $$(".more", lines)) seen.observe(link); };
  // Takes lines out at one end, and puts a link in their place.
  const trim = (isEnd) => {
    const all = $$(".ln", lines);
    const surplus = all.length - kept;
    if (surplus <= 0) return;
    const gone = isEnd ? all.slice(-surplus) : all.slice(0, surplus);
    const edge = isEnd ? lines.lastElementChild : lines.firstElementChild;
    if (isMore(edge)) edge.remove();
    const link = isEnd ? more(numberOf(gone[0]), "lines after · show")
      : more(Math.max(1, numberOf(gone[gone.length - 1]) - 399), "lines before · show");
    const [top, height] = [lines.scrollTop, lines.scrollHeight];
    for (const line of gone) line.remove();
    if (isEnd) lines.append(link);
    else { lines.prepend(link); lines.scrollTop = top - (height - lines.scrollHeight); }
  };
  const load = async (link) => {
    if (link.dataset.loading) return;
    link.dataset.loading = "1";
    const isBefore = link === lines.firstElementChild;
    let box = null;
    try { box = $("#lines", await fetched(link.href)); } catch (error) { /* as without lines */ }
    if (!box) {
      // Once more a little later, if it is still in sight.
      delete link.dataset.loading;
      setTimeout(() => { if (link.isConnected) watch(); }, 3000);
      return;
    }
    if (!link.isConnected) return;
    const next = isBefore ? box.firstElementChild : box.lastElementChild;
    const parts = $$(".ln", box).filter((line) => !document.getElementById(line.id));
    if (isMore(next)) parts[isBefore ? "unshift" : "push"](next);
    const height = lines.scrollHeight;
    link.replaceWith(...parts);
    if (isBefore) lines.scrollTop += lines.scrollHeight - height;
    trim(isBefore);
    if (follows && !isBefore) toEnd();
    watch();
    if (parts.length) goOn();
  };
  // Lines from this one on are behind a link, which is loaded as all others; at once if the end is in sight.
  const behind = (number) => {
    lines.append(more(number, "lines after · show"));
    watch();
    if (follows || isAtEnd()) load(lines.lastElementChild);
  };
  const known = (line) => { lines.dataset.last = Math.max(line, lines.dataset.last); };
  // What is known to be written and not shown.
  const goOn = () => {
    const last = lines.lastElementChild;
    if (last && !isMore(last) && numberOf(last) < Number(lines.dataset.last)) behind(numberOf(last) + 1);
  };
  // A line that was written now. It is shown if the line before it is.
  const add = ({ attempt, line, html }) => {
    if (!lines || Number(lines.dataset.attempt) !== attempt) return refreshSoon();
    const last = lines.lastElementChild;
    known(line);
    if (isMore(last) || (last && numberOf(last) >= line)) return;
    if (last && numberOf(last) + 1 < line) return behind(numberOf(last) + 1);
    // Who reads above keeps the lines that are in sight.
    if (!follows && $$(".ln", lines).length >= kept + slack) return behind(line);
    lines.append(new DOMParser().parseFromString(html, "text/html").body.firstElementChild);
    if ($$(".ln", lines).length > kept + slack) { trim(false); watch(); }
    if (follows) toEnd();
  };
  // Lines that were written while no stream told them.
  const grow = () => {
    const last = lines && lines.lastElementChild;
    if (!last || (source && source.hasOutput && source.readyState === 1)) return;
    if (isMore(last) && follows) load(last); else goOn();
  };
  const follow = async (on) => {
    follows = on;
    const button = $("#follow");
    if (button) button.setAttribute("aria-pressed", on);
    if (!on) return;
    if (isMore(lines.lastElementChild)) {
      try {
        const box = $("#lines", await fetched(more(Number.MAX_SAFE_INTEGER, "").href));
        if (box) { lines.replaceChildren(...box.children); known(box.dataset.last); }
      } catch (error) { /* The lines stay as they are. */ }
      watch();
    }
    toEnd();
    goOn();
  };
  const openLog = () => {
    lines = $("#lines");
    isEmpty = Boolean($("#no-lines"));
    if (!lines) return;
    scrolled = follows = false;
    seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting && scrolled) load(entry.target);
    }, { root: lines, rootMargin: "200px" });
    const own = lines;
    lines.addEventListener("scroll", () => {
      if (own !== lines) return;
      if (!scrolled) { scrolled = true; watch(); }
      const isEnd = isAtEnd();
      if (follows ? !isEnd : isOpen() && isEnd && !isMore(lines.lastElementChild)) follow(!follows);
    });
    watch();
    const toggle = $("#follow");
    if (toggle && toggle.hidden) {
      toggle.hidden = false;
      toggle.addEventListener("click", () => follow(!follows));
    }
    const first = $(".ln.first", lines) || $(".ln.asked", lines);
    if (!location.hash.startsWith("#L")) {
      if (first) lines.scrollTop = first.offsetTop - lines.offsetTop - 120;
      else if (isOpen()) follow(true);
    }
    const wrap = $("#wrap");
    if (!wrap || !wrap.hidden) return;
    wrap.hidden = false;
    wrap.addEventListener("click", () => {
      const isWrapped = !lines.classList.toggle("nowrap");
      wrap.setAttribute("aria-pressed", isWrapped);
      if (follows) toEnd();
    });
  };
  // The same search once more goes to the next hit.
  document.addEventListener("submit", (event) => {
    const next = $("#next-hit"), find = $("#log-find");
    if (!next || !event.submitter || !event.target.matches(".log-bar") || find.value !== find.defaultValue) return;
    event.preventDefault();
    next.click();
  });

  // Makes a part of the page like another one. What is the same stays in the page, with its focus, its selection, its
  // position, and what the reader has opened or written.
  const ownParts = "#live,#wrap,#follow,#bulk,dialog";
  // What an element is about. A form that is half filled in must not become the form of something else.
  const keyOf = (node) => node.nodeType !== 1 ? "" : node.id || node.dataset.run || node.dataset.row
    || node.getAttribute("href") || node.getAttribute("action") || node.getAttribute("aria-labelledby")
    || (node.matches("section") && node.getAttribute("aria-label")) || (node.matches("option") && node.value) || "";
  const keysOf = (parent) => {
    const [keys, counts] = [new Map(), new Map()];
    for (const child of parent.childNodes) {
      if (!keyOf(child)) continue;
      const key = `${child.nodeName} ${keyOf(child)}`;
      counts.set(key, (counts.get(key) || 0) + 1);
      keys.set(child, `${key} ${counts.get(key)}`);
    }
    return keys;
  };
  const isLike = (left, right) => left.nodeName === right.nodeName && keyOf(left) === keyOf(right)
    && !(left.id === "lines" && (left.dataset.job !== right.dataset.job || left.dataset.attempt !== right.dataset.attempt));
  const liken = (now, then) => {
    if (now.isEqualNode(then)) return;
    if (now.nodeType !== 1) { now.data = then.data; return; }
    if (now.matches(ownParts)) return;
    if (now.id === "lines") {
      // The output comes by its own way.
      now.dataset.last = Math.max(now.dataset.last, then.dataset.last);
      if (then.dataset.open === undefined) delete now.dataset.open;
      return;
    }
    for (const { name } of [...now.attributes]) if (!then.hasAttribute(name) && name !== "open") now.removeAttribute(name);
    for (const { name, value } of then.attributes) {
      if (name !== "open" && now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    const [present, wanted] = [keysOf(now), keysOf(then)];
    const known = new Map([...present].map(([node, key]) => [key, node]));
    const stays = new Set(wanted.values());
    // What is gone leaves first, so that what stays need not move: an element that moves may lose its focus.
    for (const [node, key] of present) if (!stays.has(key)) node.remove();
    let place = now.firstChild;
    const pass = () => { const gone = place; place = place.nextSibling; gone.remove(); };
    for (const child of [...then.childNodes]) {
      const own = known.get(wanted.get(child));
      if (own && place && place.compareDocumentPosition(own) & Node.DOCUMENT_POSITION_FOLLOWING) {
        while (place !== own && !present.has(place)) pass();
      }
      const like = own ? isLike(own, child) && own : place && !wanted.has(child) && isLike(place, child) && place;
      if (!like) { now.insertBefore(document.importNode(child, true), place); continue; }
      if (like === place) place = place.nextSibling;
      else now[now.moveBefore ? "moveBefore" : "insertBefore"](like, place);
      liken(like, child);
    }
    while (place) pass();
  };

  // What changes while it is in sight. One stream tells what has changed; a hidden tab has none.
  const path = location.pathname.slice(base.length);
  const run = (path.match(/^\/runs\/(\d+)$/) || [])[1];
  const topics = run ? [`run ${run}`] : path === "/queues" ? ["queues"] : path === "/system" ? ["system"]
    : /^\/(runs|approvals)$/.test(path) ? ["runs", "queues", "system"]
    : /^\/jobs\/\d+$/.test(path) ? ["runs", "queues"]
    : /^\/workflows(\/[^/]+)?$/.test(path) ? ["workflows", "runs"] : null;
  const main = $("main"), live = $("#live");
  const say = (words, link = "", href = "") => {
    if (live.textContent === words + link) return;
    live.textContent = words;
    live.classList.toggle("off", words !== "Live");
    if (!link) return;
    const anchor = document.createElement("a");
    anchor.href = href;
    anchor.textContent = link;
    live.append(anchor);
  };
  // The session has ended, or the server has become another version: the page does not go on by itself.
  let tag = "", isOver = false, readAgainAt = 0;
  const end = (words, link, href) => { isOver = true; silence(); say(words, link, href); };
  const renew = (version) => {
    let known = null;
    try { known = sessionStorage.getItem("renewed"); sessionStorage.setItem("renewed", version); } catch (error) { known = version; }
    if (isTyped || known === version) end("The server is a newer version. ", "Load the page again", location.href);
    else { isOver = true; location.reload(); }
  };
  const refresh = async () => {
    const headers = { "X-Fragment": "main", ...(tag && { "If-None-Match": tag }) };
    const response = await fetch(location.href, { credentials: "same-origin", redirect: "manual", cache: "no-store", headers });
    if (response.status === 401 || response.type === "opaqueredirect") {
      return end("Signed out. ", "Sign in", `${base}/login?next=${encodeURIComponent(path + location.search)}`);
    }
    // The more pages are open, the longer each waits, so that they don't slow down what they show.
    readAgainAt = performance.now() + (Number(response.headers.get("X-Pause")) || 0);
    const version = response.headers.get("X-Assets");
    if (version && version !== root.dataset.assets) return renew(version);
    if (response.status === 304) return grow();
    if (!response.ok) throw new Error(response.status);
    tag = response.headers.get("ETag") || "";
    const then = $("main", new DOMParser().parseFromString(await response.text(), "text/html"));
    if (!then) return;
    const row = rows()[at];
    liken(main, then);
    at = rows().indexOf(row);
    if (row && at >= 0) row.classList.add("at");
    showSelection();
    if ($("#lines") !== lines || Boolean($("#no-lines")) !== isEmpty) { openLog(); listen(); }
    grow();
  };
  // One at a time, and after a change that came meanwhile once more.
  let isAsking = false, isDue = false, timer = 0;
  const refreshSoon = () => {
    isDue = true;
    if (isAsking || timer || document.hidden || isOver) return;
    timer = setTimeout(async () => {
      timer = 0;
      isAsking = true;
      isDue = false;
      try { await refresh(); if (!isOver) say(isPaused ? "Paused" : "Live"); } catch (error) { say("No connection"); }
      isAsking = false;
      if (isDue) refreshSoon();
    }, Math.max(150, readAgainAt - performance.now()));
  };
  // The server refuses a stream if too many are open, and says when to ask again.
  let isPaused = false;
  const pause = (reason, seconds) => {
    isPaused = Boolean(reason);
    const note = $("#paused");
    note.hidden = !isPaused;
    note.textContent = !isPaused ? "" : `Live updates are paused, because ${reason}. Until they go on, the page is read again every ${seconds} seconds.`;
    if (isPaused) say("Paused");
  };
  const refused = async (own, url) => {
    let [reason, seconds] = ["", 10];
    try {
      // An event source does not tell the answer, so it is asked for once more.
      const stop = new AbortController(), headers = { Accept: "application/json" };
      const answer = await fetch(url, { credentials: "same-origin", redirect: "manual", cache: "no-store", signal: stop.signal, headers });
      if (answer.status === 429 || answer.status === 503) {
        seconds = Number(answer.headers.get("Retry-After")) || seconds;
        reason = (await answer.json()).detail;
      } else if (answer.ok) seconds = 1;
      stop.abort();
    } catch (error) { /* No connection, which the page itself tells. */ }
    if (own !== source) return;
    pause(reason, seconds);
    // A refusal may be the end of the session, which the page itself tells.
    refreshSoon();
    retry = setTimeout(() => { refreshSoon(); listen(); }, seconds * 1000);
  };
  let source = null, retry = 0;
  const silence = () => { if (source) source.close(); source = null; clearTimeout(retry); };
  const listen = () => {
    silence();
    if (document.hidden || isOver) return;
    const asked = new URLSearchParams();
    if (run) asked.set("run", run);
    // The output that is open, or will be with its first line.
    const output = isOpen() ? lines : $("#no-lines");
    if (output) {
      const last = output === lines && lines.lastElementChild;
      asked.set("job", output.dataset.job);
      asked.set("after", `${output.dataset.attempt}.${!last ? 0 : last.classList.contains("ln") ? numberOf(last) : lines.dataset.last}`);
    }
    const url = `${base}/live?${asked}`;
    const own = source = new EventSource(url);
    own.hasOutput = Boolean(output);
    source.addEventListener("open", () => pause(""));
    source.addEventListener("changed", (event) => {
      const { changed } = JSON.parse(event.data);
      if (changed.some((name) => name === "everything" || topics.includes(name))) refreshSoon();
    });
    source.addEventListener("line", (event) => add(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (own !== source) return;
      if (own.readyState === EventSource.CONNECTING) say("No connection");
      // A browser tries again by itself, but not after a refusal. Then the page asks from time to time.
      if (own.readyState === EventSource.CLOSED) refused(own, url);
    });
  };
  openLog();
  if (location.hash === "#error") firstError();
  if (topics) {
    listen();
    document.addEventListener("visibilitychange", () => {
      // Somebody may have signed in meanwhile.
      if (document.hidden) return silence();
      isOver = false;
      listen();
    });
    addEventListener("pagehide", silence);
    addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
    // Times that run go on.
    setInterval(() => { if ($(".st.run", main)) refreshSoon(); }, 10000);
  }
})();
