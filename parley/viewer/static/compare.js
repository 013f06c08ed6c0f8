// Two runs, or two values of a facet within one, largest differences first; and two units side by side.
import { get } from "./api.js";
import { facetName, fill, go, h, integer, link, number, orNone, plural, signed, unique } from "./dom.js";
import { markChanges } from "./diff.js";
import { isLongTask, parsedReply, speakerColour, speakerName } from "./message.js";
import { breadcrumbs, errorBox, loading, pager, setTitle, shortcuts, speakerIndex } from "./widgets.js";

export function comparePage(main, params) {
  const run = params.get("run");
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "compare");
  setTitle(`Compare ${run}`);
  shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
  const page = h("div", { class: "page" }, loading());
  fill(main, page);

  const change = (changes) => {
    const next = new URLSearchParams(params);
    next.delete("page");
    for (const [key, value] of Object.entries(changes)) value ? next.set(key, value) : next.delete(key);
    go("/compare", next);
  };

  function chooser(label, value, options, onpick, unset = "–") {
    return h("label", {}, label, " ", h("select", { onchange: (event) => onpick(event.target.value) }, h("option", { value: "" }, unset), options.map((option) => h("option", { value: option, selected: option === value }, orNone(option)))));
  }

  async function show() {
    try {
      const [{ runs }, comparison] = await Promise.all([get("runs"), get("compare", params)]);
      const [facet, x, y, other] = ["facet", "x", "y", "with"].map((key) => params.get(key) || "");
      const values = comparison.facets[facet] || [];
      const chosen = other || (facet && x && y);
      fill(page, h("h1", {}, "Compare"),
        h("div", { class: "row" }, chooser("with run", other, runs.map(({ name }) => name).filter((name) => name !== run), (value) => change({ with: value, facet: "", x: "", y: "" })),
          chooser("or by facet", facet, Object.keys(comparison.facets), (value) => change({ facet: value, x: "", y: "", with: "" })),
          facet ? chooser("from", x, values, (value) => change({ x: value })) : "", facet ? chooser("to", y, values, (value) => change({ y: value })) : "",
          chooser("judged by", params.get("judge") || "", comparison.judges, (value) => change({ judge: value }), "the panel")),
        chosen ? table(comparison, other) : h("p", { class: "muted" }, "Choose another run, or a facet and two of its values. Units of two runs are matched by id; units of one run are matched by all other facets."));
    } catch (error) { fill(page, errorBox(error)); }
  }

  function table(comparison, other) {
    const [left, right] = (other ? [run, other] : [params.get("x"), params.get("y")]).map(orNone);
    const { matched, scored, mean_difference, with_choice, same_choice } = comparison;
    return [
      h("p", {}, `${plural(matched, "matched pair")}.`,
        mean_difference === null ? "" : [" Mean difference ", h("bdi", {}, right), " − ", h("bdi", {}, left), ": ", h("b", {}, signed(mean_difference)), ` (${plural(scored, "pair")} with scores).`],
        with_choice ? ` Same verdict in ${integer(same_choice)} of ${plural(with_choice, "pair")}.` : ""),
      h("p", { class: "muted" }, "This describes these units only. For intervals and tests, see the report."),
      h("div", { class: "scroll" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["unit", left, right, "difference", "verdicts"].map((name, column) => h("th", { scope: "col", class: column && column < 4 ? "num" : "" }, h("bdi", {}, name))))),
        h("tbody", {}, comparison.rows.map(({ a, b, difference }) => h("tr", {},
          h("th", { scope: "row" }, link("/pair", { run, unit: a.id, run2: other || run, unit2: b.id }, {}, h("bdi", {}, a.id)), a.id === b.id ? "" : h("div", { class: "muted" }, h("bdi", {}, b.id))),
          h("td", { class: "num" }, number(a.score)), h("td", { class: "num" }, number(b.score)), h("td", { class: "num" }, h("b", {}, signed(difference))),
          h("td", {}, a.choice || b.choice ? (a.choice === b.choice ? a.choice : h("span", { class: "pill warn" }, `${a.choice || "–"} → ${b.choice || "–"}`)) : "–")))))),
      pager(Number(params.get("page") || 0), matched, "/compare", params),
    ];
  }
  show();
  return { stop: () => {} };
}

export function pairPage(main, params) {
  const [run, run2] = [params.get("run"), params.get("run2") || params.get("run")];
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, run)), "side by side");
  setTitle("Side by side");
  shortcuts({ u: { what: "back", run: () => history.back() } });
  const page = h("div", { class: "page wide" }, loading());
  fill(main, page);

  function unitHead(name, unit, other) {
    const differing = Object.entries(unit.facets).filter(([key, value]) => other.facets[key] !== value);
    return h("div", { class: "side-head" }, h("h2", {}, link("/unit", { run: name, unit: unit.id }, {}, h("bdi", {}, unit.id))), h("p", { class: "muted" }, name),
      h("p", {}, differing.map(([key, value]) => h("span", { class: "pill warn" }, `${facetName(key)}: ${orNone(value)}`))));
  }

  function messageSide(message, other, side, index) {
    if (!message) return h("div", { class: "message muted" }, "no message");
    const identical = other && message.text === other.text;
    const otherText = other ? other.text : "";
    const text = identical ? [message.text] : side === "before" ? markChanges(message.text, otherText, side) : markChanges(otherText, message.text, side);
    const prose = h("div", { class: "prose", dir: "auto" }, text);
    return h("div", { class: `message ${message.role === "narrator" ? "narrator" : "agent"}`, vars: speakerColour(message, index(message.speaker)) },
      h("header", {}, speakerName(message, index(message.speaker)), h("span", { class: "muted" }, `round ${message.round}`), identical ? h("span", { class: "pill" }, "identical") : ""),
      isLongTask(message) ? h("details", { class: "task" }, h("summary", {}, h("span", {}, identical ? "the same text on both sides" : "text with the differences marked")), prose) : prose,
      message.parsed ? h("div", { class: "parsed" }, parsedReply(message.parsed)) : "");
  }

  async function show() {
    try {
      const [a, b] = await Promise.all([get("unit", { run, unit: params.get("unit") }), get("unit", { run: run2, unit: params.get("unit2") })]);
      const index = speakerIndex(unique([...a.messages, ...b.messages].filter((message) => message.role !== "narrator").map((message) => message.speaker)));
      const rows = Array.from({ length: Math.max(a.messages.length, b.messages.length) }, (_, n) => h("div", { class: "pair-row" },
        messageSide(a.messages[n], b.messages[n], "before", index), messageSide(b.messages[n], a.messages[n], "after", index)));
      fill(page, h("h1", {}, "Side by side"), h("div", { class: "pair-row heads" }, unitHead(run, a, b), unitHead(run2, b, a)), rows);
    } catch (error) { fill(page, errorBox(error)); }
  }
  show();
  return { stop: () => {} };
}
