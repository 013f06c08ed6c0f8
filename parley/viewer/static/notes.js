// A tab of a run: its name, group and tags, and all notes on its units, each a link to what it is about.
import { get, post } from "./api.js";
import { announce, dateTime, fill, h, link, plural } from "./dom.js";
import { unitTitle } from "./title.js";
import { errorBox, loading } from "./widgets.js";

// The run's name, group and tags, stored next to the run file, never in it.
function aboutForm(run, about, saved) {
  const field = (label, value, hint) => h("input", { value, placeholder: hint, "aria-label": label, maxlength: 120 });
  const [name, group, tags] = [field("name", about.name, "name"), field("group", about.group, "group, such as an experiment"), field("tags", about.tags.join(", "), "tags, separated by commas")];
  const problem = h("div", {});
  const save = async (event) => {
    event.preventDefault();
    try { await post("about", { run }, { name: name.value, group: group.value, tags: tags.value.split(",") }); announce("saved"); saved(); }
    catch (error) { fill(problem, errorBox(error)); }
  };
  return h("form", { class: "row about-form", onsubmit: save }, h("label", {}, "Name ", name), h("label", {}, "Group ", group), h("label", {}, "Tags ", tags), h("button", {}, "Save"), problem);
}

export async function showNotes(box, run, saved) {
  const [form, list] = [h("div", {}), h("div", {}, loading())];
  fill(box, form, list);
  try {
    const [{ notes }, { about }] = await Promise.all([get("notes", { run }), get("run", { run })]);
    fill(form, aboutForm(run, about, saved));
    showList(list, run, notes);
  } catch (error) { fill(list, errorBox(error)); }
}

function showList(box, run, notes) {
  if (!notes.length) return fill(box, h("p", { class: "muted" }, "No notes yet. Open a unit and press ", h("kbd", {}, "n"), " to add a tag or a comment to it. Notes are stored next to the run file."));
  fill(box, h("div", { class: "row spread" }, h("p", { class: "count" }, plural(notes.length, "note")), h("a", { class: "button", href: "/api/notes?" + new URLSearchParams({ run, format: "csv" }), download: "" }, "Download CSV")),
    h("ul", { class: "notes" }, notes.map((note) => h("li", {}, note.tag ? h("span", { class: "pill tag" }, note.tag) : "", h("span", { dir: "auto" }, note.comment),
      h("div", { class: "muted" }, link("/unit", { run, unit: note.unit }, { anchor: note.seq === null ? "" : `m${note.seq}` }, h("bdi", {}, unitTitle(note.facets, note.unit)), note.seq === null ? "" : `, message ${note.seq}`), ` · ${[note.author, dateTime(note.at)].filter(Boolean).join(", ")}`)))));
}
