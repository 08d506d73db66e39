"use strict";
// Filters, links, keyboard and theme. The page is complete without any of it.
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const findings = all(".finding");
  const selects = ["scenario", "agents", "confirmation", "change"].map($).filter(Boolean);
  const severities = all(".severities button");
  const words = new Map();

  // ------------------------------------------------------------------ filters

  const textOf = (finding) => {
    if (!words.has(finding)) {
      const head = finding.closest(".cluster").querySelector(".cluster-head").textContent;
      words.set(finding, `${head} ${finding.id} ${finding.textContent}`.toLowerCase());
    }
    return words.get(finding);
  };

  // An agent's number, or the two of a pair: a finding must involve all of them.
  const involves = (finding, wanted) => {
    const agents = finding.dataset.agents.split(" ");
    return wanted.split(" ").every((agent) => agents.includes(agent));
  };

  const matches = (finding, wanted) => {
    for (const [key, value] of Object.entries(wanted.choices)) {
      if (key === "agents" ? !involves(finding, value) : finding.dataset[key] !== value) return false;
    }
    if (wanted.hidden.has(finding.dataset.severity)) return false;
    return wanted.words.every((word) => textOf(finding).includes(word));
  };

  const wanted = () => ({
    choices: Object.fromEntries(selects.filter((s) => s.value).map((s) => [s.id, s.value])),
    hidden: new Set(severities.filter((b) => b.getAttribute("aria-pressed") === "false").map((b) => b.dataset.severity)),
    words: ($("text")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean),
  });

  const filter = () => {
    const now = wanted();
    let shown = 0;
    for (const finding of findings) {
      finding.hidden = !matches(finding, now);
      shown += !finding.hidden;
    }
    for (const cluster of all(".cluster")) cluster.hidden = !cluster.querySelector(".finding:not([hidden])");
    for (const more of all(".more")) {
      more.hidden = !more.querySelector(".finding:not([hidden])");
      // What is left must be in sight if it is all there is.
      if (!more.parentElement.querySelector(":scope > .finding:not([hidden])")) more.open = true;
    }
    if ($("shown")) {
      const number = `${findings.length} finding${findings.length === 1 ? "" : "s"}`;
      $("shown").textContent = shown === findings.length ? number : `${shown} of ${number}`;
    }
    if ($("empty")) $("empty").hidden = shown > 0 || findings.length === 0;
    for (const cell of all(".cell")) cell.setAttribute("aria-pressed", String(isChosen(cell, now.choices)));
  };

  const isChosen = (cell, choices) => {
    const some = choices.scenario || choices.agents;
    const scenario = !choices.scenario || choices.scenario === cell.dataset.scenario;
    return Boolean(some) && scenario && (!choices.agents || choices.agents === cell.dataset.agents);
  };

  const reset = () => {
    for (const select of selects) select.value = "";
    for (const button of severities) button.setAttribute("aria-pressed", "true");
    if ($("text")) $("text").value = "";
    filter();
  };

  const choose = (id, value) => {
    const select = $(id);
    if (select) select.value = [...select.options].some((option) => option.value === value) ? value : "";
  };

  // ------------------------------------------------------------------ links

  const show = (target, focus) => {
    if (target.matches(".finding")) {
      if (target.hidden) reset();
      target.open = true;
      mark(target, focus);
    }
    target.scrollIntoView({ block: "start", behavior: "instant" });
  };

  const follow = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && ($(name) ?? $(`finding-${name}`) ?? $(`cluster-${name}`));
    if (target && target.matches(".finding, .cluster")) show(target, true);
  };

  const mark = (finding, focus = true) => {
    for (const other of all(".finding.here")) other.classList.remove("here");
    finding.classList.add("here");
    const more = finding.closest(".more");
    if (more) more.open = true;
    if (focus) finding.querySelector("summary").focus({ preventScroll: true });
  };

  // ------------------------------------------------------------------ keyboard

  const visible = () => findings.filter((finding) => !finding.hidden);

  const step = (by) => {
    const list = visible();
    if (!list.length) return;
    const at = list.findIndex((finding) => finding.classList.contains("here"));
    const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1);
    mark(list[next]);
    list[next].scrollIntoView({ block: "nearest" });
  };

  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember(root.dataset.theme);
  };

  // A page from a file may have no storage: then the choice lasts as long as the page.
  const remember = (value) => {
    try { localStorage.setItem("soft-theme", value); } catch { /* not kept */ }
  };
  const remembered = () => {
    try { return localStorage.getItem("soft-theme"); } catch { return null; }
  };

  const openAll = () => {
    const list = visible();
    const open = !list.every((finding) => finding.open);
    for (const finding of list) finding.open = open;
  };

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    o: openAll,
    t: theme,
    "/": () => { $("text")?.focus(); $("text")?.select(); },
    "?": () => $("help").showModal(),
    Escape: reset,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const typing = event.target.matches("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && event.target === $("text")) {
        event.preventDefault();
        event.target.blur();
        step(1);
      }
      return;
    }
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  // ------------------------------------------------------------------ wiring

  const filters = $("filters");
  if (filters) {
    filters.addEventListener("input", filter);
    filters.addEventListener("submit", (event) => event.preventDefault());
  }
  for (const button of severities) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") === "false"));
      filter();
    });
  }
  for (const cell of all(".cell")) {
    cell.addEventListener("click", () => {
      const chosen = cell.getAttribute("aria-pressed") === "true";
      choose("scenario", chosen ? "" : cell.dataset.scenario);
      choose("agents", chosen ? "" : cell.dataset.agents);
      filter();
      if (!chosen) $("findings").scrollIntoView({ block: "start" });
    });
  }
  for (const finding of findings) {
    finding.addEventListener("focusin", () => mark(finding, false));
  }
  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      } catch { /* It is selected: the person copies. */ }
    });
  }
  $("theme").addEventListener("click", theme);
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("reset")?.addEventListener("click", reset);
  addEventListener("hashchange", follow);

  // On paper everything that is shown is open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...visible(), ...all(".more")].filter((details) => !details.open);
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });

  const kept = remembered();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  if (selects.length || severities.length) filter();
  if (location.hash.length > 1) follow();
})();
