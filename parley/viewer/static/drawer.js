// A drawer next to the list of units shows the transcript of one, without leaving the list.
import { fill, h, link, unique } from "./dom.js";
import { echoInWords, findEchoes } from "./echo.js";
import { materialView } from "./material.js";
import { parsedAside, roundName, saidView, speakerColour, speakerName } from "./message.js";
import { scoreMatrix } from "./scores.js";
import { unitTitle } from "./facets.js";
import { readUnit } from "./units.js";
import { verdictLine } from "./verdict.js";
import { button, errorBox, loading, showHelp, speakerIndex } from "./widgets.js";

// Opens the drawer for a row or cell of the list, `[data-unit]`. `j` and `k` show the next and the previous one.
// `measure` is what the study's units are compared by.
export function openDrawer(list, row, run, params, measure) {
  const rows = [...list.querySelectorAll("[data-unit]")];
  let place = rows.indexOf(row);
  if (place < 0) return;
  const content = h("div", { class: "drawer-body", tabindex: "0", role: "region", "aria-label": "Transcript" });
  const heading = h("h2", { id: "drawer-title" });
  const [full, verdict] = [h("span", {}), h("p", { class: "verdict" })];
  const close = () => dialog.close();
  const move = (step) => { const next = Math.max(0, Math.min(rows.length - 1, place + step)); if (next !== place) { place = next; show(); } };
  const dialog = h("dialog", { class: "drawer", "aria-labelledby": "drawer-title", onclick: (event) => { if (event.target === dialog) close(); }, onkeydown: (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: 1, k: -1, "]": 1, "[": -1 }[event.key];
    if (step) { event.preventDefault(); move(step); }
    if (event.key === "?") { event.preventDefault(); showHelp({ j: { what: "next unit" }, k: { what: "previous unit" }, Escape: { what: "close" } }); }
  } },
  h("header", {}, h("div", {}, heading, verdict), h("div", { class: "row actions" }, full, button("↑", () => move(-1), { "aria-label": "previous unit", title: "shortcut: k" }), button("↓", () => move(1), { "aria-label": "next unit", title: "shortcut: j" }), button("Close", close))), content);
  dialog.addEventListener("close", () => { dialog.remove(); rows[place].classList.remove("in-drawer"); (rows[place].querySelector("a") || rows[place]).focus(); });

  async function show() {
    const [shown, id] = [place, rows[place].dataset.unit];
    for (const other of rows) other.classList.toggle("in-drawer", other === rows[place]);
    const query = new URLSearchParams(params);
    query.set("run", run);
    query.set("unit", id);
    fill(content, loading());
    fill(full, link("/unit", query, { class: "button", before: close }, "Open the unit"));
    try {
      const unit = await readUnit(run, id, params);
      if (shown !== place) return;
      heading.textContent = unitTitle(unit.facets, unit.id);
      verdict.textContent = verdictLine(unit, measure);
      fill(content, transcript(unit, params.get("q")));
      content.scrollTop = 0;
    } catch (error) { fill(content, errorBox(error)); }
  }
  document.body.append(dialog);
  dialog.showModal();
  content.focus();
  show();
}

function transcript(unit, query) {
  const index = speakerIndex(unique(unit.messages.filter(({ role }) => role !== "narrator").map(({ speaker }) => speaker)));
  const [echoes, material] = [findEchoes(unit), materialView(unit)];
  return [
    scoreMatrix(unit, index, (side) => unit.facets[`identity_${side.toLowerCase()}`]),
    material ? h("details", { class: "compare", open: !unit.fields.response_a }, h("summary", {}, unit.fields.response_a ? "The situation and the two answers" : "What it is about"), material) : "",
    unit.error ? h("p", { class: "error" }, unit.error) : "",
    unit.messages.length ? "" : h("p", { class: "muted" }, `${unit.status}: nothing has been said yet`),
    unit.messages.filter(({ role }, n) => role !== "narrator" || (n === 0 && !Object.keys(unit.fields).length)).map((message) => h("article", { class: "message", vars: speakerColour(message, index(message.speaker)) },
      h("header", {}, speakerName(message, index(message.speaker)), h("span", { class: "muted" }, roundName(message)), echoes.has(message.seq) ? echoInWords(echoes.get(message.seq)).map((words) => h("span", { class: "pill echo" }, words)) : "",
        message.parse_status && message.parse_status !== "ok" ? h("span", { class: "pill warn" }, message.parse_status) : ""),
      saidView(message, query, echoes.get(message.seq)), parsedAside(message))),
  ];
}

// Makes the rows of a list open the drawer: a click outside the link, or the key `v` on the row that has the focus.
export function drawerRows(list, run, params, measure) {
  const open = (row) => openDrawer(list, row, run, params(), measure());
  list.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-unit]");
    if (row && !event.target.closest("a, button, input") && !getSelection().toString()) open(row);
  });
  return { what: "read the unit next to the list", run: () => { const row = document.activeElement.closest?.("tr[data-unit]") || list.querySelector("tr[data-unit]"); if (row) open(row); } };
}
