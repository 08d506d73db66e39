"use strict";
// Uses the page as a person does, and writes what it found into the document for the test to read.
addEventListener("load", () => {
  const wrong = [];
  let checks = 0;
  const check = (words, truth) => { checks += 1; if (!truth) wrong.push(words); };
  const $ = (id) => document.getElementById(id);
  const shown = () => [...document.querySelectorAll(".finding")].filter((f) => f.checkVisibility());
  const press = (key, target = document.activeElement ?? document.body) =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const type = (text) => {
    $("text").value = text;
    $("text").dispatchEvent(new Event("input", { bubbles: true }));
  };
  const severity = (name) => document.querySelector(`.severities [data-severity="${name}"]`);

  check("all four findings are shown", shown().length === 4);
  check("the number is told", $("shown").textContent === "4 findings");
  check("nothing was fetched", performance.getEntriesByType("resource").length === 0);

  severity("crash").click();
  check("a severity can be left out", shown().length === 3 && severity("crash").getAttribute("aria-pressed") === "false");
  check("its cluster is gone too", document.querySelectorAll(".cluster:not([hidden])").length === 3);
  check("how many of how many", $("shown").textContent === "3 of 4 findings");
  severity("crash").click();
  check("and taken back in", shown().length === 4);

  type("VLAN_vid 4096");
  check("text filters, whatever its case", shown().length === 1 && shown()[0].dataset.severity === "lost error");
  type("no such words");
  check("nothing matches", shown().length === 0 && !$("empty").hidden);
  $("reset").click();
  check("reset shows all", shown().length === 4 && $("empty").hidden && $("text").value === "");

  $("confirmation").value = "confirmed";
  $("confirmation").dispatchEvent(new Event("input", { bubbles: true }));
  check("confirmation filters", shown().length === 1 && shown()[0].dataset.confirmation === "confirmed");
  press("Escape", document.body);
  check("Escape clears all filters", shown().length === 4);

  press("j", document.body);
  const first = document.querySelector(".finding.here");
  check("j goes to the first finding", first === shown()[0]);
  check("and it has the focus", document.activeElement === first.querySelector("summary"));
  press("j");
  check("j goes on", document.querySelector(".finding.here") === shown()[1]);
  press("k");
  check("k goes back", document.querySelector(".finding.here") === shown()[0]);
  document.activeElement.click();
  check("it opens", first.open);
  press("o");
  check("o opens all", shown().every((f) => f.open));
  press("o");
  check("o closes all", shown().every((f) => !f.open));
  press("/");
  check("/ goes to the search", document.activeElement === $("text"));
  press("j");
  check("keys are letters there", document.activeElement === $("text"));
  press("Escape");
  check("Escape leaves the search", document.activeElement !== $("text"));
  press("?", document.body);
  check("? shows the keys", $("help").open);
  $("help").querySelector("button").click();

  const before = getComputedStyle(document.body).backgroundColor;
  press("t", document.body);
  check("t changes the theme", getComputedStyle(document.body).backgroundColor !== before);
  $("theme").click();
  check("the button changes it back", getComputedStyle(document.body).backgroundColor === before);

  severity("content").click();
  const last = document.querySelector('.finding[data-severity="content"]');
  location.hash = `#${last.id}`;
  setTimeout(() => {
    check("a link opens its finding, filtered or not", last.open && last.checkVisibility());
    check("marks it", last.classList.contains("here"));
    check("the help was closed", !$("help").open);
    document.querySelector(".copy").click();
    dispatchEvent(new Event("beforeprint"));
    check("on paper all are open", shown().every((f) => f.open));
    dispatchEvent(new Event("afterprint"));
    check("and closed again", shown().filter((f) => f.open).length === 1);
    const cell = document.querySelector(".cell");
    cell.click();
    check("a cell of the matrix leaves its findings", shown().length === 4);
    const names = [...document.querySelectorAll("button, input, select")];
    check("every control has a name", names.every((e) => e.textContent.trim() || e.getAttribute("aria-label")));
    document.documentElement.dataset.exercise = wrong.length ? `wrong: ${wrong.join("; ")}` : `${checks} checks`;
  }, 50);
});
