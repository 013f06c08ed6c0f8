// A tab of a run: all notes on its units, each a link to what it is about.
import { get } from "./api.js";
import { dateTime, fill, h, link, plural } from "./dom.js";
import { unitTitle } from "./facets.js";
import { unitsOf } from "./units.js";
import { errorBox, loading } from "./widgets.js";

export async function showNotes(box, run) {
  fill(box, loading());
  try { const [{ notes }, table] = await Promise.all([get("notes", { run }), unitsOf(run)]); showList(box, run, notes, table); } catch (error) { fill(box, errorBox(error)); }
}

function showList(box, run, notes, table) {
  const title = (unit) => (table.places.has(unit) ? unitTitle(table.facetsAt(table.places.get(unit)), unit) : unit);
  if (!notes.length) return fill(box, h("p", { class: "muted" }, "No notes yet. Open a unit and press ", h("kbd", {}, "n"), " to add a tag or a comment to it. Notes are stored next to the run file."));
  fill(box, h("div", { class: "row spread" }, h("p", { class: "count" }, plural(notes.length, "note")), h("a", { class: "button", href: "/api/notes?" + new URLSearchParams({ run, format: "csv" }), download: "" }, "Download CSV")),
    h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note.tag ? h("span", { class: "pill tag" }, note.tag) : "", h("span", { dir: "auto" }, note.comment),
      h("div", { class: "muted" }, link("/unit", { run, unit: note.unit }, { anchor: note.seq === null ? "" : `m${note.seq}` }, h("bdi", {}, title(note.unit)), note.seq === null ? "" : `, message ${note.seq}`), ` · ${[note.author, dateTime(note.at)].filter(Boolean).join(", ")}`)))));
}
