// The first tab of a run: cautions, what was found with its plot, what else was tested, the report's sentences. The rest is folded.
import { get } from "./api.js";
import { embedded, fill, h, link, plural, unique } from "./dom.js";
import { wordsOf } from "./facets.js";
import { forestPlot } from "./forest.js";
import { unitsOf } from "./units.js";
import { cautions, errorBox, folded } from "./widgets.js";

let exported = null; // the units of an exported file, which may be few of the run's: what rests on others is no link

// The address of the units behind an estimate, those that show it most first, as `parley show --finding` lists them.
function unitParams(run, { measure, units, compared, estimate, reference }) {
  const facets = Object.entries(units || {});
  if (!facets.length) return null;
  const params = new URLSearchParams({ run, tab: "units", sort: compared ? "difference" : units?.phase?.join() === "2" ? "margin" : "score" });
  if (compared) params.set("between", JSON.stringify(compared));
  if (estimate >= (reference ?? 0)) params.set("desc", "1");
  for (const [name, values] of facets) for (const value of values) params.append(/^[fd]\./.test(name) ? name : `f.${name}`, value);
  if (!/unread|on_scale|repaired/.test(measure || "")) params.append("d.read", "something"); // no mean rests on units of which nothing was read
  return exported && !exported.order(params).length ? null : params;
}

// The answer as the largest text of the page, its interval and test below; it leads to its units.
export function findingView(run, { prefix, question, answer, line, shown }) {
  const [, main, numbers] = /^([^(]+?)(?: (\(.*))?$/s.exec(line ? answer : "") || [null, answer, ""];
  const units = line ? unitParams(run, line) : null;
  const text = h("bdi", {}, (prefix || "") + main);
  return h("section", { class: `finding ${shown ? "" : "unknown"}` }, h("p", { class: "muted" }, question), h("h2", {}, units ? link("/run", units, { title: "show the units behind this finding" }, text) : text), numbers ? h("p", {}, numbers) : "");
}

// Another question with its answer, which leads to the units of the line that it names, or to those of all; its plot is folded.
function answerView(run, plot, also = [], plotView) {
  const named = also.find(({ question }) => question === plot.question)?.line;
  const units = unitParams(run, named || { ...plot.lines[0], units: shared(plot.lines), compared: null });
  return h("section", { class: "answer" }, h("p", { class: "muted" }, plot.question), h("p", { class: named ? "" : "undecided" }, units ? link("/run", units, { title: "show the units behind this answer" }, h("bdi", {}, plot.answer)) : h("bdi", {}, plot.answer)),
    folded(`${plural(plot.lines.length, "estimate")}`, () => plotView(plot), { class: "numbers", "data-plot": plot.name }));
}

// The facets of the units behind all of some lines.
function shared(lines) {
  const names = Object.keys(lines[0].units || {}).filter((name) => lines.every(({ units }) => units?.[name]));
  return Object.fromEntries(names.map((name) => [name, unique(lines.flatMap(({ units }) => units[name]))]));
}

// What is being computed, and for how long: a large run's report takes a while.
function waiting(run, { stage = "", seconds = null, before = 0 } = {}) {
  const text = seconds !== null ? `The findings are being computed: ${stage || "starting"} · ${Math.round(seconds)} s` : before > 0 ? `Waiting for ${plural(before, "other report")}` : "The findings are being computed…";
  return h("div", {}, h("p", { class: "muted loading" }, text), h("progress", { "aria-label": "computing the findings" }), h("p", { class: "muted" }, link("/run", { run, tab: "units" }, {}, "The units"), " can be read in the meantime."));
}

function words({ sentences = [], cautions: warnings = [], also = [] }) {
  if (!sentences.length) return "";
  const meanings = wordsOf([...sentences, ...warnings.map((line) => line.replace(/\S+\?\S+/g, "")), ...also.map(({ answer }) => answer)]);
  return h("section", { class: "words", "aria-label": "In words" }, h("h2", {}, "In words"), h("ul", {}, sentences.map((line) => h("li", {}, line))),
    meanings.map(([word, meaning]) => h("p", { class: "muted" }, h("b", {}, word), `: ${meaning}`)));
}

// Shows what the run found in `box`; called again whenever the run changes. Returns whether it is still being computed.
export async function showFindings(box, run) {
  let found;
  try { found = await get("headline", { run }); } catch (error) { fill(box, errorBox(error)); return false; }
  const { forests = [], sentences = [] } = found;
  if (embedded) exported = await unitsOf(run);
  if (found.pending) { fill(box, cautions(found.cautions || []), waiting(run, found.progress)); return true; }
  const plotView = (plot, asked = true) => forestPlot(plot, (line) => unitParams(run, line), { asked });
  // The first plot's answer is the page's headline. What else was tested stands below it; what is exploratory is folded.
  const [main, ...others] = forests;
  const [tested, described] = [others.filter(({ answer }) => answer), others.filter(({ answer }) => !answer)];
  fill(box, cautions(found.cautions || []),
    forests.length || sentences.length ? "" : h("p", { class: "notice" }, found.unavailable || "The report of this run has only tables: parley report writes them."),
    found.headline ? findingView(run, found.headline) : "",
    h("div", { class: forests.length ? "findings" : "" },
      h("div", { class: "plots" }, main ? plotView(main, main.question === found.headline?.question) : "",
        tested.map((plot) => answerView(run, plot, found.also, plotView)),
        described.length ? folded(`Exploratory plots (${described.length})`, () => h("div", { class: "plots" }, described.map((plot, nth) => plotView({ ...plot, note: described[nth - 1]?.note === plot.note ? "" : plot.note }, false))), { class: "numbers" }) : "",
        forests.length ? h("p", { class: "muted" }, "Tables, figures and methods: ", h("code", {}, `parley report ${run} --figures all`)) : ""),
      words(found)));
  return false;
}
