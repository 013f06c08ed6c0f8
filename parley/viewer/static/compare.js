// Two or more runs, or two values of a facet within one.
import { get } from "./api.js";
import { fill, go, h, link, number, orNone, plural, pValue, signed, unique } from "./dom.js";
import { facetName, facetValue, knowFacets, unitTitle } from "./facets.js";
import { findingView } from "./findings.js";
import { forestPlot, formats } from "./forest.js";
import { unitsOf } from "./units.js";
import { breadcrumbs, button, cautions, errorBox, loading, pager, scrollTable, setTitle, shortcuts } from "./widgets.js";

export function comparePage(main, params) {
  const run = params.get("run");
  const others = params.getAll("with").filter(Boolean);
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "compare");
  setTitle(`Compare ${run}`);
  shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
  const choice = h("div", { class: "row" });
  const [configs, tested, identities] = [h("div", { class: "tested" }), h("div", { class: "tested" }), h("div", { class: "tested" })];
  const units = h("div", {}, others.length ? "" : loading());
  fill(main, h("div", { class: "page" }, h("h1", {}, "Compare"), choice, tested, identities, units, configs));
  let stopped = false;

  const change = (changes, newOthers = others) => {
    const next = new URLSearchParams(params);
    next.delete("page");
    next.delete("with");
    for (const name of newOthers) next.append("with", name);
    for (const [key, value] of Object.entries(changes)) value ? next.set(key, value) : next.delete(key);
    go("/compare", next);
  };

  function chooser(label, value, options, onpick, unset = "–", inWords = orNone) {
    return h("label", {}, label, " ", h("select", { onchange: (event) => onpick(event.target.value) }, h("option", { value: "" }, unset), options.map((option) => h("option", { value: option, selected: option === value }, inWords(option)))));
  }

  async function show() {
    try {
      const [{ runs }, table, summary] = await Promise.all([get("runs"), unitsOf(run, true), get("run", { run })]);
      knowFacets(summary);
      const facets = table.choices();
      const facet = params.get("facet") || "";
      const values = facets[facet] || [];
      // As in the report, the label that the plan has first comes first, so that no pair has two directions.
      const [x, y] = ["x", "y"].map((key) => params.get(key) || "").sort((a, b) => (a && b ? values.indexOf(a) - values.indexOf(b) : 0));
      const free = runs.filter((name) => name !== run && !others.includes(name));
      const byFacet = { facet: "", x: "", y: "" };
      const makeBaseline = (name) => go("/compare", [["run", name], ...[run, ...others.filter((kept) => kept !== name)].map((kept) => ["with", kept])]);
      const inWords = (value) => facetValue(facet, value);
      fill(choice, others.length ? h("span", { class: "pill baseline" }, "baseline: ", h("bdi", {}, run)) : "",
        others.map((name) => h("span", { class: "pill" }, h("bdi", {}, name), button("make this the baseline", () => makeBaseline(name), { class: "plain" }), button("×", () => change({}, others.filter((kept) => kept !== name)), { class: "plain", "aria-label": `remove ${name}` }))),
        chooser("with run", "", free, (value) => value && change(byFacet, [...others, value])),
        others.length ? "" : chooser("or by facet", facet, Object.keys(facets), (value) => change({ facet: value, x: "", y: "" }, []), "–", facetName),
        facet ? [chooser("", x, values, (value) => change({ x: value, y }), "–", inWords), chooser("minus", y, values, (value) => change({ x, y: value }), "–", inWords)] : "");
      if (others.length) return;
      fill(units, facet && x && y ? pairs(table.compare(facet, x, y, params), facet, inWords(x), inWords(y)) : h("p", { class: "muted" }, "Choose another run, or a facet and two of its values. Units of one run are matched by all other facets."));
      if (facet && x && y) showLines(facet, x, y);
    } catch (error) { fill(units, errorBox(error)); }
  }

  // What the run's own report says about two values of a facet.
  async function showLines(facet, x, y) {
    const found = await get("headline", { run }).catch(() => ({}));
    if (stopped) return;
    const about = ({ compared }) => compared && compared[0] === facet && compared[1].length === 1 && compared[1][0].every((value) => value === x || value === y);
    const plots = (found.forests || []).map((plot) => ({ ...plot, lines: plot.lines.filter(about) })).filter(({ lines }) => lines.length);
    fill(tested, found.pending ? loading("Computing the report…") : plots.length ? plots.map((plot) => forestPlot(plot, () => null)) : h("p", { class: "muted" }, "The run's report does not compare these two."));
    if (found.pending) setTimeout(() => showLines(facet, x, y), 700);
  }

  // What differs in how the runs were made, a row for each setting.
  async function showConfigs() {
    if (!others.length) return;
    try {
      const made = (await Promise.all([run, ...others].map((name) => get("run", { run: name })))).map(({ config, models, suite, versions, units: counts }) => new Map(flattened({ models, suite, config, versions, "units done": counts?.done })));
      const differing = unique(made.flatMap((settings) => [...settings.keys()])).filter((key) => unique(made.map((settings) => settings.get(key) ?? "–")).length > 1);
      fill(configs, differing.length ? h("details", { class: "numbers", open: differing.length <= 8 }, h("summary", {}, `What differs in the configs (${differing.length})`), scrollTable("What differs in the configs",
        [h("th", { scope: "col" }, "setting"), [run, ...others].map((name, nth) => h("th", { scope: "col" }, h("bdi", {}, name), nth ? "" : " (baseline)"))],
        differing.map((key) => h("tr", {}, h("th", { scope: "row" }, key), made.map((settings, nth) => h("td", { "data-label": [run, ...others][nth] }, h("bdi", {}, settings.get(key) ?? "–"))))))) : h("p", { class: "muted" }, "The configs are identical."));
    } catch (error) { fill(configs, errorBox(error)); }
  }

  async function showTested() {
    if (!others.length) return;
    const found = await Promise.all(others.map((name) => get("comparison", { run, with: name }).catch((error) => ({ unavailable: error.message }))));
    if (stopped) return;
    const ready = found.map((comparison, index) => ({ ...comparison, name: others[index] })).filter(({ pending }) => !pending);
    const plots = ({ name, forests, unavailable }) => [others.length > 1 ? h("h2", {}, h("bdi", {}, name), " minus ", h("bdi", {}, run)) : "",
      unavailable ? h("p", { class: "notice" }, `${unavailable.charAt(0).toUpperCase()}${unavailable.slice(1)}.`) : forests.filter(({ lines }) => lines.length).map((plot, nth, all) => forestPlot({ ...plot, note: all[nth + 1]?.note === plot.note ? "" : plot.note }, () => null, { asked: found.length === 1 && plot.question === found[0].headline?.question }))];
    const sentences = ready.flatMap((comparison) => comparison.sentences || []);
    const [{ headline } = {}] = ready;
    fill(tested, cautions(unique(ready.flatMap((comparison) => comparison.cautions || []))), ready.length < found.length ? loading("Computing the comparison…") : "",
      headline && found.length === 1 ? findingView(run, headline) : "",
      h("div", { class: "findings" }, h("div", { class: "plots" }, ready.map(plots), ready.some(({ forests }) => forests) ? values(ready.filter(({ forests }) => forests)) : ""),
        sentences.length ? h("section", { class: "words" }, h("h2", {}, "In words"), h("ul", {}, sentences.map((line) => h("li", {}, line)))) : ""));
    fill(units, ready.filter((comparison) => comparison.units).map(mostDifferent));
    if (ready.some(({ unavailable }) => unavailable)) showIdentities();
    if (ready.length < found.length) setTimeout(showTested, 700);
  }

  // Runs as columns: what each has, and how far it is from the first.
  function values(comparisons) {
    const lines = ({ forests }) => forests.flatMap((plot) => plot.lines);
    const rows = unique(comparisons.flatMap((comparison) => lines(comparison).map(({ label }) => label)));
    const of = (comparison, what) => lines(comparison).find(({ label }) => label === what);
    const base = (what) => comparisons.map((comparison) => of(comparison, what)).find(Boolean);
    const interval = (row) => (row.low === null || row.high === null ? "no interval" : `${signed(row.low)} to ${signed(row.high)}`);
    return h("details", { class: "numbers", open: comparisons.length > 1 }, h("summary", {}, "Values by run"), scrollTable("Values by run",
      ["", run, ...comparisons.flatMap(({ name }) => [name, "difference (95% CI)", "p"])].map((name, column) => h("th", { scope: "col", class: column ? "num" : "" }, h("bdi", {}, name))),
      rows.map((what) => h("tr", {}, h("th", { scope: "row" }, what), h("td", { class: "num", "data-label": run }, number(base(what).also.first)),
        comparisons.map((comparison) => { const row = of(comparison, what); return row ? [h("td", { class: "num", "data-label": comparison.name }, number(row.also.second)), h("td", { class: "num", "data-label": "difference" }, signed(row.estimate), h("span", { class: "muted" }, ` ${interval(row)}`)), h("td", { class: "num", "data-label": "p" }, pValue(row.p_adjusted))] : h("td", { colspan: 3 }, "–"); })))));
  }

  // Where runs have no unit in common: what their own reports say about the same identities.
  async function showIdentities() {
    const names = [run, ...others];
    const found = await Promise.all(names.map((name) => get("headline", { run: name }).catch(() => ({}))));
    if (stopped) return;
    const byRun = found.map(({ forests = [] }) => new Map(forests.filter(({ lines }) => lines.some((line) => line.units?.identity)).map((plot) => [plot.name, plot])));
    const tables = [...byRun[0].keys()].filter((name) => byRun.every((plots) => plots.has(name))).map((name) => identityTable(names, byRun.map((plots) => plots.get(name)))).filter(Boolean);
    fill(identities, tables.length ? [h("h2", {}, "Identities, by each run's own report"), h("p", { class: "muted" }, "Each cell has the run's estimate and its 95% interval. Two intervals do not test whether the runs differ."), tables] : "");
    if (found.some(({ pending }) => pending)) setTimeout(showIdentities, 700);
  }

  // One question, a row for each line that all runs have.
  function identityTable(names, plots) {
    const lines = plots.map(({ lines: own }) => new Map(own.map((line) => [[line.group, line.label].filter(Boolean).join(": "), line])));
    const shared = [...lines[0].keys()].filter((label) => lines.every((byLabel) => byLabel.has(label)));
    const { value: format } = formats({ ...plots[0], lines: plots.flatMap(({ lines }) => lines) });
    const cell = ({ estimate, low, high }) => [format(estimate), h("span", { class: "muted" }, low === null || high === null ? " no interval" : ` ${format(low)} to ${format(high)}`)];
    return shared.length ? h("details", { class: "numbers", open: shared.length <= 8 }, h("summary", {}, plots[0].question), scrollTable(plots[0].question,
      ["", ...names].map((name, column) => h("th", { scope: "col", class: column ? "num" : "" }, h("bdi", {}, name))),
      shared.map((label) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, label)), lines.map((byLabel, nth) => h("td", { class: "num", "data-label": names[nth] }, cell(byLabel.get(label)))))))) : null;
  }

  function unitRow(first, second, { title, scores, difference, choices, sides }) {
    return h("tr", {}, h("th", { scope: "row" }, link("/pair", { run, unit: first.id, run2: second.run || run, unit2: second.id }, { title: first.id }, h("bdi", {}, title))),
      scores.map((score, nth) => h("td", { class: "num", "data-label": sides[nth] }, number(score))), h("td", { class: "num", "data-label": "difference" }, h("b", {}, signed(difference))),
      choices.some(Boolean) ? h("td", { "data-label": "verdicts" }, choices[0] === choices[1] ? choices[0] : h("span", { class: "pill warn" }, choices.map(orDash).join(" → "))) : "");
  }

  function unitTable(sides, difference, rows) {
    const verdicts = rows.some((row) => row.childElementCount > 4) ? ["verdicts"] : [];
    return scrollTable("Pairs of units", ["unit", ...sides, difference, ...verdicts].map((name, column) => h("th", { scope: "col", class: column && column < 4 ? "num" : "" }, h("bdi", {}, name))), rows);
  }

  // Of two runs, as the report lists them.
  function mostDifferent({ name, units: listed }) {
    const box = h("div", {}, h("h2", {}, "Units that differ most", others.length > 1 ? [": ", h("bdi", {}, name)] : ""));
    Promise.all([unitsOf(run), unitsOf(name)]).then(([table, second]) => {
      const idIn = (own, item) => (own.places.has(item) ? item : own.ids.find((id) => id.startsWith(`${item}/@`)));
      box.append(listed.length ? unitTable([run, name], `${name} − ${run}`, listed.map(({ unit, first, second: other, mean_difference: difference, choice_first: before, choice_second: after }) => {
        const [a, b] = [idIn(table, unit), idIn(second, unit)];
        return unitRow({ id: a }, { id: b, run: name }, { title: unitTitle(table.facetsAt(table.places.get(a)), unit), scores: [first, other], difference, choices: [before, after], sides: [run, name] });
      })) : h("p", { class: "muted" }, "No unit differs."));
    });
    return box;
  }

  // Of two values of a facet.
  function pairs({ matched, rows }, facet, x, y) {
    if (!matched) return h("p", { class: "muted" }, "No unit of one side matches a unit of the other.");
    return [h("h2", {}, "Units that differ most"), h("p", { class: "muted" }, `${plural(matched, "matched pair")}, the largest difference first.`),
      unitTable([x, y], `${x} − ${y}`, rows.map(({ a, b, difference }) => unitRow(a, b, { title: unitTitle({ ...a.facets, [facet]: "" }, a.id), scores: [a.score, b.score], difference, choices: [a.choice, b.choice], sides: [x, y] }))),
      pager(Number(params.get("page") || 0), matched, "/compare", params)];
  }
  show();
  showConfigs();
  showTested();
  return { stop: () => { stopped = true; } };
}

const orDash = (choice) => choice || "–";

// Nested settings as [path, text] pairs: {"config": {"seed": 1}} is [["config.seed", "1"]].
function flattened(value, path = "") {
  if (value && typeof value === "object" && !Array.isArray(value)) return Object.entries(value).flatMap(([key, inner]) => flattened(inner, path ? `${path}.${key}` : key));
  return [[path, typeof value === "string" ? value : JSON.stringify(value)]];
}
