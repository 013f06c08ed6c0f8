// All runs of the folder, as a table that can be sorted; chosen runs can be compared.
import { get } from "./api.js";
import { age, bytes, dateTime, fill, go, h, integer, link, money, plural, unique } from "./dom.js";
import { breadcrumbs, button, errorBox, loading, scrollTable, setTitle, shortcuts } from "./widgets.js";

const ANSWERS_SHOWN = 2; // of a report's questions
const COLUMNS = [
  { key: "name", label: "run", value: (run) => run.name },
  { key: "study", label: "study", value: (run) => run.study },
  { key: "model", label: "model", value: (run) => run.models?.join(", ") },
  { key: "units", label: "units", value: (run) => run.units?.done, numeric: true },
  { key: "finding", label: "headline", value: (run) => run.found?.headline?.distance, numeric: true },
  { key: "cost", label: "cost", value: (run) => run.cost, numeric: true },
  { key: "started", label: "age", value: (run) => run.started, numeric: true },
  { key: "state", label: "state", value: (run) => run.state },
];

export function runsPage(main, params) {
  breadcrumbs();
  setTitle("Runs");
  const list = h("div", { class: "list" }, loading());
  const title = h("h1", {}, "Runs");
  const search = h("input", { type: "search", placeholder: "Find a run…", "aria-label": "Find a run by name, study or model", oninput: () => draw(),
    onkeydown: (event) => { if (event.key === "Escape" && search.value) { event.preventDefault(); search.value = ""; draw(); } } });
  const compare = button("Compare", () => openComparison(), { class: "strong", disabled: true, title: "choose two or more runs of the same study" });
  fill(main, h("div", { class: "page" }, h("div", { class: "row spread" }, title, h("div", { class: "row grow end" }, search, compare)), list));
  const state = { params, runs: new Map(), chosen: new Set(), focused: -1, stopped: false, drawn: "" };

  async function refresh() {
    try {
      const { folder, rows } = await get("runs", { rows: 1 });
      title.textContent = `Runs in ${folder}/`;
      state.runs = new Map(rows.map((run) => [run.name, run]));
      for (const name of state.chosen) if (!state.runs.has(name)) state.chosen.delete(name);
      if (!rows.length) return fill(list, h("p", { class: "muted" }, "No runs yet. Start one with ", h("code", {}, "parley run malibu --suite quick"), "; it will appear here. To look around first: ", h("code", {}, "parley view --example"), " shows a real run."));
      draw();
    } catch (error) { fill(list, errorBox(error)); }
  }

  function sorted() {
    const { key, descending } = sorting();
    const column = COLUMNS.find((candidate) => candidate.key === key);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (run) => [run.name, run.study, run.suite, run.state, ...(run.models || []), run.broken ? "broken" : ""].join(" ").toLowerCase();
    const rows = [...state.runs.values()].filter((run) => words.every((word) => text(run).includes(word)));
    const missing = (value) => value === null || value === undefined;
    return rows.map((run, place) => ({ run, place, value: column?.value(run) })).sort((a, b) =>
      Boolean(a.run.broken) - Boolean(b.run.broken)
      || (column ? missing(a.value) - missing(b.value) || (a.value < b.value ? -1 : a.value > b.value ? 1 : 0) * (descending ? -1 : 1) : 0)
      || a.place - b.place).map(({ run }) => run);
  }

  function sorting() { return { key: state.params.get("sort") || "", descending: Boolean(state.params.get("desc")) }; }

  function sortBy({ key, numeric }) {
    const now = sorting();
    const next = new URLSearchParams({ sort: key });
    if (now.key === key ? !now.descending : numeric) next.set("desc", "1");
    go("/", next, { replace: true });
  }

  function openComparison() {
    const [run, ...others] = [...state.runs.keys()].filter((name) => state.chosen.has(name));
    go("/compare", [["run", run], ...others.map((name) => ["with", name])]);
  }

  function choose(name, chosen) {
    if (chosen) state.chosen.add(name);
    else state.chosen.delete(name);
    showChoice();
  }

  function showChoice() {
    const studies = unique([...state.chosen].map((name) => state.runs.get(name)?.study));
    compare.disabled = state.chosen.size < 2 || studies.length > 1;
    compare.textContent = state.chosen.size > 1 ? `Compare ${state.chosen.size} runs` : "Compare";
    compare.title = studies.length > 1 ? "only runs of the same study can be compared" : "choose two or more runs of the same study";
  }

  function draw() {
    const rows = sorted();
    const drawn = JSON.stringify([rows, [...state.params], [...state.chosen], Math.floor(Date.now() / 30000)]);
    if (drawn === state.drawn || state.stopped) return;
    state.drawn = drawn;
    const focusedRun = document.activeElement?.closest?.("tr[data-run]")?.dataset.run;
    const wasCheckbox = document.activeElement?.matches?.("input[type=checkbox]");
    const { key, descending } = sorting();
    const head = COLUMNS.map((column) => h("th", { scope: "col", class: `col-${column.key} ${column.numeric ? "num" : ""}`, "aria-sort": key === column.key ? (descending ? "descending" : "ascending") : null },
      button(column.label + (key === column.key ? (descending ? " ↓" : " ↑") : ""), () => sortBy(column), { class: "plain" })));
    fill(list, scrollTable("Runs", [h("th", { scope: "col", class: "choose" }, h("span", { class: "unseen" }, "choose")), head], rows.map(row), { class: "table runs" }));
    if (!rows.length) fill(list, h("p", { class: "muted" }, "No run matches."));
    if (focusedRun) list.querySelector(`tr[data-run="${CSS.escape(focusedRun)}"] ${wasCheckbox ? "input" : "a"}`)?.focus();
    showChoice();
  }

  function row(run) {
    const name = link("/run", { run: run.name }, { class: "unit" }, h("bdi", {}, run.name));
    if (run.unread) return h("tr", { "data-run": run.name }, h("td", { class: "choose" }), h("th", { scope: "row" }, name), h("td", { colspan: 7, class: "muted" }, "…"));
    if (run.broken) return h("tr", { "data-run": run.name, class: "broken" }, h("td", { class: "choose" }), h("th", { scope: "row" }, h("bdi", {}, run.name)),
      h("td", { colspan: 6 }, h("span", { class: "error" }, run.broken), h("span", { class: "muted" }, ` ${bytes(run.size || 0)}`)), h("td", {}, h("span", { class: "pill bad" }, "broken")));
    const { done, planned, failed } = run.units;
    const total = done + planned + failed;
    return h("tr", { "data-run": run.name },
      h("td", { class: "choose" }, h("input", { type: "checkbox", checked: state.chosen.has(run.name), "aria-label": `choose ${run.name}`, onchange: (event) => choose(run.name, event.target.checked) })),
      h("th", { scope: "row" }, name, run.errors.length ? h("div", { class: "error" }, `${plural(run.errors[0].units, "unit")}: ${run.errors[0].error}`) : ""),
      h("td", {}, run.study, run.suite ? h("span", { class: "muted" }, ` ${run.suite}`) : ""),
      h("td", { class: "model" }, run.models.map((model) => h("div", {}, h("bdi", { title: model }, model.split("?")[0])))),
      h("td", { class: "num", "data-label": "units" }, done === total ? integer(done) : `${integer(done)} of ${integer(total)}`, failed ? h("div", { class: "error" }, `${integer(failed)} failed`) : ""),
      h("td", { class: "num finding" }, finding(run.found)),
      h("td", { class: "num" }, run.cost === null ? h("span", { class: "muted" }, "unknown") : money(run.cost)),
      h("td", { class: "num", title: dateTime(run.started) }, age(run.started)),
      h("td", {}, h("span", { class: `pill ${run.state}` }, run.state)));
  }

  function moveFocus(step) {
    const links = [...list.querySelectorAll("tbody th a")];
    if (!links.length) return;
    state.focused = Math.max(0, Math.min(links.length - 1, state.focused + step));
    links[state.focused].focus();
  }
  const toggleFocused = () => document.activeElement?.closest("tr[data-run]")?.querySelector("input")?.click();
  shortcuts({
    "/": { what: "find a run", run: () => search.focus() }, j: { what: "next run", run: () => moveFocus(1) }, k: { what: "previous run", run: () => moveFocus(-1) },
    x: { what: "choose the run for comparison", run: toggleFocused }, c: { what: "compare the chosen runs", run: () => compare.click() },
    Escape: { what: "clear the search and the choice", run: () => { search.value = ""; state.chosen.clear(); draw(); } },
  });
  const poll = async () => { if (state.stopped) return; if (!document.hidden) await refresh(); setTimeout(poll, [...state.runs.values()].some(({ unread }) => unread) ? 0 : 1500); };
  poll();
  return { stop: () => { state.stopped = true; }, update: (next) => { state.params = next; draw(); return true; } };
}

function finding(found) {
  if (!found || found.pending) return h("span", { class: "muted" }, "computing…");
  const { headline, also, unavailable, cautions } = found;
  if (!headline) return h("span", { class: "muted" }, unavailable || "–");
  // Where the main question has no answer, another one may have.
  const others = headline.shown ? [] : also || [];
  // A caution comes before the number that it is about, here by the beginning of its sentence.
  const before = (cautions || []).map((line) => h("div", { class: "caution", title: line }, h("b", {}, "Caution: "), h("bdi", {}, line.split(/ \(|: |\. /)[0])));
  return [...before, [headline, ...others].slice(0, ANSWERS_SHOWN).map(({ shown, answer, question }) => [h("div", { class: shown ? "" : "muted" }, h("bdi", {}, headline.prefix + answer)), h("div", { class: "muted" }, question)])
    .concat(others.length >= ANSWERS_SHOWN ? h("div", { class: "muted" }, `and ${plural(others.length + 1 - ANSWERS_SHOWN, "other finding")}`) : [])];
}
