// One run: what it found, its units filtered by any facet, its config. The address contains the whole state.
import { get, post, readText } from "./api.js";
import { progress } from "./charts.js";
import { showConfig } from "./config.js";
import { drawerRows } from "./drawer.js";
import { announce, dateTime, embedded, fill, go, h, integer, link, money, number, plural, signed, unique } from "./dom.js";
import { facetName, facetValue, GLOSSARY, inColumn, isClosed, knowFacets, titleParts } from "./facets.js";
import { showFindings } from "./findings.js";
import { gridView } from "./grid.js";
import { showNotes } from "./notes.js";
import { searched, unitsOf } from "./units.js";
import { breadcrumbs, button, download, errorBox, highlight, loading, mainMeasure, pager, scrollTable, setTitle, shortcuts, unindexed, watchRun } from "./widgets.js";

const FILTER_NAMES = { "d.status": "status", "d.answer": "answer", "d.choice": "verdict", "d.flip": "in the other order", "d.changed": "between rounds", "d.parse": "parse status", "d.read": "read", "d.tag": "tag" };
const SORT_KEYS = [["position", "plan order"], ["random", "random order"], ["difference", "difference"], ["score", "score"], ["margin", "margin A − B"], ["choice", "verdict"], ["flip", "other order"], ["parse", "parse status"], ["tokens", "tokens"], ["latency", "latency"], ["cost", "cost"], ["id", "unit"]];
const LARGEST_FIRST = new Set(["difference", "score", "margin", "tokens", "latency", "cost"]);
const TO_READ = 20; // at random, before a number is believed
const VALUES_SHOWN = 8; // of one filter, before "more…"
const TABS = embedded ? ["findings", "units", "config"] : ["findings", "units", "grid", "notes", "config"];
const NARROW = "(max-width: 52rem)"; // where filters stand above the units, as in the style sheet

// Filters, a search or an order are about units; without any, what was found comes first.
function tabOf(params) {
  if (TABS.includes(params.get("tab"))) return params.get("tab");
  return embedded || [...params.keys()].some((key) => key !== "run") ? "units" : "findings";
}

