// The pages and how one turns to them.
import { embedded, fill, h, here, whenTurned } from "./dom.js";
import { comparePage, pairPage } from "./compare.js";
import { labelPage } from "./label.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { unitPage } from "./unit.js";
import { button, listenForKeys, showHelp } from "./widgets.js";

const PAGES = { "/": runsPage, "/run": runPage, "/unit": unitPage, "/compare": comparePage, "/pair": pairPage, "/label": labelPage };
const THEMES = ["auto", "light", "dark"];
let shown = { path: null, page: null };

function turnPage() {
  const { path, params } = here();
  if (shown.path === path && shown.page?.update?.(params)) return;
  shown.page?.stop();
  const make = embedded && !["/run", "/unit"].includes(path) ? runPage : PAGES[path] || runsPage;
  shown = { path, page: make(document.getElementById("main"), params) };
}

function theme(value) {
  document.documentElement.dataset.theme = value;
  try { localStorage.setItem("parley-theme", value); } catch { /* a private window forgets */ }
}

function startTools() {
  let chosen = "auto";
  try { chosen = localStorage.getItem("parley-theme") || "auto"; } catch { /* none is kept */ }
  theme(THEMES.includes(chosen) ? chosen : "auto");
  const label = () => `${document.documentElement.dataset.theme}`;
  const turn = button(label(), () => { theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]); turn.textContent = label(); }, { class: "plain", "aria-label": "colours: automatic, light or dark" });
  fill(document.getElementById("tools"), turn, h("button", { type: "button", class: "plain", onclick: showHelp, "aria-label": "keyboard help" }, "?"));
}

whenTurned(turnPage);
window.addEventListener("popstate", turnPage);
startTools();
listenForKeys();
turnPage();
