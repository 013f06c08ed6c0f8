// Shows the page that the address names, the colour theme and the keyboard help.
import { currentPage, embedded, fill, h, onNavigate, remember, remembered } from "./dom.js";
import { comparePage } from "./compare.js";
import { pairPage } from "./pair.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { listenForSwitcher, openSwitcher } from "./switcher.js";
import { unitPage } from "./unit.js";
import { button, listenForKeys, showHelp } from "./widgets.js";

const PAGES = { "/": runsPage, "/run": runPage, "/unit": unitPage, "/compare": comparePage, "/pair": pairPage };
const THEMES = ["auto", "light", "dark"];
let shown = { path: null, page: null };

function showPage() {
  const { path, params } = currentPage();
  if (shown.path === path && shown.page?.update?.(params)) return;
  shown.page?.stop();
  const make = embedded && !["/run", "/unit", "/pair"].includes(path) ? runPage : PAGES[path] || runsPage;
  shown = { path, page: make(document.getElementById("main"), params) };
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  remember("theme", theme);
}

function showTools() {
  setTheme(THEMES.find((theme) => theme === remembered("theme")) || "auto");
  const label = () => `theme: ${document.documentElement.dataset.theme}`;
  const nextTheme = () => THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  const change = () => { setTheme(nextTheme()); toggle.textContent = label(); };
  const toggle = button(label(), change, { class: "plain" });
  const actions = [{ kind: "action", name: "Change the theme", detail: "", run: change }, { kind: "action", name: "Keyboard shortcuts", detail: "?", run: () => showHelp() }];
  fill(document.getElementById("tools"), button("Go to… ⌃K", () => openSwitcher(actions), { class: "plain", "aria-keyshortcuts": "Control+K", title: "go to a page, run or unit" }), toggle, h("button", { type: "button", class: "plain", onclick: () => showHelp(), "aria-label": "keyboard shortcuts", title: "keyboard shortcuts" }, "?"));
  listenForSwitcher(actions);
}

onNavigate(showPage);
window.addEventListener("popstate", showPage);
showTools();
listenForKeys();
showPage();
