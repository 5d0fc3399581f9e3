// The page: tabs, theme, API key and presets.

import { KEEPS, readJson, useKey } from "./api.js";
import { openAddress, readyAskTab } from "./ask_tab.js";
import { readyBatchTab } from "./batch_tab.js";
import { readyHint } from "./cite_hint.js";
import { readyCompareTab } from "./compare_tab.js";
import { byId, showProblem } from "./dom.js";
import { readyFold, tellIndex } from "./first_screen.js";
import { readyDialogs } from "./passage_dialog.js";
import { readySavedTab } from "./saved_tab.js";
import { offerSystems, readySystems } from "./systems.js";

const THEME = "citeray-theme";
const every = [...document.querySelectorAll("[role=tab]")];
const shownTabs = () => every.filter((tab) => !tab.hidden);

function select(tab) {
  for (const other of every) {
    const is = other === tab;
    other.setAttribute("aria-selected", String(is));
    other.tabIndex = is ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !is;
  }
}

/** Copy the question from one tab to the other. */
function bring(tab) {
  if (tab.id === "tab-compare" && !byId("compare-question").value) byId("compare-question").value = byId("question").value;
}

function readyTabs() {
  for (const tab of every) {
    tab.addEventListener("click", () => {
      select(tab);
      bring(tab);
    });
    tab.addEventListener("keydown", ({ key }) => {
      const tabs = shownTabs();
      const at = tabs.indexOf(tab);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[key];
      if (to === undefined) return;
      const next = tabs.at(to % tabs.length);
      next.click();
      next.focus();
    });
  }
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    every[0].click();
    byId("question").focus();
  });
}

function readyTheme() {
  const paint = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").textContent = dark ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", `${dark ? "Light" : "Dark"} theme`);
  };
  const kept = localStorage.getItem(THEME);
  paint(kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme !== "dark";
    localStorage.setItem(THEME, dark ? "dark" : "light");
    paint(dark);
  });
}

async function readPresets() {
  try {
    await offerSystems();
  } catch (error) {
    if (error.status !== 401) showProblem(byId("problem"), error.message);
  }
}

function readyStrategy() {
  byId("tab-strategy").addEventListener("click", async () => (await import("./strategy_tab.js")).openStrategyTab(), { once: true });
}

/** Show the tab "Feedback" to reviewers, if the server stores feedback. */
async function offerReview() {
  if (!KEEPS) return;
  try {
    byId("tab-feedback").hidden = !(await readJson("/v1/feedback?limit=1")).may_review;
  } catch { /* A missing API key is asked for, and then this is called again. */ }
}

function readyReview() {
  // Few readers are reviewers: the tab's code is fetched when it is opened for the first time.
  byId("tab-feedback").addEventListener("click", async () => (await import("./feedback_tab.js")).openFeedbackTab(), { once: true });
  offerReview();
}

function readyKey() {
  addEventListener("key-needed", () => { byId("key-form").hidden = false; });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value);
    byId("key").value = "";
    byId("key-form").hidden = true;
    showProblem(byId("problem"), "");
    readPresets();
    offerReview();
    openAddress();
  });
}

readyTheme();
readyTabs();
readyDialogs();
readyHint();
readyKey();
readySystems();
readyAskTab();
readyFold();
readyCompareTab();
readyBatchTab();
readySavedTab();
readyStrategy();
readyReview();
tellIndex();
readPresets();
openAddress();
