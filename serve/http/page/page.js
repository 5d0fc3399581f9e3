// The page: tabs, theme, key, and the systems there are.

import { listSystems, useKey } from "./api.js";
import { readyAskTab } from "./ask_tab.js";
import { readyBatchTab } from "./batch_tab.js";
import { offerSystems, readyCompareTab } from "./compare_tab.js";
import { byId, make, showProblem } from "./dom.js";
import { readyDialog } from "./passage_dialog.js";

const THEME = "citeray-theme";
const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab) {
  for (const other of tabs) {
    const is = other === tab;
    other.setAttribute("aria-selected", String(is));
    other.tabIndex = is ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !is;
  }
}

function readyTabs() {
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[key];
      if (to === undefined) return;
      const next = tabs.at(to % tabs.length);
      select(next);
      next.focus();
    });
  }
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || byId("passage").open) return;
    event.preventDefault();
    select(tabs[0]);
    byId("question").focus();
  });
}

function readyTheme() {
  const paint = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").setAttribute("aria-pressed", String(dark));
  };
  const kept = localStorage.getItem(THEME);
  paint(kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme !== "dark";
    localStorage.setItem(THEME, dark ? "dark" : "light");
    paint(dark);
  });
}

async function readySystems() {
  let systems;
  try {
    systems = await listSystems();
  } catch (error) {
    if (error.status !== 401) showProblem(byId("problem"), error.message);
    return;
  }
  const described = Object.fromEntries(systems.map(({ id, description }) => [id, description]));
  for (const id of ["system", "batch-system"]) {
    byId(id).replaceChildren(make("option", { value: "", textContent: "default" }),
      ...systems.map((system) => make("option", { value: system.id, textContent: system.id })));
  }
  byId("system").addEventListener("change", ({ target }) => { byId("about-system").textContent = described[target.value] ?? ""; });
  offerSystems(systems);
}

function readyKey() {
  addEventListener("key-needed", () => { byId("key-form").hidden = false; });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value);
    byId("key").value = "";
    byId("key-form").hidden = true;
    showProblem(byId("problem"), "");
    readySystems();
  });
}

readyTheme();
readyTabs();
readyDialog();
readyKey();
readyAskTab();
readyCompareTab();
readyBatchTab();
readySystems();