export function runPage(main, params) {
  const run = params.get("run") || (embedded ? embedded.name : "");
  breadcrumbs(h("span", {}, run));
  setTitle(run);
  const about = h("section", { class: "about" }, loading());
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the run" });
  const findings = h("section", { class: "tab" }, loading("Computing the report…"));
  const [gridBox, notes, config] = Array.from({ length: 3 }, () => h("section", { class: "tab" }));
  const filters = h("details", { class: "filters", "aria-label": "Filters", open: !matchMedia(NARROW).matches });
  const toolbar = h("div", { class: "toolbar" });
  const list = h("div", { class: "list" }, loading());
  const state = { params, page: null, lines: new Map(), focused: -1, openFilters: new Set(), expandedFilters: new Set(), shown: null, stopped: false };
  const units = h("div", { class: "split" }, filters, h("section", { class: "units" }, toolbar, list));
  fill(main, h("div", { class: "page" }, about, tabs, findings, units, gridBox, notes, config));

  const grid = gridView(gridBox, run, () => state.measure);
  const onGrid = () => tabOf(state.params) === "grid";

  const change = (edit, replace = false) => {
    const next = new URLSearchParams(state.params);
    next.delete("page");
    next.set("tab", "units");
    edit(next);
    go("/run", next, { replace });
  };
  const setParam = (key, value) => change((next) => (value ? next.set(key, value) : next.delete(key)));
  const toggleFilter = (key, value) => change((next) => {
    const others = next.getAll(key).filter((chosen) => chosen !== value);
    const wasChosen = next.getAll(key).includes(value);
    next.delete(key);
    for (const chosen of wasChosen ? others : [...others, value]) next.append(key, chosen);
  });
  const clearAll = () => { search.value = ""; go("/run", { run, tab: "units" }); };

  let typingTimer;
  const search = h("input", { type: "search", placeholder: "Search replies…", "aria-label": "Search the text of all messages", value: params.get("q") || "",
    title: 'All words must occur. Also: "a phrase", prefix*, -excluded',
    onkeydown: (event) => { if (event.key === "Escape" && search.value) { event.preventDefault(); search.value = ""; applySearch(); } },
    oninput: () => { clearTimeout(typingTimer); typingTimer = setTimeout(applySearch, 180); } });
  function applySearch() {
    clearTimeout(typingTimer);
    if (search.value !== (state.params.get("q") || "")) change((next) => (search.value ? next.set("q", search.value) : next.delete("q")), true);
  }
  const prompts = h("input", { type: "checkbox", onchange: () => setParam("prompts", prompts.checked ? "1" : "") });
  const judge = h("select", { onchange: () => setParam("judge", judge.value) });
  const [low, high] = [["low", "lowest score", "from"], ["high", "highest score", "to"]].map(([key, label, placeholder]) =>
    h("input", { type: "number", step: "any", class: "narrow", "aria-label": label, placeholder, value: params.get(key) || "", onchange: (event) => setParam(key, event.target.value) }));
  const scoreName = h("span", {}, "score");
  const sort = h("select", { onchange: () => sortBy(sort.value, LARGEST_FIRST.has(sort.value)) });
  const sortBy = (key, descending) => change((next) => { next.set("sort", key); descending ? next.set("desc", "1") : next.delete("desc"); });
  const [different, more] = [() => toggleFilter("d.twin", "different"), () => setParam("columns", more.checked ? "all" : "")].map((onchange) => h("input", { type: "checkbox", onchange }));
  const differentOnly = h("label", { class: "check", title: "only units whose score differs from that of the unit with another label" }, different, " different only");
  const direction = button("↑", () => sortBy(state.page.sort, !state.page.descending), { "aria-label": "reverse the order", title: "reverse the order" });
  const count = h("p", { class: "count", role: "status" });
  const pages = h("div", {});
  toolbar.append(h("div", { class: "row grow" }, search, h("label", { class: "check" }, prompts, " also search prompts")),
    h("details", { class: "controls", open: !matchMedia(NARROW).matches }, h("summary", {}, "Order, judge and scores"), h("div", { class: "row" }, h("label", { title: GLOSSARY.panel }, "judged by ", judge), h("span", { class: "inline-group" }, scoreName, " ", low, " ", high), h("span", { class: "inline-group" }, h("label", {}, "sort by ", sort), direction), differentOnly, h("label", { class: "check" }, more, " all columns"))),
    h("div", { class: "row spread" }, count, pages));

  async function showAbout() {
    const summary = await get("run", { run });
    state.measure = mainMeasure(summary);
    knowFacets(summary);
    if (summary.broken) { fill(main, h("div", { class: "page" }, h("h1", {}, run), h("p", { class: "notice bad" }, summary.broken))); return; }
    const { done, failed, planned } = summary.units;
    fill(about,
      h("div", { class: "row spread" }, h("h1", {}, h("bdi", {}, run), h("span", { class: `pill ${summary.state}` }, summary.state)),
        embedded ? h("p", { class: "muted" }, "part of a run, exported") : h("div", { class: "row actions" },
          link("/compare", { run }, { class: "button" }, "Compare"),
          button("Export", exportUnits, { title: "download the matching units as one HTML file" }))),
      h("p", { class: "facts" }, h("strong", {}, summary.study), summary.suite ? ` · ${summary.suite}` : "", " · ", h("bdi", {}, summary.models.join(", "))),
      progress(summary.units),
      h("p", { class: "muted" }, [`${integer(done)} of ${plural(done + failed + planned, "unit")} done`, failed ? `${integer(failed)} failed` : null,
        plural(summary.calls, "call"), plural(summary.tokens, "token"), money(summary.cost), dateTime(summary.started)].filter(Boolean).join(" · ")),
      summary.errors.map(({ units, error }) => h("p", { class: "error" }, `${plural(units, "unit")}: ${error}`)));
  }

  async function exportUnits() {
    try {
      const [table, found] = await Promise.all([unitsOf(run), searched(run, state.params)]);
      const units = table.order(state.params, found).map((place) => table.ids[place]);
      download(`${run.replaceAll("/", "-")}.html`, await post("export", { run }, { units }, readText), "text/html");
    } catch (error) { announce(error.message); }
  }

  let findingsShown = false;
  async function refreshFindings() {
    findingsShown = true;
    if (await showFindings(findings, run) && !state.stopped) setTimeout(refreshFindings, 700);
  }

  function showTab() {
    const tab = tabOf(state.params);
    const name = (key) => key.charAt(0).toUpperCase() + key.slice(1);
    fill(tabs, ...TABS.map((key) => link("/run", tabParams(key), { "aria-current": key === tab ? "page" : null }, name(key))));
    for (const [key, node] of Object.entries({ findings, units, grid: gridBox, notes, config })) node.hidden = key !== tab;
    if (tab === "findings" && !findingsShown) refreshFindings();
    if (tab === "units") showUnits(state.page === null);
    if (tab === "grid") described.then(() => grid.show(state.params));
    if (tab === "notes") showNotes(notes, run);
    if (tab === "config" && !config.childElementCount) showConfig(config, run);
  }

  // The filters stay in the address, so that coming back shows the same units.
  function tabParams(tab) { const next = new URLSearchParams(state.params); next.set("run", run); next.set("tab", tab); return next; }

  function showFilters() {
    // A filter that leaves nothing to choose is not shown.
    const groups = state.page.filters.filter(({ key, values }) => key !== "d.twin" && (state.params.has(key) || values.some(([, n]) => n))).map(({ key, values }) => {
      const chosen = state.params.getAll(key);
      const name = FILTER_NAMES[key] || facetName(key.slice(2)); // "d.…" are figures, "f.…" facets
      const facet = key.startsWith("f.") ? key.slice(2) : "";
      const open = chosen.length || state.openFilters.has(key) || (values.length <= 5 && !isClosed(facet));
      const shown = state.expandedFilters.has(key) ? values
        : values.filter(([value, n], index) => chosen.includes(value) || index < VALUES_SHOWN || (n && values.length <= VALUES_SHOWN + 3));
      const options = shown.map(([value, n]) => h("label", { class: n || chosen.includes(value) ? "" : "empty" },
        h("input", { type: "checkbox", checked: chosen.includes(value), onchange: () => toggleFilter(key, value) }), h("bdi", {}, facetValue(facet, value)), h("span", { class: "n" }, integer(n))));
      return h("details", { open: Boolean(open), "data-filter": key, ontoggle: (event) => (event.target.open ? state.openFilters.add(key) : state.openFilters.delete(key)) },
        h("summary", { title: GLOSSARY[facet] || null }, name.charAt(0).toUpperCase() + name.slice(1), chosen.length ? h("span", { class: "pill" }, String(chosen.length)) : ""), options,
        values.length > shown.length ? button(`${values.length - shown.length} more…`, () => { state.expandedFilters.add(key); showFilters(); }, { class: "plain" }) : "");
    });
    const active = [...state.params].filter(([key]) => /^[fd]\./.test(key));
    const focusedLabel = document.activeElement?.closest?.(".filters label")?.textContent;
    fill(filters, h("summary", {}, h("h2", {}, "Filters"), active.length ? h("span", { class: "pill" }, String(active.length)) : ""), active.length ? button("clear the filters", () => change((next) => { for (const [key] of active) next.delete(key); }), { class: "plain" }) : "", ...groups);
    if (focusedLabel) [...filters.querySelectorAll("label")].find((label) => label.textContent === focusedLabel)?.querySelector("input").focus();
  }

  // What one needs in order to choose a unit; its other facets and its tokens are shown on request.
  function columns(rows) {
    const has = (key) => rows.some((row) => row[key] !== null && row[key] !== undefined);
    const shown = (key) => state.params.has("columns") || state.page.sort === key;
    const facets = unique(rows.flatMap((row) => Object.keys(row.facets)))
      .filter((name) => shown(`f.${name}`) && unique(rows.map((row) => row.facets[name] ?? null)).length > 1 && inColumn(name));
    return [
      rows.some((row) => titleOf(row).labels) && { key: "labels", label: "labels", show: (row) => h("bdi", {}, titleOf(row).labels) },
      rows.some((row) => row.answers?.length) && { key: "choice", label: "answer", show: (row) => h("span", {}, h("bdi", {}, row.choice ?? "–"), row.answers.filter((kind) => kind !== "unparsed").map((kind) => h("span", { class: `pill ${kind}` }, kind))) },
      // While a run is being indexed the column waits for its scores, so that nobody reads the list as one without any.
      (has("score") || (state.measure && unindexed(state.page))) && !rows.some((row) => row.answers?.length) && { key: "score", label: state.measure?.label || "score", show: scoreColumn(state.measure), numeric: true },
      has("difference") && { key: "difference", label: state.measure?.kind === "correct" ? "its twin" : "difference", title: "compared with the unit that differs only in its label; of several, the one whose score differs most", show: twin, numeric: true },
      has("margin") && { key: "margin", label: "A − B", show: (row) => signed(row.margin), numeric: true },
      has("choice") && !rows.some((row) => row.answers?.length) && { key: "choice", label: "verdict", show: verdict },
      has("flip") && { key: "flip", label: "other order", show: (row) => (row.flip === "flipped" ? h("span", { class: "pill warn" }, "flipped") : row.flip || "–") },
      ...facets.map((name) => ({ key: `f.${name}`, label: facetName(name), show: (row) => h("bdi", {}, name in row.facets ? facetValue(name, row.facets[name]) : "") })),
      has("tokens") && shown("tokens") && { key: "tokens", label: "tokens", show: (row) => integer(row.tokens), numeric: true },
    ].filter(Boolean);
  }

  function twin({ id, difference, twin: other }) {
    if (!other) return "–";
    return link("/pair", { run, unit: id, unit2: other.id }, { title: "read both side by side" }, state.measure?.kind === "correct" ? scoreColumn(state.measure)(other) : signed(difference), h("span", { class: "muted" }, state.measure?.kind === "correct" ? " " : " against ", h("bdi", {}, facetValue(other.facet, other.label))));
  }

  function showRows() {
    const { rows } = state.page;
    state.focused = -1;
    if (!rows.length) return fill(list, h("p", { class: "muted" }, "No units match. ", button("clear all filters", clearAll, { class: "plain" })));
    const shownColumns = columns(rows);
    const { sort: sorted, descending } = state.page;
    const head = shownColumns.map(({ key, label, numeric, title }) => h("th", { scope: "col", class: numeric ? "num" : "", "aria-sort": sorted === key ? (descending ? "descending" : "ascending") : null },
      key === "labels" ? label : button(label + (sorted === key ? (descending ? " ↓" : " ↑") : ""), () => sortBy(key, sorted === key ? !descending : numeric), { class: "plain", title })));
    const body = rows.map((row) => {
      const unitParams = new URLSearchParams(state.params);
      unitParams.set("run", run); unitParams.set("unit", row.id);
      const pills = [row.status === "failed" ? h("span", { class: "pill bad" }, "failed") : row.status === "planned" ? h("span", { class: "pill" }, "planned") : null,
        ["unscored", "cut", "refused", "unparsed"].includes(row.parse) ? h("span", { class: "pill bad" }, row.parse) : ["repaired", "copied", "empty"].includes(row.parse) ? h("span", { class: "pill warn" }, row.parse) : null,
        row.tags.map((tag) => h("span", { class: "pill tag" }, tag))];
      return [h("tr", { "data-unit": row.id, class: row.status === "planned" ? "planned" : "" },
        h("th", { scope: "row" }, link("/unit", unitParams, { anchor: row.line?.seq === undefined ? "" : `m${row.line.seq}`, class: "unit", title: row.id }, h("bdi", {}, titleOf(row).about)), " ", pills,
          row.line?.text ? h("div", { class: "excerpt", dir: "auto" }, h("b", {}, row.line.speaker), row.line.speaker ? " " : "", highlight(row.line.text.replace(/ …$/, "\u00a0…"), state.params.get("q"))) : "",
          row.error ? h("div", { class: "error" }, row.error) : ""),
        shownColumns.map((column) => h("td", { class: column.numeric ? "num" : "", "data-label": column.label }, column.show(row))))];
    });
    fill(list, scrollTable("Units", [h("th", { scope: "col" }, "unit"), head], body));
  }

  async function showUnits(again = false) {
    const requested = state.params;
    try {
      const [table, found] = await Promise.all([unitsOf(run, again), searched(run, requested), described]); // a measure names the scores
      if (requested !== state.params) return; // the filters have changed meanwhile
      const page = table.page(requested, found);
      const q = (!embedded && requested.get("q")) || "";
      if (embedded) state.lines = new Map(Object.entries(embedded.lines));
      const unread = page.rows.filter(({ id, status }) => status === "done" && (q || !state.lines.has(id))).map(({ id }) => ["unit", id]);
      const lines = unread.length && !embedded ? await get("search", [["run", run], ["q", q], ["prompts", requested.get("prompts") || ""], ...unread]) : {};
      if (requested !== state.params) return;
      for (const [id, line] of Object.entries(lines)) if (!q) state.lines.set(id, line);
      for (const row of page.rows) row.line = lines[row.id] ?? state.lines.get(row.id);
      state.page = page;
      fill(judge, h("option", { value: "" }, "the panel"), ...page.judges.map((name) => h("option", { value: name }, name)));
      judge.value = requested.get("judge") || "";
      const facets = unique(page.rows.flatMap((row) => Object.keys(row.facets)));
      scoreName.textContent = state.measure?.label || "score";
      fill(sort, ...SORT_KEYS.map(([key, name]) => h("option", { value: key }, key === "score" ? scoreName.textContent : name)), ...facets.map((name) => h("option", { value: `f.${name}` }, facetName(name))));
      sort.value = page.sort;
      direction.textContent = page.descending ? "↓" : "↑";
      [prompts.checked, more.checked, different.checked] = [requested.get("prompts"), requested.get("columns"), requested.has("d.twin")].map(Boolean);
      differentOnly.hidden = !different.checked && !page.filters.some(({ key }) => key === "d.twin");
      for (const [input, key] of [[search, "q"], [low, "low"], [high, "high"]]) if (document.activeElement !== input) input.value = requested.get(key) || "";
      const unfinished = unindexed(page);
      const matching = page.matching === page.total ? plural(page.total, "unit") : `${integer(page.matching)} of ${plural(page.total, "unit")}`;
      const drawn = page.sort === "random" ? page.places.slice(0, TO_READ).map((place) => table.row(place, requested)) : [];
      const read = drawn.length ? `${drawn.filter(({ tags }) => tags.includes("read")).length} of the first ${drawn.length} read` : "";
      count.textContent = [matching, read, page.index_error || unfinished].filter(Boolean).join(" · ");
      fill(pages, pager(Number(requested.get("page") || 0), page.matching, "/run", requested));
      const shown = JSON.stringify([page.rows, page.filters, requested.get("columns")]);
      if (shown !== state.shown) { showFilters(); showRows(); }
      state.shown = shown;
      if (unfinished && !page.index_error) setTimeout(() => { if (requested === state.params && !state.stopped) showUnits(true); }, 2500);
    } catch (error) { fill(list, errorBox(error)); }
  }

  function moveFocus(step) {
    const rows = [...list.querySelectorAll("tr[data-unit]")];
    if (!rows.length) return;
    state.focused = Math.max(0, Math.min(rows.length - 1, state.focused + step));
    rows[state.focused].querySelector("a").focus();
    rows[state.focused].scrollIntoView({ block: "nearest" });
  }
  const turnPage = (which) => pages.querySelector(`[aria-label="${which} page"]`)?.click();
  shortcuts({
    "/": { what: "search", run: () => search.focus() }, j: { what: "next unit, or situation", run: () => (onGrid() ? grid.move(1) : moveFocus(1)) }, k: { what: "previous unit, or situation", run: () => (onGrid() ? grid.move(-1) : moveFocus(-1)) },
    Enter: { what: "open the unit", run: () => list.querySelectorAll("tr[data-unit]")[Math.max(0, state.focused)]?.querySelector("a").click() },
    n: { what: "next page", run: () => turnPage("next") }, p: { what: "previous page", run: () => turnPage("previous") },
    c: { what: "clear all filters", run: clearAll }, v: drawerRows(list, run, () => state.params, () => state.measure), Escape: { what: "clear search and filters", run: clearAll },
    ...Object.fromEntries(TABS.map((tab, index) => [index + 1, { what: tab, run: () => go("/run", tabParams(tab)) }])),
  });
  const described = showAbout().catch((error) => { state.stopped = true; stopWatching(); fill(main, h("div", { class: "page" }, h("h1", {}, run), errorBox(error))); });
  showTab();
  const stopWatching = watchRun(run, async () => {
    await Promise.all([showAbout(), tabOf(state.params) === "units" ? showUnits(true) : null, findingsShown ? refreshFindings() : null]);
  });
  return { stop: () => { state.stopped = true; stopWatching(); }, update: (next) => { if ((next.get("run") || run) !== run) return false; state.params = next; showTab(); return true; } };
}

function titleOf({ facets, id }) { return titleParts(facets, id); }

// A right or wrong answer in words, where one judge or rule says so; otherwise the number.
function scoreColumn(measure) {
  if (measure?.kind === "correct") return (row) => (row.score === 1 ? h("span", { class: "right" }, "right") : row.score === 0 ? h("span", { class: "wrong" }, "wrong") : number(row.score));
  return (row) => number(row.score);
}

function verdict(row) {
  const identity = row.choice === "A" || row.choice === "B" ? row.facets[`identity_${row.choice.toLowerCase()}`] : null;
  return row.choice === null ? "–" : identity ? h("span", {}, row.choice, " ", h("bdi", { class: "muted" }, identity)) : row.choice;
}
