// Two runs, or two values of a facet within one: the largest differences first; then two units side by side.
import { get } from "./api.js";
import { badge } from "./charts.js";
import { fill, go, h, link, named, number, signed, whole } from "./dom.js";
import { marked } from "./diff.js";
import { parsed } from "./message.js";
import { button, crumbs, heading, shortcuts, trouble, voices, waiting } from "./widgets.js";

export function comparePage(main, params) {
  const run = params.get("run");
  crumbs(link("/run", { run }, {}, h("bdi", {}, run)), "compare");
  heading(`compare ${run}`);
  shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
  const page = h("div", { class: "page" }, waiting());
  fill(main, page);
  const put = (changes) => { const next = new URLSearchParams(params); for (const [key, value] of Object.entries(changes)) value ? next.set(key, value) : next.delete(key); if (!("page" in changes)) next.delete("page"); go("/compare", next); };

  async function show() {
    try {
      const [{ runs }, found] = await Promise.all([get("runs"), get("compare", params)]);
      const [facet, x, y, other] = ["facet", "x", "y", "with"].map((key) => params.get(key) || "");
      const choose = (label, value, options, onpick) => h("label", {}, label, " ", h("select", { onchange: (event) => onpick(event.target.value) }, h("option", { value: "" }, "–"), options.map((one) => h("option", { value: one, selected: one === value }, named(one)))));
      const values = found.facets[facet] || [];
      const nothing = !other && !(facet && x && y);
      fill(page, h("h1", {}, "Compare"),
        h("div", { class: "row" }, choose("this run with", other, runs.map((one) => one.name).filter((name) => name !== run), (value) => put({ with: value, facet: "", x: "", y: "" })),
          h("span", { class: "muted" }, "or within it"), choose("facet", facet, Object.keys(found.facets), (value) => put({ facet: value, x: "", y: "", with: "" })),
          facet ? choose("", x, values, (value) => put({ x: value })) : "", facet ? choose("against", y, values, (value) => put({ y: value })) : "",
          choose("as seen by", params.get("judge") || "", found.judges, (value) => put({ judge: value }))),
        nothing ? h("p", { class: "muted" }, "Choose another run, or a facet and two of its values. Units are matched by their name, or by all their other facets.") : table(found, other));
    } catch (error) { fill(page, trouble(error)); }
  }

  function table(found, other) {
    const [left, right] = other ? [run, other] : [params.get("x"), params.get("y")];
    const at = Number(params.get("page") || 0);
    return [
      h("p", {}, `${whole(found.matched)} units are in both`, found.mean === null ? "." : `; on ${whole(found.scored)} with scores, `, found.mean === null ? "" : h("span", {}, h("bdi", {}, named(right)), " is ", h("b", {}, signed(found.mean)), " from ", h("bdi", {}, named(left)), " on average"),
        found.chosen ? `; the verdict is the same in ${whole(found.alike)} of ${whole(found.chosen)}.` : "."),
      h("p", { class: "muted" }, "A description of these units. For a test with its interval, see the report."),
      h("div", { class: "scroll" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["unit", left, right, "difference", "verdicts"].map((one, n) => h("th", { scope: "col", class: n && n < 4 ? "num" : "" }, h("bdi", {}, named(one)))))),
        h("tbody", {}, found.rows.map(({ a, b, gap }) => h("tr", {},
          h("th", { scope: "row" }, link("/pair", { run, unit: a.id, run2: other || run, unit2: b.id }, {}, h("bdi", {}, a.id)), a.id === b.id ? "" : h("div", { class: "muted" }, h("bdi", {}, b.id))),
          h("td", { class: "num" }, number(a.score)), h("td", { class: "num" }, number(b.score)), h("td", { class: "num" }, h("b", {}, signed(gap))),
          h("td", {}, a.choice || b.choice ? (a.choice === b.choice ? a.choice : h("span", { class: "pill warn" }, `${a.choice || "–"} → ${b.choice || "–"}`)) : "–")))))),
      h("div", { class: "row" }, button("←", () => put({ page: String(at - 1 || "") }), { disabled: at === 0, "aria-label": "previous page" }), button("→", () => put({ page: String(at + 1) }), { disabled: (at + 1) * 50 >= found.matched, "aria-label": "next page" })),
    ];
  }
  show();
  return { stop: () => {} };
}

export function pairPage(main, params) {
  const [run, run2] = [params.get("run"), params.get("run2") || params.get("run")];
  crumbs(link("/run", { run }, {}, h("bdi", {}, run)), "side by side");
  heading("side by side");
  shortcuts({ u: { what: "back", run: () => history.back() } });
  const page = h("div", { class: "page wide" }, waiting());
  fill(main, page);

  async function show() {
    try {
      const [a, b] = await Promise.all([get("unit", { run, unit: params.get("unit") }), get("unit", { run: run2, unit: params.get("unit2") })]);
      const index = voices([...new Set([...a.messages, ...b.messages].filter((one) => one.role !== "narrator").map((one) => one.speaker))]);
      const length = Math.max(a.messages.length, b.messages.length);
      const head = (name, unit, other) => h("div", { class: "side-head" }, h("h2", {}, link("/unit", { run: name, unit: unit.id }, {}, h("bdi", {}, unit.id))), h("p", { class: "muted" }, name),
        h("p", {}, Object.entries(unit.facets).filter(([key, value]) => other.facets[key] !== value).map(([key, value]) => h("span", { class: "pill warn" }, `${key.replaceAll("_", " ")}: ${named(value)}`))));
      const rows = [];
      for (let at = 0; at < length; at++) rows.push(h("div", { class: "pair-row" }, side(a.messages[at], b.messages[at], "before"), side(b.messages[at], a.messages[at], "after")));
      fill(page, h("h1", {}, "Side by side"), h("div", { class: "pair-row heads" }, head(run, a, b), head(run2, b, a)), rows);

      function side(mine, other, which) {
        if (!mine) return h("div", { class: "message muted" }, "nothing");
        const same = other && mine.text === other.text;
        const long = mine.role === "narrator" && mine.text.length > 700;
        const theirs = other ? other.text : "";
        const text = same ? [mine.text] : which === "before" ? marked(mine.text, theirs, which) : marked(theirs, mine.text, which);
        return h("div", { class: `message ${mine.role === "narrator" ? "narrator" : "voice"}`, vars: { "--voice": mine.role === "narrator" ? "var(--line)" : `var(--voice-${index(mine.speaker) % 6})` } },
          h("header", {}, h("span", { class: "who" }, mine.role === "narrator" ? "To the table" : [badge(index(mine.speaker)), h("bdi", {}, mine.speaker)]), h("span", { class: "muted" }, `round ${mine.round}`), same ? h("span", { class: "pill" }, "the same") : ""),
          long ? h("details", { class: "opening" }, h("summary", {}, h("span", {}, same ? "the same for both" : "what was asked, with what differs")), h("div", { class: "prose", dir: "auto" }, text)) : h("div", { class: "prose", dir: "auto" }, text), mine.parsed ? h("div", { class: "parsed" }, parsed(mine.parsed)) : "");
      }
    } catch (error) { fill(page, trouble(error)); }
  }
  show();
  return { stop: () => {} };
}
