// A tab of a run: all notes on its units, each a link to what it is about.
import { get } from "./api.js";
import { dateTime, fill, h, link, plural, unique } from "./dom.js";
import { unitTitle } from "./facets.js";
import { unitsOf } from "./units.js";
import { errorBox, loading } from "./widgets.js";

export async function showNotes(box, run) {
  fill(box, loading());
  try { const [{ notes }, table] = await Promise.all([get("notes", { run }), unitsOf(run)]); showList(box, run, notes, table); } catch (error) { fill(box, errorBox(error)); }
}

function showList(box, run, notes, table) {
  const title = (unit) => (table.places.has(unit) ? unitTitle(table.facetsAt(table.places.get(unit)), unit) : unit);
  if (!notes.length) return fill(box, h("p", {}, "No notes yet. ", link("/run", { run, tab: "units" }, {}, "Open a unit"), " and press ", h("kbd", {}, "n"), ", or ", h("em", {}, "note"), " on one of its messages, to add a tag or a comment. Tags become filters of the units. Notes are stored next to the run file, which stays as it is."));
  const tags = unique(notes.map(({ tag }) => tag).filter(Boolean)).sort();
  fill(box, h("div", { class: "row spread" }, h("p", { class: "count" }, plural(notes.length, "note")), h("a", { class: "button", href: "/api/notes?" + new URLSearchParams({ run, format: "csv" }), download: "" }, "Download CSV")),
    tags.length ? h("p", { class: "row" }, "Units tagged ", tags.map((tag) => link("/run", { run, tab: "units", "d.tag": tag }, { class: "button small" }, h("bdi", {}, tag), ` (${unique(notes.filter((note) => note.tag === tag).map(({ unit }) => unit)).length})`))) : "",
    h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note.tag ? h("span", { class: "pill tag" }, note.tag) : "", h("span", { dir: "auto" }, note.comment),
      h("div", { class: "muted" }, link("/unit", { run, unit: note.unit }, { anchor: note.seq === null ? "" : `m${note.seq}` }, h("bdi", {}, title(note.unit)), note.seq === null ? "" : `, message ${note.seq}`), ` · ${[note.author, dateTime(note.at)].filter(Boolean).join(", ")}`)))));
}
