// Ctrl-K: go to any page, run or unit by typing a part of its name, or do what the page can do.
import { get } from "./api.js";
import { currentPage, embedded, fill, go, h } from "./dom.js";
import { unitTitle } from "./facets.js";
import { unitsOf } from "./units.js";
import { pageActions } from "./widgets.js";

const SHOWN = 12;

export function listenForSwitcher(actions) {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); openSwitcher(actions); }
  });
}

function pagesOf(run) {
  const here = run ? [["Findings", "/run", { run, tab: "findings" }], ["Units", "/run", { run, tab: "units" }], ["Config", "/run", { run, tab: "config" }], ["Grid", "/run", { run, tab: "grid" }], ["Notes", "/run", { run, tab: "notes" }], ["Compare", "/compare", { run }]] : [];
  const pages = embedded ? here.slice(0, 3) : [["Runs", "/", {}], ...here];
  return pages.map(([name, path, params]) => ({ kind: "page", name, detail: params.run || "", path, params }));
}

// `actions` are those of all pages.
export async function openSwitcher(actions = []) {
  if (document.querySelector("dialog.switcher[open]")) return;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const run = currentPage().params.get("run") || (embedded ? embedded.name : "");
  const state = { items: pagesOf(run), actions: [...actions, ...pageActions()], units: [], shown: [], at: 0, loading: !embedded, entered: false };
  const input = h("input", { type: "search", placeholder: "Go to a page, run or unit, or run a command…", "aria-label": "Go to a page, run or unit", role: "combobox", "aria-expanded": "true", "aria-controls": "switcher-list", autocomplete: "off", oninput: () => find() });
  const list = h("ul", { id: "switcher-list", role: "listbox", "aria-label": "Pages, runs and units" });
  const dialog = h("dialog", { class: "switcher", "aria-label": "Go to" }, input, list);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const open = (item) => { dialog.close(); item.run ? item.run() : go(item.path, item.params); };

  function draw() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ name, detail }) => words.every((word) => `${name} ${detail}`.toLowerCase().includes(word));
    state.shown = [...state.items.filter(matches), ...(words.length ? state.actions.filter(matches) : []), ...state.units].slice(0, SHOWN);
    state.at = Math.max(0, Math.min(state.at, state.shown.length - 1));
    fill(list, ...state.shown.map((item, index) => h("li", { id: `switch-${index}`, role: "option", "aria-selected": index === state.at ? "true" : "false", onclick: () => open(item) },
      h("span", { class: "pill" }, item.kind), h("bdi", {}, item.name), h("span", { class: "muted" }, item.detail))));
    if (!state.shown.length) fill(list, h("li", { class: "muted", role: "presentation" }, state.loading ? "loading…" : "Nothing matches."));
    input.setAttribute("aria-activedescendant", `switch-${state.at}`);
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  async function find() {
    state.at = 0;
    state.entered = false;
    const text = input.value.trim();
    if (!text) state.units = [];
    draw();
    if (!run || !text) return;
    try {
      const units = (await unitsOf(run)).find(text, SHOWN);
      if (input.value.trim() !== text) return;
      state.units = units.map(({ id, facets }) => ({ kind: "unit", name: unitTitle(facets, id), detail: id, path: "/unit", params: { run, unit: id } }));
      draw();
    } catch { /* the run cannot be read: pages and runs are still offered */ }
  }

  // If someone types faster than the runs are read, the jump happens once they are.
  function enter() {
    if (state.shown[state.at]) open(state.shown[state.at]);
    else state.entered = state.loading;
  }

  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); state.at = (state.at + step + state.shown.length) % (state.shown.length || 1); draw(); }
    if (event.key === "Enter") { event.preventDefault(); enter(); }
    if (event.key === "Escape") { event.preventDefault(); dialog.close(); }
  });
  document.body.append(dialog);
  dialog.showModal();
  draw();
  if (embedded) return;
  try {
    const { runs } = await get("runs");
    state.items.push(...runs.map((name) => ({ kind: "run", name, detail: "", path: "/run", params: { run: name } })));
  } catch { /* pages are still offered */ }
  state.loading = false;
  draw();
  if (state.entered && dialog.open) enter();
}
