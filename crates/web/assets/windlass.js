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

  // Filters apply as soon as something is chosen.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-auto]");
    if (form && event.target.matches("select")) form.requestSubmit();
    if (event.target.closest("#runs")) showSelection();
  });
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
    bulk.classList.toggle("on", count > 0 || all);
    $("#selected").textContent = count === 1 ? "1 run selected" : `${count} runs selected`;
  };

  // Keys. `j` and `k` move through rows, `enter` opens one.
  const rows = () => $$("[data-run],[data-row]");
  let at = -1;
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    if (all[at]) all[at].classList.remove("at");
    at = Math.max(0, Math.min(all.length - 1, at + step));
    all[at].classList.add("at");
    const link = $("a", all[at]);
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
  const help = () => {
    let dialog = $("#keys");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.id = "keys";
      const title = document.createElement("h2");
      title.textContent = "Keys";
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
      dialog.append(title, list);
      dialog.addEventListener("click", () => dialog.close());
      document.body.append(dialog);
    }
    dialog.showModal();
  };
  const firstError = () => {
    const line = $(".ln.first");
    const link = $("#first-error") || (at >= 0 && $("a", rows()[at]));
    if (line) line.scrollIntoView({ block: "center" });
    else if (link) link.click();
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
    if (!action) return;
    event.preventDefault();
    action();
  });
  showSelection();

  // Another version of this page, or the page of a link.
  const fetched = async (href) => {
    const response = await fetch(href, { credentials: "same-origin", redirect: "error" });
    if (!response.ok) throw new Error(response.status);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };

  // The output: lines are loaded as they come into sight, and few of them are kept.
  const kept = 1200;
  let lines = null, seen = null, scrolled = false, isEmpty = false;
  const numberOf = (line) => Number(line.id.slice(1));
  const isOpen = () => Boolean(lines && lines.dataset.open !== undefined);
  const more = (number, words) => {
    const link = document.createElement("a");
    link.className = "more";
    link.href = `?job=${lines.dataset.job}&attempt=${lines.dataset.attempt}&line=${number}#job`;
    link.textContent = words;
    return link;
  };
  const watch = () => { seen.disconnect(); for (const link of $$(".more", lines)) seen.observe(link); };
  // Takes lines out at one end, and puts a link in their place.
  const trim = (isAtEnd) => {
    const all = $$(".ln", lines);
    const surplus = all.length - kept;
    if (surplus <= 0) return;
    const gone = isAtEnd ? all.slice(-surplus) : all.slice(0, surplus);
    const edge = isAtEnd ? lines.lastElementChild : lines.firstElementChild;
    if (edge.classList.contains("more")) edge.remove();
    const link = isAtEnd ? more(numberOf(gone[0]), "lines after · show")
      : more(Math.max(1, numberOf(gone[gone.length - 1]) - 399), "lines before · show");
    const [top, height] = [lines.scrollTop, lines.scrollHeight];
    for (const line of gone) line.remove();
    if (isAtEnd) lines.append(link);
    else { lines.prepend(link); lines.scrollTop = top - (height - lines.scrollHeight); }
  };
  const load = async (link) => {
    if (link.dataset.loading) return;
    link.dataset.loading = "1";
    const isBefore = link === lines.firstElementChild;
    const box = $("#lines", await fetched(link.href));
    if (!box) return;
    for (const line of $$(".ln", box)) line.classList.remove("asked");
    const next = isBefore ? box.firstElementChild : box.lastElementChild;
    const parts = $$(".ln", box).filter((line) => !document.getElementById(line.id));
    if (next.classList.contains("more")) parts[isBefore ? "unshift" : "push"](next);
    const height = lines.scrollHeight;
    link.replaceWith(...parts);
    if (isBefore) lines.scrollTop += lines.scrollHeight - height;
    trim(isBefore);
    watch();
  };
  // A line that was written now. It is shown if the line before it is.
  const add = ({ attempt, line, html }) => {
    if (!lines || Number(lines.dataset.attempt) !== attempt) return refreshSoon();
    const last = lines.lastElementChild;
    if (last && (last.classList.contains("more") || numberOf(last) >= line)) return;
    const isAtEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
    const row = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
    lines.append(row);
    lines.dataset.last = line;
    if ($$(".ln", lines).length > kept + 200) { trim(false); watch(); }
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
  };
  const openLog = () => {
    lines = $("#lines");
    isEmpty = Boolean($("#no-lines"));
    if (!lines) return;
    scrolled = false;
    seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting && scrolled) load(entry.target).catch(() => {});
    }, { root: lines, rootMargin: "200px" });
    lines.addEventListener("scroll", () => { if (!scrolled) { scrolled = true; watch(); } }, { once: true });
    watch();
    const first = $(".ln.first", lines) || $(".ln.asked", lines);
    if (first && !location.hash.startsWith("#L")) lines.scrollTop = first.offsetTop - lines.offsetTop - 120;
    else if (isOpen()) lines.scrollTop = lines.scrollHeight;
    const wrap = $("#wrap");
    if (!wrap || !wrap.hidden) return;
    wrap.hidden = false;
    wrap.addEventListener("click", () => {
      const isWrapped = !lines.classList.toggle("nowrap");
      wrap.setAttribute("aria-pressed", isWrapped);
    });
  };

  // Makes a part of the page like another one. What is the same stays in the page, with its focus, its selection, its
  // position, and what the reader has opened or written.
  const ownParts = "#live,#wrap,#bulk,dialog";
  const keyOf = (node) => node.nodeType === 1 ? node.id || node.dataset.run || node.getAttribute("href") || "" : "";
  const isLike = (left, right) => left.nodeName === right.nodeName && keyOf(left) === keyOf(right)
    && !(left.id === "lines" && (left.dataset.job !== right.dataset.job || left.dataset.attempt !== right.dataset.attempt));
  const liken = (now, then) => {
    if (now.isEqualNode(then)) return;
    if (now.nodeType !== 1) { now.data = then.data; return; }
    if (now.matches(ownParts)) return;
    if (now.id === "lines") {
      // The output comes by its own way.
      if (then.dataset.open === undefined) delete now.dataset.open;
      return;
    }
    for (const { name } of [...now.attributes]) if (!then.hasAttribute(name) && name !== "open") now.removeAttribute(name);
    for (const { name, value } of then.attributes) {
      if (name !== "open" && now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    const left = new Map();
    for (const child of now.childNodes) if (keyOf(child)) left.set(child.nodeName + keyOf(child), child);
    let place = now.firstChild;
    for (const child of [...then.childNodes]) {
      const known = keyOf(child) && left.get(child.nodeName + keyOf(child));
      const like = known && known.parentNode === now && isLike(known, child) ? known
        : place && isLike(place, child) && !keyOf(child) ? place : null;
      if (!like) { now.insertBefore(document.importNode(child, true), place); continue; }
      if (like === place) place = place.nextSibling; else now.insertBefore(like, place);
      liken(like, child);
    }
    while (place) { const next = place.nextSibling; place.remove(); place = next; }
  };

  // What changes while it is in sight. One stream tells what has changed; a hidden tab has none.
  const path = location.pathname.slice(base.length);
  const run = (path.match(/^\/runs\/(\d+)$/) || [])[1];
  const topics = run ? [`run ${run}`] : path === "/queues" ? ["queues"] : path === "/system" ? ["system", "runs"]
    : /^\/(runs|approvals)$/.test(path) ? ["runs", "queues", "system"]
    : /^\/workflows(\/[^/]+)?$/.test(path) ? ["workflows", "runs"] : null;
  const main = $("main"), live = $("#live");
  const say = (words) => { if (live) { live.hidden = false; live.textContent = words; } };
  let tag = "";
  const refresh = async () => {
    const headers = { "X-Fragment": "main", ...(tag && { "If-None-Match": tag }) };
    const response = await fetch(location.href, { credentials: "same-origin", redirect: "error", cache: "no-store", headers });
    if (response.status === 304) return;
    if (!response.ok) throw new Error(response.status);
    tag = response.headers.get("ETag") || "";
    const then = $("main", new DOMParser().parseFromString(await response.text(), "text/html"));
    if (!then) return;
    const row = rows()[at];
    liken(main, then);
    at = rows().indexOf(row);
    if (row && at >= 0) row.classList.add("at");
    if ($("#lines") !== lines || Boolean($("#no-lines")) !== isEmpty) { openLog(); listen(); }
  };
  // One at a time, and after a change that came meanwhile once more.
  let isAsking = false, isDue = false, timer = 0;
  const refreshSoon = () => {
    isDue = true;
    if (isAsking || timer || document.hidden) return;
    timer = setTimeout(async () => {
      timer = 0;
      isAsking = true;
      isDue = false;
      try { await refresh(); say("Live"); } catch (error) { say("No connection"); }
      isAsking = false;
      if (isDue) refreshSoon();
    }, 150);
  };
  let source = null, retry = 0;
  const silence = () => { if (source) source.close(); source = null; clearTimeout(retry); };
  const listen = () => {
    silence();
    if (document.hidden) return;
    const asked = new URLSearchParams();
    if (run) asked.set("run", run);
    // The output that is open, or will be with its first line.
    const output = isOpen() ? lines : $("#no-lines");
    if (output) {
      const last = output === lines && lines.lastElementChild;
      asked.set("job", output.dataset.job);
      asked.set("after", `${output.dataset.attempt}.${!last ? 0 : last.classList.contains("ln") ? numberOf(last) : lines.dataset.last}`);
    }
    const own = source = new EventSource(`${base}/live?${asked}`);
    source.addEventListener("changed", (event) => {
      const { changed } = JSON.parse(event.data);
      if (changed.some((name) => name === "everything" || topics.includes(name))) refreshSoon();
    });
    source.addEventListener("line", (event) => add(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (own !== source) return;
      say("No connection");
      // A browser tries again by itself, but not after a refusal. Then the page asks from time to time.
      if (own.readyState === EventSource.CLOSED) retry = setTimeout(() => { refreshSoon(); listen(); }, 10000);
    });
  };
  openLog();
  if (topics) {
    listen();
    document.addEventListener("visibilitychange", () => document.hidden ? silence() : listen());
    addEventListener("pagehide", silence);
    addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
    // Times that run go on.
    setInterval(() => { if ($(".st.run", main)) refreshSoon(); }, 10000);
  }
})();
