// One run: its figures, its units, and every facet a filter. The address holds all of it.
import { get } from "./api.js";
import { asShare, intervals, progress } from "./charts.js";
import { day, embedded, fill, go, h, link, money, named, number, plural, say, share, signed, whole } from "./dom.js";
import { button, cautions, crumbs, follow, heading, pager, shortcuts, trouble, waiting } from "./widgets.js";

const NAMES = { "d.status": "status", "d.choice": "verdict", "d.flip": "when shown in the other order", "d.changed": "between rounds", "d.parse": "worst reply", "d.tag": "tag" };
const SORTS = [["position", "plan"], ["score", "score"], ["margin", "margin A − B"], ["choice", "verdict"], ["flip", "flip"], ["parse", "reply status"], ["tokens", "tokens"], ["latency", "latency"], ["cost", "cost"], ["id", "name"]];
const SHORT = 8;

export function runPage(main, params) {
  const run = params.get("run") || (embedded ? embedded.name : "");
  crumbs(h("span", {}, run));
  heading(run);
  const about = h("section", { class: "about" }, waiting());
  const figures = h("details", { class: "figures", open: true }, h("summary", {}, "Figures"), h("div", { class: "charts" }, waiting("computing…")));
  const filters = h("aside", { class: "filters", "aria-label": "Filters" });
  const bar = h("div", { class: "bar-tools" });
  const list = h("div", { class: "list" }, waiting());
  const state = { params, found: null, at: -1, open: new Set(), wide: new Set() };
  fill(main, h("div", { class: "page" }, about, figures, h("div", { class: "split" }, filters, h("section", { class: "units" }, bar, list))));

  const change = (edit, replace = false) => {
    const next = new URLSearchParams(state.params);
    next.delete("page");
    edit(next);
    go("/run", next, { replace });
  };
  const put = (key, value) => change((next) => (value ? next.set(key, value) : next.delete(key)));
  const toggle = (key, value) => change((next) => {
    const kept = next.getAll(key).filter((one) => one !== value);
    const had = next.getAll(key).includes(value);
    next.delete(key);
    for (const one of had ? kept : [...kept, value]) next.append(key, one);
  });

  let typed;
  const search = h("input", { type: "search", placeholder: "Search all that was said…", "aria-label": "Search the text of all messages", value: params.get("q") || "",
    title: 'words are all wanted; "a phrase", begin*, -without',
    oninput: () => { clearTimeout(typed); typed = setTimeout(() => change((next) => (search.value ? next.set("q", search.value) : next.delete("q")), true), 180); } });
  const asked = h("input", { type: "checkbox", onchange: () => put("asked", asked.checked ? "1" : "") });
  const judge = h("select", { "aria-label": "Whose verdict", onchange: () => put("judge", judge.value) });
  const [low, high] = ["low", "high"].map((key) => h("input", { type: "number", step: "any", class: "narrow", "aria-label": key === "low" ? "lowest score" : "highest score", placeholder: key === "low" ? "from" : "to", value: params.get(key) || "", onchange: (event) => put(key, event.target.value) }));
  const sort = h("select", { "aria-label": "Order by", onchange: () => put("sort", sort.value === "position" ? "" : sort.value) });
  const desc = button("↑", () => put("desc", state.params.get("desc") ? "" : "1"), { "aria-label": "turn the order around" });
  const count = h("p", { class: "count", role: "status" });
  const pages = h("div", {});
  bar.append(h("div", { class: "row grow" }, search, h("label", { class: "check" }, asked, " also the prompts")),
    h("div", { class: "row" }, h("label", {}, "as seen by ", judge), h("span", { class: "together" }, "score ", low, " ", high), h("span", { class: "together" }, "order ", sort, desc)),
    h("div", { class: "row spread" }, count, pages));

  async function showAbout() {
    const found = await get("run", { run });
    if (found.broken) { fill(main, h("div", { class: "page" }, h("h1", {}, run), h("p", { class: "notice bad" }, found.broken))); return; }
    const exported = new URLSearchParams(state.params);
    fill(about, 
      h("div", { class: "row spread" }, h("h1", {}, run, h("span", { class: `pill ${found.state}` }, found.state)),
        embedded ? h("p", { class: "muted" }, "a part of a run, exported") : h("div", { class: "row actions" },
          link("/compare", { run }, { class: "button" }, "Compare"), link("/label", { run }, { class: "button" }, "Label"),
          h("a", { class: "button", href: "/api/export?" + exported, download: "", id: "export" }, "Export"),
          h("a", { class: "button", href: "/api/notes?" + new URLSearchParams({ run, format: "csv" }), download: "" }, "Notes"))),
      h("p", { class: "facts" }, h("strong", {}, found.study), found.suite ? ` · ${found.suite}` : "", " · ", h("bdi", {}, found.models.join(", "))),
      progress(found.units),
      h("p", { class: "muted" }, [`${whole(found.units.done)} of ${plural(found.units.done + found.units.failed + found.units.planned, "unit")} done`,
        found.units.failed ? `${found.units.failed} failed` : null, plural(found.calls, "call"), `${whole(found.tokens)} tokens`, money(found.cost), day(found.started)].filter(Boolean).join(" · ")),
      found.errors.map((one) => h("p", { class: "error" }, `${plural(one.units, "unit")}: ${one.error}`)));
  }

  async function showFigures() {
    const box = figures.querySelector(".charts");
    try {
      const found = await get("headline", { run });
      about.querySelectorAll(".caution").forEach((one) => one.remove());
      about.append(...cautions(found.cautions || []));
      const pick = (row) => change((next) => { next.delete("f.identity"); if (!row.label.startsWith("(")) next.set("f.identity", row.label); });
      const parts = [];
      const models = new Set([...(found.scores || []), ...(found.win_rates || [])].map((row) => row.model));
      const by = (row) => (models.size > 1 ? ` · ${row.model}` : "");
      if (found.scores) {
        const overall = found.scores.filter((row) => row.metric === "all");
        parts.push(intervals(overall.map((row) => ({ ...row, group: row.category, label: row.identity + by(row) })), { title: "Mean score, single candidates (95% intervals over scenarios)", onpick: pick }));
        parts.push(intervals(found.differences.map((row) => ({ ...row, group: row.category, label: `${row.first} − ${row.second}${by(row)}` })), { title: "Differences on the same answers (95%)", at: 0, format: signed }));
      }
      if (found.win_rates) parts.push(intervals(found.win_rates.map((row) => ({ ...row, group: row.category, label: row.identity + by(row) })), { title: "Win rates in pairs, ties left out (95% over scenarios)", at: 0.5, format: asShare, onpick: pick }));
      if (!parts.length && !found.in_words?.length) parts.push(h("p", { class: "muted" }, found.why_none || "no figures"));
      fill(box, ...parts, h("div", { class: "words" }, (found.in_words || []).map((line) => h("p", {}, line))));
    } catch (error) { fill(box, trouble(error)); }
  }

  function showFilters() {
    const groups = state.found.filters.map(({ key, values }) => {
      const chosen = state.params.getAll(key);
      const name = NAMES[key] || key.slice(2).replaceAll("_", " ");
      const open = chosen.length || state.open.has(key) || values.length <= 5;
      const shown = state.wide.has(key) ? values : values.filter(([value, n], at) => chosen.includes(value) || at < SHORT || (n && values.length <= SHORT + 3));
      const rows = shown.map(([value, n]) => h("label", { class: n || chosen.includes(value) ? "" : "nothing" },
        h("input", { type: "checkbox", checked: chosen.includes(value), onchange: () => toggle(key, value) }), h("bdi", {}, named(value)), h("span", { class: "n" }, whole(n))));
      const box = h("details", { open: Boolean(open), "data-filter": key, ontoggle: (event) => (event.target.open ? state.open.add(key) : state.open.delete(key)) },
        h("summary", {}, name, chosen.length ? h("span", { class: "pill" }, String(chosen.length)) : ""), rows,
        values.length > shown.length ? button(`${values.length - shown.length} more…`, () => { state.wide.add(key); showFilters(); }, { class: "plain" }) : "");
      return box;
    });
    const active = [...state.params].filter(([key]) => /^[fd]\./.test(key));
    const focused = document.activeElement?.closest?.(".filters label")?.textContent;
    fill(filters, h("div", { class: "row spread" }, h("h2", {}, "Filters"), active.length ? button("clear", () => change((next) => { for (const [key] of active) next.delete(key); }), { class: "plain" }) : ""), ...groups);
    if (focused) [...filters.querySelectorAll("label")].find((one) => one.textContent === focused)?.querySelector("input").focus();
  }

  function showRows() {
    const found = state.found;
    const facets = [...new Set(found.rows.flatMap((row) => Object.keys(row.facets)))].filter((name) => new Set(found.rows.map((row) => row.facets[name] ?? null)).size > 1 && !/_[ab]$|^base$/.test(name));
    const has = (key) => found.rows.some((row) => row[key] !== null && row[key] !== undefined);
    const sorted = state.params.get("sort") || "position";
    const column = (key, label, show, number_like) => ({ key, label, show, number_like });
    const columns = [
      ...facets.slice(0, 6).map((name) => column(`f.${name}`, name.replaceAll("_", " "), (row) => h("bdi", {}, row.facets[name] ?? ""))),
      has("score") && column("score", "score", (row) => number(row.score), true),
      has("margin") && column("margin", "A − B", (row) => signed(row.margin), true),
      has("choice") && column("choice", "verdict", (row) => verdict(row)),
      has("flip") && column("flip", "other order", (row) => (row.flip === "flipped" ? h("span", { class: "pill warn" }, "flipped") : row.flip || "–")),
      has("tokens") && column("tokens", "tokens", (row) => whole(row.tokens), true),
    ].filter(Boolean);
    const head = columns.map((one) => h("th", { scope: "col", class: one.number_like ? "num" : "", "aria-sort": sorted === one.key ? (state.params.get("desc") ? "descending" : "ascending") : null },
      button(one.label + (sorted === one.key ? (state.params.get("desc") ? " ↓" : " ↑") : ""), () => change((next) => {
        if (sorted === one.key) next.get("desc") ? next.delete("desc") : next.set("desc", "1");
        else { next.set("sort", one.key); one.number_like ? next.set("desc", "1") : next.delete("desc"); }
      }), { class: "plain" })));
    const rows = found.rows.map((row) => {
      const there = new URLSearchParams(state.params);
      there.set("run", run); there.set("unit", row.id);
      const marks = [row.status === "failed" ? h("span", { class: "pill bad" }, "failed") : row.status === "planned" ? h("span", { class: "pill" }, "to come") : null,
        ["unscored", "refused", "unparsed"].includes(row.parse) ? h("span", { class: "pill bad" }, row.parse) : row.parse === "repaired" ? h("span", { class: "pill warn" }, "repaired") : null,
        row.tags.map((tag) => h("span", { class: "pill tag" }, tag))];
      return h("tr", { "data-unit": row.id },
        h("th", { scope: "row" }, link("/unit", there, { mark: row.excerpt ? `m${row.excerpt.seq}` : "", class: "unit" }, h("bdi", {}, row.id)), " ", marks,
          row.error ? h("div", { class: "error" }, row.error) : ""),
        columns.map((one) => h("td", { class: one.number_like ? "num" : "", "data-label": one.label }, one.show(row))));
    });
    const around = (row) => row.excerpt ? h("tr", { class: "around" }, h("td", { colspan: columns.length + 1 }, h("div", { class: "excerpt", dir: "auto" }, h("b", {}, row.excerpt.speaker), " ", row.excerpt.cut ? "…" : "", emphasised(row.excerpt.text, state.params.get("q")), "…"))) : "";
    fill(list, rows.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Units" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "unit"), head)), h("tbody", {}, rows.map((row, at) => [row, around(found.rows[at])]))))
      : h("p", { class: "muted" }, "No unit is like this. ", button("clear everything", () => go("/run", { run }), { class: "plain" })));
    state.at = -1;
  }

  async function showUnits() {
    const mine = state.params;
    try {
      const given = new URLSearchParams(mine);
      given.set("run", run);
      const found = await get("units", given);
      if (mine !== state.params) return;
      state.found = found;
      fill(judge, h("option", { value: "" }, "the panel"), ...found.judges.map((name) => h("option", { value: name }, name)));
      judge.value = mine.get("judge") || "";
      const facets = [...new Set(found.rows.flatMap((row) => Object.keys(row.facets)))];
      fill(sort, ...SORTS.map(([key, name]) => h("option", { value: key }, name)), ...facets.map((name) => h("option", { value: `f.${name}` }, name.replaceAll("_", " "))));
      sort.value = mine.get("sort") || "position";
      desc.textContent = mine.get("desc") ? "↓" : "↑";
      asked.checked = Boolean(mine.get("asked"));
      if (document.activeElement !== search) search.value = mine.get("q") || "";
      if (document.activeElement !== low) low.value = mine.get("low") || "";
      if (document.activeElement !== high) high.value = mine.get("high") || "";
      const behind = found.trouble ? ` · ${found.trouble}` : found.loading ? " · reading the run…" : found.looked < found.done ? ` · looked at ${whole(found.looked)} of ${whole(found.done)}, the rest follows` : "";
      count.textContent = `${found.matching === found.total ? plural(found.total, "unit") : `${whole(found.matching)} of ${plural(found.total, "unit")}`}${behind}`;
      fill(pages, pager(Number(mine.get("page") || 0), 50, found.matching, mine));
      if (about.querySelector("#export")) about.querySelector("#export").href = "/api/export?" + given;
      const seen = JSON.stringify([found.rows, found.filters]);
      if (seen !== state.seen) { showFilters(); showRows(); }
      state.seen = seen;
      if (behind && !found.trouble) setTimeout(() => { if (mine === state.params && !stopped) showUnits(); }, found.loading ? 500 : 2500);
    } catch (error) { fill(list, trouble(error)); }
  }

  function move(step) {
    const rows = [...list.querySelectorAll("tr[data-unit]")];
    if (!rows.length) return;
    state.at = Math.max(0, Math.min(rows.length - 1, state.at + step));
    rows[state.at].querySelector("a").focus();
    rows[state.at].scrollIntoView({ block: "nearest" });
  }
  const turnPage = (step) => { const next = Number(state.params.get("page") || 0) + step; if (next >= 0 && next * 50 < state.found.matching) { const to = new URLSearchParams(state.params); next ? to.set("page", next) : to.delete("page"); go("/run", to); } };
  const keys = () => shortcuts({
    "/": { what: "search", run: () => search.focus() }, j: { what: "next unit", run: () => move(1) }, k: { what: "previous unit", run: () => move(-1) },
    Enter: { what: "read it", run: () => list.querySelectorAll("tr[data-unit]")[Math.max(0, state.at)]?.querySelector("a").click() },
    n: { what: "next page", run: () => turnPage(1) }, p: { what: "previous page", run: () => turnPage(-1) },
    c: { what: "clear the filters", run: () => go("/run", { run }) },
  });
  let stopped = false;
  keys();
  showAbout().then(showFigures).catch((error) => fill(about, trouble(error)));
  showUnits();
  const stop = follow(run, async () => { await Promise.all([showAbout().then(showFigures), showUnits()]); say("updated"); });
  return { stop: () => { stopped = true; stop(); }, update: (next) => { if ((next.get("run") || run) !== run) return false; state.params = next; showUnits(); return true; } };
}

function verdict(row) {
  const who = row.choice === "A" || row.choice === "B" ? row.facets[`identity_${row.choice.toLowerCase()}`] : null;
  return row.choice === null ? "–" : who ? h("span", {}, row.choice, " ", h("bdi", { class: "muted" }, who)) : row.choice;
}

export function emphasised(text, query) {
  const words = ((query || "").match(/-?"[^"]+"|\S+/g) || []).filter((word) => !word.startsWith("-")).map((word) => word.replaceAll('"', "").replace(/\*$/, "")).filter(Boolean);
  if (!words.length) return [text];
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  return text.split(pattern).map((piece, at) => (at % 2 ? h("mark", {}, piece) : piece));
}
