// Two units side by side, turn by turn: scores beside scores, with the words marked that only one of them has.
import { get } from "./api.js";
import { alignedRows, markDifferences, mostlyDifferent } from "./diff.js";
import { fill, h, link, number, signed, unique } from "./dom.js";
import { saidTexts } from "./echo.js";
import { facetName, facetValue, knowFacets, unitTitle } from "./facets.js";
import { isLongTask, parsedReply, roundName, saidView, speakerColour, speakerName } from "./message.js";
import { readUnit, unitsOf } from "./units.js";
import { verdictLine } from "./verdict.js";
import { breadcrumbs, errorBox, loading, mainMeasure, setTitle, shortcuts, speakerIndex } from "./widgets.js";

const CONTEXT = 90; // characters of a long task before and after a difference

const differingFacets = (a, b) => unique([...Object.keys(a.facets), ...Object.keys(b.facets)]).filter((key) => a.facets[key] !== b.facets[key]);

export function pairPage(main, params) {
  const runs = [params.get("run"), params.get("run2") || params.get("run")];
  breadcrumbs(link("/run", { run: runs[0] }, {}, h("bdi", {}, runs[0])), "side by side");
  setTitle("Side by side");
  shortcuts({ u: { what: "back", run: () => history.back() } });
  const page = h("div", { class: "page wide" }, loading());
  fill(main, page);

  function head(unit, side, differing, verdict) {
    return h("div", { class: "side-head" }, h("h2", {}, link("/unit", { run: runs[side], unit: unit.id }, { title: unit.id }, h("bdi", {}, unitTitle(unit.facets, unit.id)))), runs[0] === runs[1] ? "" : h("p", { class: "muted" }, h("bdi", {}, runs[side])),
      h("p", {}, differing.filter((key) => key in unit.facets).map((key) => h("span", { class: "pill warn" }, `${facetName(key)}: ${facetValue(key, unit.facets[key])}`))),
      h("p", { class: "verdict" }, h("bdi", {}, verdict)));
  }

  // What was said, as words where it was parsed: its scores have a table of their own.
  function said(message) { return message && (saidTexts(message).join("\n\n") || message.text); }

  function messageSide(row, side, index) {
    const message = row[side];
    if (!message) return h("div", { class: "message muted" }, "No message");
    const [a, b] = row.map(said);
    const identical = a === b && !message.expected; // the text of a ballot is only its likeliest option
    const [compared, long] = [!identical && !message.expected && row[1 - side] !== null, isLongTask(message)];
    const prose = (context) => message.expected ? saidView(message) : h("div", { class: "prose", dir: "auto" }, compared ? markDifferences(a, b, "AB"[side], context) : said(message));
    return h("div", { class: `message ${message.role === "narrator" ? "narrator" : "agent"}`, vars: speakerColour(message, index(message.speaker)) },
      h("header", {}, speakerName(message, index(message.speaker)), h("span", { class: "muted" }, roundName(message)), identical ? h("span", { class: "pill" }, "identical") : compared && mostlyDifferent(a, b) ? h("span", { class: "pill" }, "most words differ, so none are marked") : ""),
      long && compared ? prose(CONTEXT) : "",
      long ? h("details", { class: "task" }, h("summary", {}, h("span", {}, identical ? "the same text on both sides" : "the whole text")), prose()) : prose());
  }

  // The numbers that were read from a row's messages, one below the other with their difference.
  function scoreTable(units, row, names) {
    const read = units.map(({ verdicts }, side) => verdicts.filter(({ seq, value }) => row[side] && seq === row[side].seq && value !== null));
    const nameOf = ({ judge, subject, metric }) => [row.some((message) => message?.speaker === judge) ? "" : judge, subject, metric].filter(Boolean).join(" · ");
    const metrics = unique(read.flat().map(nameOf));
    if (!metrics.length) return row.some((message) => message?.parsed) ? row.map((message) => h("div", { class: "parsed" }, parsedReply(message?.parsed))) : "";
    const line = (metric) => {
      const [x, y] = read.map((verdicts) => verdicts.find((verdict) => nameOf(verdict) === metric)?.value ?? null);
      return h("tr", {}, h("th", { scope: "row" }, metric), [x, y].map((value) => h("td", {}, number(value))), h("td", {}, x === null || y === null ? "–" : h("b", {}, signed(runs[0] === runs[1] ? x - y : y - x))));
    };
    return h("table", { class: "scores both" }, h("thead", {}, h("tr", {}, h("td", {}), names.map((name) => h("th", { scope: "col" }, h("bdi", {}, name))), h("th", { scope: "col" }, h("bdi", {}, (runs[0] === runs[1] ? names : [...names].reverse()).join(" − "))))), h("tbody", {}, metrics.map(line)));
  }

  async function show() {
    try {
      const [summary, table, ...units] = await Promise.all([get("run", { run: runs[0] }), unitsOf(runs[0]), ...["unit", "unit2"].map((key, side) => readUnit(runs[side], params.get(key), new URLSearchParams()))]);
      knowFacets(summary);
      // As in the report, the label that the plan has first comes first, so that no pair has two directions.
      const only = runs[0] === runs[1] ? differingFacets(...units) : [];
      const place = ({ facets }) => (only.length === 1 ? table.facets.get(only[0])?.labels.indexOf(facets[only[0]]) ?? 0 : 0);
      const [a, b] = units.sort((one, other) => place(one) - place(other));
      const index = speakerIndex(unique([...a.messages, ...b.messages].filter((message) => message.role !== "narrator").map((message) => message.speaker)));
      const differing = differingFacets(a, b);
      const names = differing.length === 1 ? [a, b].map(({ facets }) => facetValue(differing[0], facets[differing[0]] ?? "")) : runs[0] === runs[1] ? ["left", "right"] : runs;
      const verdicts = [a, b].map((unit) => verdictLine(unit, mainMeasure(summary))); // none while a run is being indexed
      const rows = alignedRows(a.messages, b.messages, ({ role, speaker, round, step = "" }) => JSON.stringify([role, speaker, round, step]));
      fill(page, h("h1", {}, "Side by side"), h("div", { class: "pair-row heads" }, [a, b].map((unit, side) => head(unit, side, differing, verdicts.every(Boolean) ? verdicts[side] : ""))),
        rows.map((row) => h("div", { class: "pair-row" }, [0, 1].map((side) => messageSide(row, side, index)), scoreTable([a, b], row, names))));
    } catch (error) { fill(page, errorBox(error)); }
  }
  show();
  return { stop: () => {} };
}
