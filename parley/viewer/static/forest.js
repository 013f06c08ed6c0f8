// Forest plots: the lines that answer one question on a shared axis, each a link to the units behind it.
import { h, link, number, percent, pValue, signed, svg, unique } from "./dom.js";

const LEVEL = 0.05; // a corrected p-value that is not above it is marked by colour

// Round numbers from min to max, about `count` of them.
function ticks(min, max, count = 5) {
  const rough = (max - min) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(min / step - 1e-9);
  return Array.from({ length: Math.floor(max / step + 1e-9) - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function decimals(step) { return Math.max(0, Math.min(4, -Math.floor(Math.log10(step) + 1e-9) + (/25/.test(String(step)) ? 1 : 0))); }

// The same axis for all rows: a function from values to percent of the width, and its ticks.
function axisOf(plot) {
  const ends = plot.lines.flatMap((line) => [line.low ?? line.estimate, line.high ?? line.estimate]);
  if (plot.reference !== null) ends.push(plot.reference);
  let [min, max] = [Math.min(...ends), Math.max(...ends)];
  const margin = (max - min || Math.abs(max) || 1) * 0.06;
  [min, max] = [min - margin, max + margin];
  if (plot.scale === "share" && plot.reference !== 0) [min, max] = [Math.max(0, min), Math.min(1, max)];
  const marks = ticks(min, max);
  return { x: (value) => (100 * (value - min)) / (max - min), marks, digits: decimals(marks.length > 1 ? marks[1] - marks[0] : 1) };
}

export function formats(plot, digits = 2) {
  const withSign = plot.reference === 0;
  if (plot.scale === "share") return { value: withSign ? (value) => `${signed(100 * value, 1)}%` : percent, tick: percent };
  // As in the report's sentences: one decimal where a value is as large as 20.
  const places = plot.lines.some((line) => [line.estimate, line.low, line.high].some((end) => Math.abs(end ?? 0) >= 20)) ? 1 : 2;
  return { value: (value) => (withSign ? signed : number)(value, places), tick: (value) => number(value, digits) };
}

// As in the report's sentences: an interval that excludes 0 does not end at a rounded one.
function ends({ low, high }, value, reference) {
  const excludes = reference === 0 && low * high > 0;
  if (excludes && value(low) === value(0)) return `above 0, up to ${number(high, 2)}`;
  if (excludes && value(high) === value(0)) return `below 0, down to ${value(low)}`;
  return `${value(low)} to ${value(high)}`;
}

// `unitsOf` gives the address parameters of the units behind an estimate, or null; `asked` says whether the page has just
// asked the plot's question.
export function forestPlot(plot, unitsOf, { asked = false } = {}) {
  const { x, marks, digits } = axisOf(plot);
  const format = formats(plot, digits);
  const grid = [...marks.map((mark) => ({ at: mark, class: "grid" })), ...(plot.reference === null ? [] : [{ at: plot.reference, class: "reference" }])];
  const tested = plot.lines.some((line) => line.p_adjusted !== null);
  const withInterval = plot.lines.some((line) => line.low !== null);
  const interval = plot.lines.some((line) => line.simultaneous) ? "simultaneous 95% CI" : "95% CI";
  const alone = plot.lines.length === 1 && !withInterval; // one dot on an axis says less than its number
  let group = "";
  // A group's lines stand together, below one heading.
  const order = unique(plot.lines.map((line) => line.group));
  const rows = [...plot.lines].sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group)).flatMap((line) => {
    const heading = line.group && line.group !== group ? h("tr", { class: "group" }, h("th", { colspan: 5, scope: "rowgroup" }, h("bdi", {}, line.group))) : null;
    group = line.group;
    const sure = line.low !== null && line.high !== null;
    const apart = line.p_adjusted !== null && line.p_adjusted <= LEVEL;
    const bar = svg("svg", { class: `bar ${apart ? "apart" : ""}`, "aria-hidden": "true" },
      grid.map((mark) => svg("line", { x1: `${x(mark.at)}%`, x2: `${x(mark.at)}%`, y1: "0", y2: "100%", class: mark.class })),
      sure ? svg("line", { x1: `${x(line.low)}%`, x2: `${x(line.high)}%`, y1: "50%", y2: "50%", class: "span" }) : null,
      svg("circle", { cx: `${x(line.estimate)}%`, cy: "50%", r: 4, class: sure ? "dot" : "dot hollow" }));
    const units = unitsOf(line);
    const label = units ? link("/run", units, { title: "show these units" }, h("bdi", {}, line.label)) : h("bdi", {}, line.label);
    return [heading, h("tr", {}, h("th", { scope: "row" }, label), h("td", { class: "wide" }, alone ? "" : units ? link("/run", units, { class: "mark", tabindex: "-1", "aria-hidden": "true" }, bar) : bar),
      h("td", { class: "num" }, format.value(line.estimate)),
      h("td", { class: "num interval" }, sure ? ends(line, format.value, plot.reference) : "no interval"),
      h("td", { class: "num p" }, !tested ? "" : line.p_adjusted === null ? "–" : pValue(line.p_adjusted)))];
  });
  const scale = h("div", { class: "axis", "aria-hidden": "true" }, marks.map((mark) => h("span", { vars: { left: `${x(mark)}%` } }, format.tick(mark))));
  const table = h("table", {}, h("colgroup", {}, ["label", "wide", "estimate", "ci", "p"].map((name) => h("col", { class: name }))), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "what")), h("th", { scope: "col", class: "wide" }, plot.axis), h("th", { scope: "col", class: "num" }, "estimate"), h("th", { scope: "col", class: "num" }, withInterval ? interval : ""), h("th", { scope: "col", class: "num" }, tested ? "p" : ""))),
    h("tbody", {}, rows), alone ? "" : h("tfoot", { "aria-hidden": "true" }, h("tr", {}, h("td", {}), h("td", { class: "wide" }, scale), h("td", { colspan: 3 }))));
  return h("figure", { class: "forest", "data-plot": plot.name }, h("figcaption", { class: asked ? "unseen" : "" }, plot.question), table, plot.note ? h("p", { class: "muted" }, plot.note) : "");
}
