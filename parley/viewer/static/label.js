// Blind labelling: the sets with their agreement, and one item after another with the rubric beside it.
import { get, post } from "./api.js";
import { announce, dateTime, fill, go, h, link, number, plural, signed } from "./dom.js";
import { savedName } from "./message.js";
import { breadcrumbs, button, errorBox, loading, setTitle, shortcuts } from "./widgets.js";

const FIELD_TITLES = { scenario: "Situation", response: "Response", response_a: "Response A", response_b: "Response B", task: "Task", text: "Text" };

export function labelPage(main, params) {
  const [run, set, rater] = [params.get("run"), params.get("set"), params.get("rater")];
  setTitle("Labelling");
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "label");
  const page = h("div", { class: "page" }, loading());
  fill(main, page);
  const show = set && rater ? showItem : showSets;
  show().catch((error) => fill(page, errorBox(error)));
  return { stop: () => {} };

  async function showSets() {
    shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
    const [{ sets }, { tags }] = await Promise.all([get("label/sets", { run }), get("notes", { run })]);
    const name = h("input", { value: savedName(), maxlength: 80 });
    const count = h("input", { type: "number", min: 1, max: 1000, value: 50, class: "narrow" });
    const begin = (id) => { if (!name.value.trim()) { name.focus(); return announce("enter your name first"); } go("/label", { run, set: id, rater: name.value.trim() }); };
    const draw = async () => { try { await post("label/sets", { run }, { count: Number(count.value) }); await showSets(); } catch (error) { page.append(errorBox(error)); } };
    fill(page, h("h1", {}, "Blind labelling"),
      h("p", {}, "Raters see the texts and the rubric. Identities are blacked out; models and verdicts are not shown. All raters get the same items, each in a different order."),
      h("div", { class: "row" }, h("label", {}, "your name ", name)),
      sets.map(({ id, items, at, seed, agreement }) => h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, `Set ${id}: ${plural(items, "item")}`), button("Label", () => begin(id))), h("p", { class: "muted" }, `drawn ${dateTime(at)}, seed ${seed}`), agreementTables(agreement))),
      tags.length ? h("section", { class: "card" }, h("h2", {}, "Tags and the panel's verdicts"), tagTable(tags)) : "",
      h("section", { class: "card" }, h("h2", {}, "New set"), h("div", { class: "row" }, h("label", {}, "number of items ", count), button("Draw", draw))));
  }

  function simpleTable(heads, rows) {
    return h("table", { class: "table" }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, first)), rest.map((value) => h("td", {}, value))))));
  }

  function tagTable(tags) {
    const choices = (row) => Object.entries(row.choices).map(([choice, count]) => `${choice} ${count}`).join(", ") || "–";
    return simpleTable(["tag", "units", "panel's mean score", "panel's verdicts", "flipped"],
      tags.map((row) => [row.tag, String(row.units), number(row.score), choices(row), String(row.flipped)]));
  }

  function agreementTables({ unavailable, raters, between_raters, with_panel }) {
    if (unavailable) return h("p", { class: "muted" }, unavailable);
    if (!raters.length) return h("p", { class: "muted" }, "no labels yet");
    const interval = (row) => (row.low === null || row.low === undefined ? "–" : `${number(row.low)} to ${number(row.high)}`);
    return [h("h3", {}, `Agreement between raters (${raters.length})`),
      simpleTable(["metric", "Fleiss' κ", "95% CI", "ratings", ""],
        between_raters.map((row) => [[row.metric, row.subject].filter(Boolean).join(" "), number(row.kappa), interval(row), String(row.n), h("span", { class: "muted" }, row.note)])),
      h("h3", {}, "Agreement with the panel"),
      simpleTable(["rater", "items", "same verdict", "Cohen's κ", "mean score − panel's"],
        with_panel.map((row) => [row.rater, String(row.items), row.compared ? `${row.same_choice} of ${row.compared}` : "–", number(row.kappa), signed(row.mean_difference)]))];
  }

  async function showItem() {
    const item = await get("label", { run, set, rater });
    shortcuts({ u: { what: "back to the sets", run: () => go("/label", { run }) } });
    if (item.item === undefined) return fill(page, h("h1", {}, "Done"), h("p", {}, `You have labelled ${item.total === 1 ? "the item" : `all ${item.total} items`}. Thank you.`), link("/label", { run }, { class: "button" }, "Show agreement"));
    const subjects = item.pair ? ["A", "B"] : [""];
    const scores = new Map();
    const [from, to] = item.scale;
    const radio = (id, name, text, onchange) => h("label", { for: id }, h("input", { type: "radio", id, name, onchange }), h("span", {}, text));
    const scale = (metric, subject) => h("div", { class: "marks", role: "radiogroup", "aria-label": `${metric} ${subject}` }, subject ? h("b", {}, subject) : "",
      Array.from({ length: to - from + 1 }, (_, n) => radio(`${metric}-${subject}-${from + n}`, `${metric}-${subject}`, String(from + n), () => scores.set(`${subject}\u0000${metric}`, [subject, metric, from + n]))));
    const rubric = item.rubric.map(({ name, questions }) => h("fieldset", {}, h("legend", {}, name), h("ul", {}, questions.map((question) => h("li", {}, question))), subjects.map((subject) => scale(name, subject))));
    let preferred = null;
    const preference = item.pair ? h("fieldset", {}, h("legend", {}, "Which is better?"), h("div", { class: "marks", role: "radiogroup" }, ["A", "B", "tie"].map((choice) => radio(`p-${choice}`, "preferred", choice, () => { preferred = choice; })))) : "";
    const problem = h("div", {});
    const save = async (event) => {
      event.preventDefault();
      if (scores.size < subjects.length * item.rubric.length || (item.pair && !preferred)) return fill(problem, h("p", { class: "notice caution" }, `Give a score for every metric${item.pair ? ", and choose A, B or tie" : ""}.`));
      try { await post("label", { run }, { set: Number(set), item: item.item, rater, scores: [...scores.values()], preferred }); await showItem(); window.scrollTo(0, 0); } catch (error) { fill(problem, errorBox(error)); }
    };
    fill(page, h("div", { class: "row spread" }, h("h1", {}, "Blind labelling"), h("p", { class: "muted" }, `${item.done + 1} of ${item.total} · ${rater}`)),
      h("div", { class: "split label" }, h("section", {}, Object.entries(item.texts).map(([name, text]) => h("article", { class: "message" }, h("header", {}, h("span", { class: "who" }, FIELD_TITLES[name] || name)), h("div", { class: "prose", dir: "auto" }, text)))),
        h("form", { class: "rubric", onsubmit: save }, rubric, preference, h("button", { class: "strong" }, "Save and continue"), problem)));
  }
}
