// Preset menus: titles in groups, with unavailable presets disabled.

import { listSystems } from "./api.js";
import { byId, make } from "./dom.js";

const GROUPS = {
  ours: "Recommended", ranking: "Ranking only", papers: "From the papers", own: "This server's own",
};

let offered = { recommended: "", systems: [] };

export const titleOf = (name) => offered.systems.find((system) => system.name === name)?.title ?? name;

function optionOf(system) {
  const is = system.name === offered.recommended;
  const words = system.available ? system.title : `${system.title}: ${system.reason}`;
  return make("option", {
    value: system.name, textContent: is ? `${words} (recommended)` : words, disabled: !system.available,
    selected: is, title: system.about,
  });
}

function groups(each, listed = offered.systems) {
  return Object.entries(GROUPS).map(([group, label]) => [label, listed.filter((s) => s.group === group)])
    .filter(([, systems]) => systems.length).map(([label, systems]) => each(label, systems));
}

/** Return `name`, or the name of the recommended preset if it is empty. */
export const choice = (name) => name || offered.recommended;

/** Select a preset, even if the menu does not list it (any more). */
export function choose(name) {
  const select = byId("system");
  const value = choice(name);
  if (value && ![...select.options].some((option) => option.value === value)) {
    select.append(make("option", { value, textContent: value }));
  }
  select.value = value;
  tellAbout();
}

function tellAbout() {
  const name = byId("system").value;
  const system = offered.systems.find((one) => one.name === name);
  const parts = [system?.about, system?.needs.includes("pubmed") ? "It also asks PubMed over the internet." : ""];
  byId("about-system").textContent = name === offered.recommended ? "" : parts.filter(Boolean).join(" ");
}

const boxOf = ({ name, title, about }) => make("label", { title: about }, make("input", { type: "checkbox", value: name }),
  ` ${title}`, make("span", { className: "hint", textContent: ` ${name}` }));

/** Return a folded list of the presets that cannot run here, or "" if all can. */
function unavailable() {
  const others = offered.systems.filter(({ available }) => !available);
  if (!others.length) return "";
  return make("details", { className: "note" }, make("summary", { textContent: `${others.length} more ${others.length === 1 ? "needs" : "need"} a language model` }),
    make("p", { textContent: "Start the server with --llm and the address of a language model to use them." }),
    make("ul", {}, ...others.map(({ title, about }) => make("li", { textContent: title, title: about }))));
}

/** Fetch the presets and list them on every tab; throws ApiError. */
export async function offerSystems() {
  offered = await listSystems();
  // The URL may have selected a preset while the list was being fetched.
  const before = byId("system").value;
  for (const id of ["system", "batch-system"]) {
    byId(id).replaceChildren(...groups((label, systems) => make("optgroup", { label }, ...systems.map(optionOf))));
  }
  byId("compare-systems").replaceChildren(...groups((label, systems) => make("fieldset", {},
    make("legend", { className: "hint", textContent: label }), make("div", { className: "checks" }, ...systems.map(boxOf))),
  offered.systems.filter(({ available }) => available)), unavailable());
  for (const name of [offered.recommended, "hybrid"]) {
    const box = [...byId("compare-systems").querySelectorAll("input")].find((one) => one.value === name);
    if (box) box.checked = true;
  }
  choose(before);
}

export function readySystems() {
  byId("system").addEventListener("change", tellAbout);
}
