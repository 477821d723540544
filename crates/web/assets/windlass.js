// Everything works without this script. It adds keys, the selection, and the reader's zone.
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
  const lines = $("#lines");
  const kept = 1200;
  const numberOf = (line) => Number(line.id.slice(1));
  const more = (number, words) => {
    const link = document.createElement("a");
    link.className = "more";
    link.href = `?job=${lines.dataset.job}&attempt=${lines.dataset.attempt}&line=${number}#job`;
    link.textContent = words;
    return link;
  };
  const load = async (link) => {
    if (link.dataset.loading) return;
    link.dataset.loading = "1";
    const isBefore = link === lines.firstElementChild;
    const other = await fetched(link.href);
    const box = $("#lines", other);
    if (!box) return;
    for (const line of $$(".ln", box)) line.classList.remove("asked");
    const next = isBefore ? box.firstElementChild : box.lastElementChild;
    const parts = $$(".ln", box).filter((line) => !document.getElementById(line.id));
    if (next.classList.contains("more")) parts[isBefore ? "unshift" : "push"](next);
    const height = lines.scrollHeight;
    link.replaceWith(...parts);
    if (isBefore) lines.scrollTop += lines.scrollHeight - height;
    const all = $$(".ln", lines);
    const surplus = all.length - kept;
    if (surplus > 0) {
      const gone = isBefore ? all.slice(-surplus) : all.slice(0, surplus);
      const edge = isBefore ? lines.lastElementChild : lines.firstElementChild;
      if (edge.classList.contains("more")) edge.remove();
      const first = numberOf(gone[0]);
      const link = isBefore ? more(first, "lines after · show") : more(Math.max(1, numberOf(gone[gone.length - 1]) - 399), "lines before · show");
      const top = lines.scrollHeight;
      for (const line of gone) line.remove();
      if (isBefore) lines.append(link); else { lines.prepend(link); lines.scrollTop -= top - lines.scrollHeight; }
    }
    watch();
  };
  const seen = lines && new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && scrolled) load(entry.target).catch(() => {});
  }, { root: lines, rootMargin: "200px" });
  let scrolled = false;
  const watch = () => { seen.disconnect(); for (const link of $$(".more", lines)) seen.observe(link); };
  const follow = async () => {
    const last = $$(".ln", lines).pop();
    const number = last ? numberOf(last) + 1 : 1;
    if ($(".more:last-child", lines) && number > 1) return;
    const other = await fetched(`?job=${lines.dataset.job}&attempt=${lines.dataset.attempt}&line=${number}`);
    const box = $("#lines", other);
    const isAtEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
    for (const line of box ? $$(".ln", box) : []) {
      if (numberOf(line) < number) continue;
      line.classList.remove("asked");
      lines.append(line);
    }
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
    if (!box || box.dataset.open === undefined) delete lines.dataset.open;
  };
  if (lines) {
    lines.addEventListener("scroll", () => { if (!scrolled) { scrolled = true; watch(); } }, { once: true });
    watch();
    const first = $(".ln.first", lines) || $(".ln.asked", lines);
    if (first && !location.hash.startsWith("#L")) lines.scrollTop = first.offsetTop - lines.offsetTop - 120;
    else if (lines.dataset.open !== undefined) lines.scrollTop = lines.scrollHeight;
    const wrap = $("#wrap");
    if (wrap) {
      wrap.hidden = false;
      wrap.addEventListener("click", () => {
        const isWrapped = !lines.classList.toggle("nowrap");
        wrap.setAttribute("aria-pressed", isWrapped);
      });
    }
  }

  // What changes while it is in sight. A hidden tab asks nothing.
  const parts = ["#runs tbody", ".night", ".tabs", ".note", ".rh", ".fail", ".work"];
  const isLive = () => $("#runs") ? !/[?&]before=/.test(location.search) : Boolean($("h1 .st.run, h1 .st.wait"));
  const isBusy = () => $("dialog[open]") || $("#runs input:checked") || document.activeElement.matches("input,select,textarea,summary");
  const refresh = async () => {
    const other = await fetched(location.href);
    // A job has written its first line.
    if (!lines && $("#lines", other)) return location.reload();
    const row = rows()[at];
    const key = row && (row.dataset.run || row.getAttribute("href"));
    for (const part of parts) {
      const [now, then] = [$(part), $(part, other)];
      if (now && then && now.outerHTML !== then.outerHTML) now.replaceWith(then);
      else if (now && !then && part === ".fail") now.remove();
      else if (!now && then && part === ".fail") $(".work").before(then);
    }
    at = key ? rows().findIndex((row) => (row.dataset.run || row.getAttribute("href")) === key) : -1;
    if (rows()[at]) rows()[at].classList.add("at");
  };
  const live = $("#live");
  if (isLive() && live) live.hidden = false;
  let turn = 0;
  const tick = async () => {
    turn += 1;
    if (!document.hidden) {
      try {
        if (lines && lines.dataset.open !== undefined) await follow();
        if (turn % 3 === 0 && isLive() && !isBusy()) await refresh();
        if (live) live.textContent = "Live";
      } catch (error) {
        if (live) live.textContent = "No connection";
      }
    }
    setTimeout(tick, 2000);
  };
  if (isLive() || (lines && lines.dataset.open !== undefined)) setTimeout(tick, 2000);
})();
