// Blind labelling: the sets with their agreement, and one item after another with what is asked about it.
import { get, post } from "./api.js";
import { announce, dateTime, fill, go, h, link, number, plural, signed } from "./dom.js";
import { markDifferences } from "./diff.js";
import { savedName } from "./message.js";
import { breadcrumbs, button, errorBox, loading, setTitle, shortcuts } from "./widgets.js";

export function labelPage(main, params) {
  const [run, set, rater] = [params.get("run"), params.get("set"), params.get("rater")];
  setTitle("Labelling");
  // A run's name can say which model it is of, and a rater must not know.
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, set && rater ? "the run" : run)), "label");
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

  function agreementTables({ unavailable, raters, between_raters, with_judges }) {
    if (unavailable) return h("p", { class: "muted" }, unavailable);
    if (!raters.length) return h("p", { class: "muted" }, "no labels yet");
    const interval = (row) => (row.low === null || row.low === undefined ? "–" : `${number(row.low)} to ${number(row.high)}`);
    return [h("h3", {}, `Agreement between raters (${raters.length})`),
      simpleTable(["metric", "Fleiss' κ", "95% CI", "ratings", ""],
        between_raters.map((row) => [[row.metric, row.subject].filter(Boolean).join(" "), number(row.kappa), interval(row), String(row.n), h("span", { class: "muted" }, row.note)])),
      h("h3", {}, "Agreement with the judges"),
      simpleTable(["rater", "items", "same choice", "Cohen's κ", "score − judges' mean", "absolute difference"],
        with_judges.map((row) => [row.rater, String(row.items), row.compared ? `${row.same_choice} of ${row.compared}` : "–", number(row.kappa), signed(row.mean_difference), row.scores ? `${number(row.mean_absolute_difference)} (${plural(row.scores, "score")})` : "–"])),
      h("p", { class: "muted" }, "Scores are compared metric by metric, on the raters' scale from 0 to 10.")];
  }

  async function showItem() {
    const item = await get("label", { run, set, rater });
    if (item.item === undefined) { shortcuts({}); return fill(page, h("h1", {}, "Done"), h("p", {}, `You have labelled all ${plural(item.total, "item")} of set ${set}.`), link("/label", { run }, { class: "button" }, "See the agreement")); }
    const scores = new Map();
    let chosen = null;
    const [from, to] = item.scale;
    const radio = (id, name, text, onchange) => h("label", { for: id }, h("input", { type: "radio", id, name, onchange }), h("span", {}, text));
    const scale = (metric, nth) => {
      const name = `s-${metric.name}-${nth}`;
      return h("div", { class: "marks", role: "radiogroup", "aria-label": [metric.name, item.texts.length > 1 ? item.texts[nth].title : ""].filter(Boolean).join(", ") }, item.texts.length > 1 ? h("b", {}, item.texts[nth].title.split(" ").at(-1)) : "",
        Array.from({ length: to - from + 1 }, (_, n) => radio(`${name}-${from + n}`, name, String(from + n), () => scores.set(name, [nth, metric.name, from + n]))));
    };
    const ends = ({ low, high }) => (low || high ? h("p", { class: "ends muted" }, `${from} ${low} – ${to} ${high}`) : "");
    const metrics = item.metrics.map((metric) => h("fieldset", {}, h("legend", {}, metric.name), h("ul", {}, metric.questions.map((question) => h("li", {}, question))), ends(metric), item.texts.map((_, nth) => scale(metric, nth))));
    const choice = item.choice ? h("fieldset", { class: "choice" }, h("legend", {}, item.choice.question),
      h("div", { class: "marks", role: "radiogroup", "aria-label": item.choice.question }, item.choice.options.map(([value, words], n) => radio(`choice-${n}`, "choice", words, () => { chosen = value; })))) : "";
    const problem = h("div", { role: "alert" });
    const missing = () => item.texts.length * item.metrics.length - scores.size;
    const save = async (event) => {
      event.preventDefault();
      if (item.choice && chosen === null) return fill(problem, h("p", { class: "notice caution" }, "Choose one of the options."));
      if (missing()) return fill(problem, h("p", { class: "notice caution" }, `Give a score for every metric: ${missing()} ${missing() === 1 ? "is" : "are"} missing.`));
      try { await post("label", { run }, { set: Number(set), item: item.item, rater, scores: [...scores.values()], choice: chosen }); await showItem(); window.scrollTo(0, 0); document.getElementById("main").focus({ preventScroll: true }); } catch (error) { fill(problem, errorBox(error)); }
    };
    const form = h("form", { class: "rubric", onsubmit: save }, choice, metrics, h("button", { class: "strong" }, "Save and continue"), problem);
    const pick = (n) => form.querySelector(`#choice-${n}`)?.click();
    shortcuts({ ...Object.fromEntries((item.choice?.options || []).map(([value, words], n) => [item.pair ? value[0].toLowerCase() : String(n + 1), { what: words, run: () => pick(n) }])), u: { what: "back to the sets", run: () => go("/label", { run }) } });
    fill(page, h("div", { class: "row spread" }, h("h1", {}, "Blind labelling"), h("p", { class: "muted" }, `${item.done + 1} of ${item.total} · ${rater}`)),
      h("div", { class: item.pair ? "label-pair" : "split label" }, h("section", { class: "label-texts" }, item.task.map(({ title, text }) => textBox(title, text)), item.pair ? pairOfTexts(item.texts) : item.texts.map(({ title, text }) => textBox(title, text))), form));
  }
}

function textBox(title, content) {
  return h("article", { class: "message" }, h("h2", { class: "box-title" }, title), h("div", { class: "prose", dir: "auto" }, content));
}

function pairOfTexts([a, b]) {
  const marked = ["A", "B"].map((side) => markDifferences(a.text, b.text, side));
  return [h("div", { class: "sides" }, textBox(a.title, marked[0]), textBox(b.title, marked[1])),
    h("p", { class: "muted" }, a.text === b.text ? "The two texts are identical." : "Marked words are in one answer only.")];
}
