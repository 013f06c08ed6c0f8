// Small charts: sparklines, progress, a ballot's probabilities. Each also gives its numbers as text.
import { h, number, percent, svg, unique } from "./dom.js";
import { distributionOf } from "./verdict.js";

// Okabe and Ito's colours can be told apart with any colour vision; each speaker also has a shape.
const SHAPES = ["circle", "square", "diamond", "triangle", "ring", "cross"];

export function speakerStyle(index) { return { colour: `var(--speaker-${index % 6})`, shape: SHAPES[index % SHAPES.length] }; }

export function shape(kind, x, y, r, colour) {
  const props = { fill: colour, class: "shape" };
  if (kind === "circle") return svg("circle", { cx: x, cy: y, r, ...props });
  if (kind === "ring") return svg("circle", { cx: x, cy: y, r: r * 0.8, fill: "none", stroke: colour, "stroke-width": r * 0.6 });
  if (kind === "square") return svg("rect", { x: x - r * 0.85, y: y - r * 0.85, width: r * 1.7, height: r * 1.7, ...props });
  if (kind === "diamond") return svg("path", { d: `M${x} ${y - r * 1.2}L${x + r * 1.2} ${y}L${x} ${y + r * 1.2}L${x - r * 1.2} ${y}Z`, ...props });
  if (kind === "triangle") return svg("path", { d: `M${x} ${y - r * 1.1}L${x + r * 1.1} ${y + r}L${x - r * 1.1} ${y + r}Z`, ...props });
  return svg("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`, stroke: colour, "stroke-width": r * 0.7 });
}

export function badge(index) {
  const { colour, shape: kind } = speakerStyle(index);
  return svg("svg", { class: "badge", viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, shape(kind, 8, 8, 5.5, colour));
}

// Lines over rounds or iterations. Series are { name, index, points: [[round, value], …] }.
export function sparkline(series, { title, low = null, high = null, step = "round" }) {
  const points = series.flatMap((line) => line.points);
  if (!points.length) return null;
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const [y0, y1] = [low ?? Math.min(...ys), high ?? Math.max(...ys)];
  const [width, height, left, top] = [300, 120, 30, 10];
  const px = (x) => left + (x1 === x0 ? 0.5 : (x - x0) / (x1 - x0)) * (width - left - 16);
  const py = (y) => top + (1 - (y1 === y0 ? 0.5 : (y - y0) / (y1 - y0))) * (height - top - 24);
  const rounds = unique(xs).sort((a, b) => a - b);
  const inWords = ({ name, points: line }) => `${name}: ${line.map(([x, y]) => `${step} ${x} ${number(y, 1)}`).join(", ")}`;
  const lines = series.map((line) => {
    const { colour, shape: kind } = speakerStyle(line.index);
    return svg("g", {}, svg("title", {}, inWords(line)),
      svg("polyline", { points: line.points.map(([x, y]) => `${px(x)},${py(y)}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }),
      line.points.map(([x, y]) => shape(kind, px(x), py(y), 4, colour)));
  });
  const textAnchor = (x) => (rounds.length === 1 ? "middle" : x === x0 ? "start" : x === x1 ? "end" : "middle");
  return h("figure", { class: "spark" }, h("figcaption", {}, title),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${series.map(inWords).join("; ")}` },
      [y0, y1].map((y) => [svg("line", { x1: left, x2: width - 8, y1: py(y), y2: py(y), class: "grid" }),
        svg("text", { x: left - 6, y: py(y) + 4, class: "tick", "text-anchor": "end" }, number(y, Number.isInteger(y) ? 0 : 1))]),
      rounds.map((x) => svg("text", { x: px(x), y: height - 6, class: "tick", "text-anchor": textAnchor(x) }, rounds.length > 3 ? String(x) : `${step} ${x}`)),
      lines));
}

export function progress(units) {
  const total = units.done + units.failed + units.planned || 1;
  const text = `${units.done} of ${total} done${units.failed ? `, ${units.failed} failed` : ""}`;
  return h("div", { class: "progress", role: "img", "aria-label": text, title: text },
    h("span", { class: "done", vars: { width: `${(100 * units.done) / total}%` } }),
    h("span", { class: "failed", vars: { width: `${(100 * units.failed) / total}%` } }));
}

// Bars with their numbers: what the judge would have said, and how probably.
export function distribution(expected) {
  const metric = Object.keys(expected || {}).find((path) => path.includes("="))?.split("=")[0];
  const options = distributionOf(expected, metric);
  if (!options.length) return "";
  const highest = Math.max(...options.map(([, probability]) => probability)) || 1;
  return h("ol", { class: "distribution", "aria-label": "Probability of each score" }, options.map(([option, probability]) => h("li", {}, h("span", { class: "bar-space" }, h("span", { class: "bar-fill", vars: { height: `${(100 * probability) / highest}%` } })), h("span", {}, percent(probability)), h("b", {}, option))));
}
