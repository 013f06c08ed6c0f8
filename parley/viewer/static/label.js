// Blind labelling: the text, the rubric beside it, nothing else.
import { get, post } from "./api.js";
import { day, fill, go, h, link, number, plural, say, signed } from "./dom.js";
import { remembered } from "./message.js";
import { button, crumbs, heading, shortcuts, trouble, waiting } from "./widgets.js";

const TITLES = { scenario: "The situation", response: "The response", response_a: "Response A", response_b: "Response B", task: "The task", text: "The text" };

export function labelPage(main, params) {
  const [run, set, rater] = [params.get("run"), params.get("set"), params.get("rater")];
  heading("labelling");
  crumbs(link("/run", { run }, {}, h("bdi", {}, run)), "label");
  const page = h("div", { class: "page" }, waiting());
  fill(main, page);
  const shown = set && rater ? rate : overview;
  shown().catch((error) => fill(page, trouble(error)));
  return { stop: () => {} };

  async function overview() {
    shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
    const [{ sets }, { tags }] = await Promise.all([get("label/sets", { run }), get("notes", { run })]);
    const name = h("input", { placeholder: "your name", "aria-label": "your name", value: remembered(), maxlength: 80 });
    const count = h("input", { type: "number", min: 1, max: 1000, value: 50, class: "narrow", "aria-label": "how many items" });
    const begin = (id) => { if (!name.value.trim()) { name.focus(); return say("a name is needed, so that raters can be told apart"); } go("/label", { run, set: id, rater: name.value.trim() }); };
    fill(page, h("h1", {}, "Blind labelling"),
      h("p", {}, "Raters see the texts and the rubric. Identities are blacked out; models and judges' verdicts are not shown. Everyone gets the same items, each in an order of their own."),
      h("div", { class: "row" }, h("label", {}, "you are ", name)),
      sets.map((one) => h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, `Set ${one.id}: ${plural(one.items, "item")}`), button("Label", () => begin(one.id))), h("p", { class: "muted" }, `drawn ${day(one.at)}, seed ${one.seed}`), agreement(one.agreement))),
      tags.length ? h("section", { class: "card" }, h("h2", {}, "Tags beside the panel"), tagTable(tags)) : "",
      h("section", { class: "card" }, h("h2", {}, "A new set"), h("div", { class: "row" }, h("label", {}, "items ", count), button("Draw", async () => {
        try { await post("label/sets", { run }, { count: Number(count.value) }); await overview(); } catch (error) { page.append(trouble(error)); }
      }))));
  }

  function tagTable(tags) {
    return h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["tag", "units", "panel's mean score", "panel's verdicts", "flipped"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, tags.map((row) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, row.tag)), h("td", {}, String(row.units)), h("td", {}, number(row.score)),
        h("td", {}, Object.entries(row.choices).map(([choice, count]) => `${choice} ${count}`).join(", ") || "–"), h("td", {}, String(row.flipped))))));
  }

  function agreement(found) {
    if (found.why_none) return h("p", { class: "muted" }, found.why_none);
    if (!found.raters.length) return h("p", { class: "muted" }, "nobody has labelled yet");
    const range = (row) => (row.low === null || row.low === undefined ? "–" : `${number(row.low)} to ${number(row.high)}`);
    return [h("h3", {}, `Agreement of ${plural(found.raters.length, "rater")}`),
      h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["what", "Fleiss' κ", "95%", "ratings", ""].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, found.among.map((row) => h("tr", {}, h("th", { scope: "row" }, [row.metric, row.subject].filter(Boolean).join(" ")), h("td", {}, number(row.kappa)), h("td", {}, range(row)), h("td", {}, String(row.n)), h("td", { class: "muted" }, row.note))))),
      h("h3", {}, "Each rater beside the panel"),
      h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["rater", "items", "same verdict", "Cohen's κ", "mean score − panel's"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, found.panel.map((row) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, row.rater)), h("td", {}, String(row.items)), h("td", {}, row.compared ? `${row.alike} of ${row.compared}` : "–"), h("td", {}, number(row.kappa)), h("td", {}, signed(row.mean_gap))))))];
  }

  async function rate() {
    const found = await get("label", { run, set, rater });
    if (found.item === undefined) {
      shortcuts({ u: { what: "back", run: () => go("/label", { run }) } });
      return fill(page, h("h1", {}, "Done"), h("p", {}, `All ${found.total} items are labelled. Thank you.`), link("/label", { run }, { class: "button" }, "See the agreement"));
    }
    const subjects = found.pair ? ["A", "B"] : [""];
    const marks = new Map();
    const [from, to] = found.scale;
    const rubric = found.rubric.map((metric) => h("fieldset", {}, h("legend", {}, metric.name), h("ul", {}, metric.questions.map((one) => h("li", {}, one))),
      subjects.map((subject) => h("div", { class: "marks", role: "radiogroup", "aria-label": `${metric.name} ${subject}` }, subject ? h("b", {}, subject) : "",
        Array.from({ length: to - from + 1 }, (_, n) => { const value = from + n; const id = `${metric.name}-${subject}-${value}`;
          return h("label", { for: id }, h("input", { type: "radio", id, name: `${metric.name}-${subject}`, onchange: () => marks.set(`${subject}\u0000${metric.name}`, [subject, metric.name, value]) }), h("span", {}, String(value))); })))));
    let preferred = null;
    const choice = found.pair ? h("fieldset", {}, h("legend", {}, "Which is better?"), h("div", { class: "marks", role: "radiogroup" }, ["A", "B", "tie"].map((one) => h("label", { for: `p-${one}` }, h("input", { type: "radio", id: `p-${one}`, name: "preferred", onchange: () => { preferred = one; } }), h("span", {}, one))))) : "";
    const wrong = h("div", {});
    const send = async (event) => {
      event.preventDefault();
      if (marks.size < subjects.length * found.rubric.length || (found.pair && !preferred)) return fill(wrong, h("p", { class: "notice caution" }, "Every metric needs a mark", found.pair ? ", and a choice is needed." : "."));
      try { await post("label", { run }, { set: Number(set), item: found.item, rater, scores: [...marks.values()], preferred }); await rate(); window.scrollTo(0, 0); } catch (error) { fill(wrong, trouble(error)); }
    };
    shortcuts({ u: { what: "leave", run: () => go("/label", { run }) } });
    fill(page, h("div", { class: "row spread" }, h("h1", {}, "Blind labelling"), h("p", { class: "muted" }, `${found.done + 1} of ${found.total} · ${rater}`)),
      h("div", { class: "split label" }, h("section", {}, Object.entries(found.texts).map(([name, text]) => h("article", { class: "message" }, h("header", {}, h("span", { class: "who" }, TITLES[name] || name)), h("div", { class: "prose", dir: "auto" }, text)))),
        h("form", { class: "rubric", onsubmit: send }, rubric, choice, h("button", { class: "strong" }, "Keep and go on"), wrong)));
  }
}
