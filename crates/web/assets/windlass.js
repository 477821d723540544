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
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=checkbox]),select,textarea,[contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const actions = {
      "/": () => ($("#log-find") || $("#find")).focus(), j: () => move(1), k: () => move(-1), x: select,
      e: () => { const first = $("#first-error"); if (first) first.click(); }, u: toggleZone, "?": help,
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  showSelection();
})();
