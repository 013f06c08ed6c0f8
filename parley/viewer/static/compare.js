// Two or more runs: what was found, one table of values, the units that differ most, and what differs in the configs.
import { get } from "./api.js";
import { fill, go, h, link, number, percent, pValue, signed, unique } from "./dom.js";
import { knowFacets, unitTitle } from "./facets.js";
import { findingView } from "./findings.js";
import { formats } from "./forest.js";
import { unitsOf } from "./units.js";
import { breadcrumbs, button, cautions, errorBox, loading, scrollTable, setTitle, shortcuts } from "./widgets.js";

export function comparePage(main, params) {
  const run = params.get("run");
  const others = params.getAll("with").filter(Boolean);
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "compare");
  setTitle(`Compare ${run}`);
  shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
  const choice = h("div", { class: "row" });
  const [configs, tested, identities, units] = Array.from({ length: 4 }, (_, nth) => h("div", { class: nth < 3 ? "tested" : "" }));
  fill(main, h("div", { class: "page" }, h("h1", {}, "Compare"), choice, tested, identities, units, configs));
  let stopped = false;

  const compare = (...runs) => go("/compare", [["run", run], ...runs.map((name) => ["with", name])]);

  async function show() {
    try {
      const [{ rows }, summary] = await Promise.all([get("runs", { rows: 1 }), get("run", { run })]);
      knowFacets(summary);
      const free = rows.filter(({ name, unread, study }) => (unread || study === summary.study) && ![run, ...others].includes(name));
      const without = (name) => others.filter((kept) => kept !== name);
      const makeBaseline = (name) => go("/compare", [["run", name], ...[run, ...without(name)].map((kept) => ["with", kept])]);
      fill(choice, h("span", { class: "pill baseline" }, "baseline: ", h("bdi", {}, run)),
        others.map((name) => h("span", { class: "pill" }, h("bdi", {}, name), button("make this the baseline", () => makeBaseline(name), { class: "plain" }), button("×", () => compare(...without(name)), { class: "plain", "aria-label": `remove ${name}` }))),
        free.length ? h("label", {}, h("span", { class: "unseen" }, "with run"), h("select", { onchange: (event) => compare(...others, event.target.value) }, h("option", { value: "" }, "add a run…"), free.map(({ name, suite, models = [] }) => h("option", { value: name }, [name, suite, ...models].filter(Boolean).join(" · "))))) : h("span", { class: "muted" }, `No other run of ${summary.study} is here.`));
      if (!others.length) fill(units, h("p", { class: "muted" }, "Choose a second run. Units of one run under two labels stand one below the other in its list of units."));
    } catch (error) { fill(units, errorBox(error)); }
  }

  // What differs in how the runs were made, a row for each setting.
  async function showConfigs() {
    try {
      const made = (await Promise.all([run, ...others].map((name) => get("run", { run: name })))).map(({ config, suite, versions, units: counts }) => new Map(flattened({ suite, ...config, ...versions, "units done": counts?.done })));
      const differing = unique(made.flatMap((settings) => [...settings.keys()])).filter((key) => unique(made.map((settings) => settings.get(key) ?? "–")).length > 1);
      fill(configs, differing.length ? h("details", { class: "numbers", open: differing.length <= 8 }, h("summary", {}, `What differs in the configs (${differing.length})`), pinnedTable("What differs in the configs", ["setting", run, ...others],
        differing.map((key) => h("tr", {}, h("th", { scope: "row" }, key), made.map((settings, nth) => h("td", { "data-label": [run, ...others][nth] }, h("bdi", {}, settings.get(key) ?? "–"))))))) : h("p", { class: "muted" }, "The configs are identical."));
    } catch (error) { fill(configs, errorBox(error)); }
  }

  async function showTested() {
    const found = await Promise.all(others.map((name) => get("comparison", { run, with: name }).catch((error) => ({ unavailable: error.message }))));
    if (stopped) return;
    const answered = found.map((comparison, index) => ({ ...comparison, name: others[index] })).filter(({ pending }) => !pending);
    const [ready, failed] = [answered.filter(({ forests }) => forests), answered.filter(({ unavailable }) => unavailable)];
    const sentences = ready.flatMap((comparison) => comparison.sentences || []);
    fill(tested, cautions(unique(ready.flatMap((comparison) => comparison.cautions || []))), answered.length < found.length ? loading("Computing the comparison…") : "",
      failed.map(({ name, unavailable }) => h("p", { class: "notice" }, found.length > 1 ? [h("bdi", {}, name), ": "] : "", `${unavailable.charAt(0).toUpperCase()}${unavailable.slice(1)}.`)),
      ready.length && ready[0].headline && found.length === 1 ? findingView(run, ready[0].headline) : "",
      ready.length ? values(ready) : "",
      sentences.length ? h("section", { class: "words" }, h("h2", {}, "In words"), h("ul", {}, sentences.map((line) => h("li", {}, line)))) : "");
    fill(units, ready.filter((comparison) => comparison.units).map(mostDifferent));
    if (answered.length === found.length) showIdentities();
    if (answered.length < found.length) setTimeout(showTested, 700);
  }

  // A row for each estimate, below its question; runs as columns: what each has, and how far it is from the first.
  function values(comparisons) {
    const plots = comparisons.flatMap(({ name, forests }) => forests.map((plot) => ({ ...plot, run: name })));
    const names = [run, ...comparisons.flatMap(({ name }) => [name, "difference", "95% CI", "corrected p"])];
    const groups = unique(plots.map(({ question }) => question)).map((question) => {
      const asked = plots.filter((plot) => plot.question === question);
      const lineOf = (name, label) => asked.find((plot) => plot.run === name)?.lines.find((line) => line.label === label);
      const [format, plain] = [formats({ ...asked[0], lines: asked.flatMap(({ lines }) => lines) }).value, asked[0].scale === "share" ? percent : number];
      return [h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: names.length + 1 }, question)), unique(asked.flatMap(({ lines }) => lines.map(({ label }) => label))).map((label) => {
        const cells = comparisons.flatMap(({ name }) => { const line = lineOf(name, label); return line ? [plain(line.also.second), h("b", {}, format(line.estimate)), line.low === null || line.high === null ? "no interval" : `${format(line.low)} to ${format(line.high)}`, pValue(line.p_adjusted)] : ["–", "–", "–", "–"]; });
        const first = comparisons.map(({ name }) => lineOf(name, label)).find(Boolean).also.first;
        return h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, label)), [plain(first), ...cells].map((cell, nth) => h("td", { class: "num", "data-label": names[nth] }, cell)));
      })];
    });
    return [pinnedTable("Values by run", ["", ...names], groups), unique(plots.map(({ note }) => note)).map((note) => h("p", { class: "muted" }, note))];
  }

  // What the runs' own reports say about the same identities, with intervals of their own.
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
    const { value: format } = formats({ ...plots[0], lines: plots.flatMap(({ lines: own }) => own) });
    const cell = ({ estimate, low, high }) => [format(estimate), h("span", { class: "muted" }, low === null || high === null ? " no interval" : ` ${format(low)} to ${format(high)}`)];
    return shared.length ? h("details", { class: "numbers", open: shared.length <= 8 }, h("summary", {}, plots[0].question), pinnedTable(plots[0].question, ["", ...names],
      shared.map((label) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, label)), lines.map((byLabel, nth) => h("td", { class: "num", "data-label": names[nth] }, cell(byLabel.get(label)))))))) : null;
  }

  // The units that differ most, as the report lists them.
  function mostDifferent({ name, units: listed }) {
    const box = h("div", {}, h("h2", {}, "Units that differ most", others.length > 1 ? [": ", h("bdi", {}, name)] : ""));
    Promise.all([unitsOf(run), unitsOf(name)]).then(([table, second]) => {
      const idIn = (own, item) => (own.places.has(item) ? item : own.ids.find((id) => id.startsWith(`${item}/@`)));
      const chosen = listed.some(({ choice_first: before, choice_second: after }) => before || after);
      const rows = listed.map(({ unit, first, second: other, mean_difference: difference, choice_first: before, choice_second: after }) => {
        const [a, b] = [idIn(table, unit), idIn(second, unit)];
        return h("tr", {}, h("th", { scope: "row" }, link("/pair", { run, unit: a, run2: name, unit2: b }, { title: a }, h("bdi", {}, unitTitle(table.facetsAt(table.places.get(a)), unit)))),
          [[run, number(first)], [name, number(other)], ["difference", h("b", {}, signed(difference))]].map(([label, cell]) => h("td", { class: "num", "data-label": label }, cell)),
          chosen ? h("td", { "data-label": "verdicts" }, before === after ? before : h("span", { class: "pill warn" }, `${before || "–"} → ${after || "–"}`)) : "");
      });
      box.append(rows.length ? pinnedTable("Pairs of units", ["unit", run, name, "difference", ...(chosen ? ["verdicts"] : [])], rows) : h("p", { class: "muted" }, "No unit differs."));
    });
    return box;
  }
  show();
  if (others.length) { showConfigs(); showTested(); }
  return { stop: () => { stopped = true; } };
}

// A table whose first columns stay in place when it scrolls sideways: what a row is, and what the baseline has.
function pinnedTable(label, names, rows) {
  const numeric = (column) => column && !["setting", "verdicts"].includes(names[column]) && names[0] !== "setting";
  return scrollTable(label, names.map((name, column) => h("th", { scope: "col", class: numeric(column) ? "num" : "" }, h("bdi", {}, name))), rows, { class: "table pinned" });
}

// Nested settings as [path, text] pairs: {"config": {"seed": 1}} is [["config.seed", "1"]].
function flattened(value, path = "") {
  if (value && typeof value === "object" && !Array.isArray(value)) return Object.entries(value).flatMap(([key, inner]) => flattened(inner, path ? `${path}.${key}` : key));
  return [[path, typeof value === "string" ? value : Array.isArray(value) ? value.join(", ") : value === null ? "–" : JSON.stringify(value)]];
}
