// Two or more runs, or two values of a facet within one.
import { get } from "./api.js";
import { scatter } from "./charts.js";
import { fill, go, h, integer, link, number, orNone, plural, pValue, signed, unique } from "./dom.js";
import { facetName, facetValue, knowFacets, unitTitle } from "./facets.js";
import { forestPlot, formats } from "./forest.js";
import { unitsOf } from "./units.js";
import { breadcrumbs, button, cautions, errorBox, loading, pager, scrollTable, setTitle, shortcuts } from "./widgets.js";

export function comparePage(main, params) {
  const run = params.get("run");
  const others = params.getAll("with").filter(Boolean);
  const other = others.includes(params.get("shown")) ? params.get("shown") : others[0] || "";
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "compare");
  setTitle(`Compare ${run}`);
  shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
  const choice = h("div", { class: "row" });
  const [configs, tested, identities] = [h("div", {}), h("div", { class: "tested" }), h("div", { class: "tested" })];
  const units = h("div", {}, loading());
  fill(main, h("div", { class: "page" }, h("h1", {}, "Compare"), choice, configs, tested, identities, units));
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
      const [{ runs }, comparison, summary] = await Promise.all([get("runs"), compared(), get("run", { run })]);
      knowFacets(summary);
      const [facet, x, y] = ["facet", "x", "y"].map((key) => params.get(key) || "");
      const values = comparison.facets[facet] || [];
      const free = runs.filter((name) => name !== run && !others.includes(name));
      const byFacet = { facet: "", x: "", y: "" };
      const makeBaseline = (name) => go("/compare", [["run", name], ...[run, ...others.filter((kept) => kept !== name)].map((kept) => ["with", kept])]);
      fill(choice, others.length ? h("span", { class: "pill baseline" }, "baseline: ", h("bdi", {}, run)) : "",
        others.map((name) => h("span", { class: "pill" }, h("bdi", {}, name), button("make this the baseline", () => makeBaseline(name), { class: "plain" }), button("×", () => change({}, others.filter((kept) => kept !== name)), { class: "plain", "aria-label": `remove ${name}` }))),
        chooser("with run", "", free, (value) => value && change(byFacet, [...others, value])),
        others.length ? "" : chooser("or by facet", facet, Object.keys(comparison.facets), (value) => change({ facet: value, x: "", y: "" }, []), "–", facetName),
        facet ? chooser("from", x, values, (value) => change({ x: value }), "–", (value) => facetValue(facet, value)) : "", facet ? chooser("to", y, values, (value) => change({ y: value }), "–", (value) => facetValue(facet, value)) : "",
        others.length > 1 ? h("label", {}, "show units of ", h("select", { onchange: (event) => change({ shown: event.target.value }) }, others.map((name) => h("option", { value: name, selected: name === other }, name)))) : "",
        chooser("judged by", params.get("judge") || "", comparison.judges, (value) => change({ judge: value }), "the panel"));
      fill(units, other || (facet && x && y) ? pairs(comparison) : h("p", { class: "muted" }, "Choose another run, or a facet and two of its values. Units of two runs are matched by id; units of one run are matched by all other facets."));
    } catch (error) { fill(units, errorBox(error)); }
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

  // The list of units compares two runs at a time, or two values of a facet.
  async function compared() {
    const [table, second] = await Promise.all([unitsOf(run, true), other ? unitsOf(other, true) : null]);
    const matched = second ? table.pairsWith(second) : table.pairsBy(params.get("facet"), params.get("x"), params.get("y"));
    return { ...table.compare(second || table, matched, params), facets: table.choices(), judges: table.judges };
  }

  async function showTested() {
    if (!others.length) return;
    const found = await Promise.all(others.map((name) => get("comparison", { run, with: name }).catch((error) => ({ unavailable: error.message }))));
    if (stopped) return;
    const ready = found.map((comparison, index) => ({ ...comparison, name: others[index] })).filter(({ pending }) => !pending);
    const plots = ({ name, forests, unavailable }) => [others.length > 1 ? h("h2", {}, h("bdi", {}, name), " minus ", h("bdi", {}, run)) : "",
      unavailable ? h("p", { class: "notice" }, `${unavailable.charAt(0).toUpperCase()}${unavailable.slice(1)}.`) : forests.filter(({ lines }) => lines.length).map((plot) => forestPlot(plot, () => null))];
    const sentences = ready.flatMap((comparison) => comparison.sentences || []);
    fill(tested, cautions(unique(ready.flatMap((comparison) => comparison.cautions || []))), ready.length < found.length ? loading("Computing the comparison…") : "",
      h("div", { class: "findings" }, h("div", { class: "plots" }, ready.map(plots), ready.some(({ forests }) => forests) ? values(ready.filter(({ forests }) => forests)) : ""),
        sentences.length ? h("section", { class: "words" }, h("h2", {}, "In words"), h("ul", {}, sentences.map((line) => h("li", {}, line)))) : ""));
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

  // What the runs' own reports say about the same identities, also where the runs have no unit in common.
  async function showIdentities() {
    if (!others.length) return;
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

  function pairs(comparison) {
    const [left, right] = other ? [run, other] : ["x", "y"].map((side) => facetValue(params.get("facet"), params.get(side)));
    const { matched, scored, mean_difference, with_choice, same_choice } = comparison;
    if (!matched) return h("p", { class: "muted" }, "No unit of one side matches a unit of the other.");
    const pairAddress = (a, b) => ({ run, unit: a, run2: other || run, unit2: b });
    return [
      h("h2", {}, "Units that differ most"),
      h("p", {}, `${plural(matched, "matched pair")}.`,
        mean_difference === null ? "" : [" Mean difference ", h("bdi", {}, right), " − ", h("bdi", {}, left), ": ", h("b", {}, signed(mean_difference)), ` (${plural(scored, "pair")} with scores).`],
        with_choice ? ` Same verdict in ${integer(same_choice)} of ${plural(with_choice, "pair")}.` : ""),
      h("div", { class: "compare-runs" },
        h("div", {}, scrollTable("Pairs of units", ["unit", left, right, "difference", "verdicts"].map((name, column) => h("th", { scope: "col", class: column && column < 4 ? "num" : "" }, h("bdi", {}, name))),
          comparison.rows.map(({ a, b, difference }) => h("tr", {},
            h("th", { scope: "row" }, link("/pair", pairAddress(a.id, b.id), { title: a.id }, h("bdi", {}, unitTitle(a.facets, a.id))), a.id === b.id ? "" : h("div", { class: "muted" }, h("bdi", {}, unitTitle(b.facets, b.id)))),
            h("td", { class: "num", "data-label": left }, number(a.score)), h("td", { class: "num", "data-label": right }, number(b.score)), h("td", { class: "num", "data-label": "difference" }, h("b", {}, signed(difference))),
            h("td", {}, a.choice || b.choice ? (a.choice === b.choice ? a.choice : h("span", { class: "pill warn" }, `${a.choice || "–"} → ${b.choice || "–"}`)) : "–")))),
          pager(Number(params.get("page") || 0), matched, "/compare", params)),
        comparison.points.length > 1 ? scatter(comparison.points.map(([x, y, a, b]) => ({ x, y, title: a === b ? a : `${a}, ${b}`, open: () => go("/pair", pairAddress(a, b)) })), { title: "Scores of matched units", left, right }) : ""),
    ];
  }
  show();
  showConfigs();
  showTested();
  showIdentities();
  return { stop: () => { stopped = true; } };
}

// Nested settings as [path, text] pairs: {"config": {"seed": 1}} is [["config.seed", "1"]].
function flattened(value, path = "") {
  if (value && typeof value === "object" && !Array.isArray(value)) return Object.entries(value).flatMap(([key, inner]) => flattened(inner, path ? `${path}.${key}` : key));
  return [[path, typeof value === "string" ? value : JSON.stringify(value)]];
}
