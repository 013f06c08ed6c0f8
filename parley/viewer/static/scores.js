// The scores of a unit as one matrix of dots: judges by rounds, all on the same scale, with an axis.
import { badge, shape, speakerStyle } from "./charts.js";
import { h, mean, number, svg, unique } from "./dom.js";
import { distributionOf, expectedValues, isSilent } from "./verdict.js";

const FLAGS = new Set(["accepted", "agreed", "discordant"]); // yes or no, not a score
const METRIC_NAMES = { named: "biases named", probability: "probability of each option" };
const SIDES = { A: { colour: "var(--speaker-0)", kind: "circle" }, B: { colour: "var(--speaker-1)", kind: "diamond" } };

// Verdicts that are scores of a panel: not an evaluator's, a rule's, or the number of a chosen option.
function panelScores(unit) {
  const scores = unit.verdicts.filter(({ value, text, role, metric }) => value !== null && text === null && !["evaluator", "coordinator"].includes(role) && !FLAGS.has(metric) && !metric.startsWith("search_"));
  // A referee gives ranks too, which are not on the scale of its scores.
  return scores.some(({ metric, role }) => metric === "bias" && role === "referee") ? scores.filter(({ metric }) => metric === "bias") : scores;
}

// The scale that was asked for, where the unit says so; log-odds have none, and 0 is in their middle.
function scaleOf(unit, scores) {
  const values = scores.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (scores.every(({ metric }) => metric === "probability")) return [0, 1];
  if (scores.every(({ metric }) => metric === "log-odds")) { const end = Math.max(1, Math.ceil(Math.max(-low, high))); return [-end, end]; }
  const options = distributionOf(expectedValues(unit), scores[0].metric).map(([option]) => option);
  const asked = (options.length ? [options[0], options.at(-1)] : (unit.facets.scale || "").split("-")).map(Number);
  if (asked.length === 2 && asked[0] < asked[1] && asked[0] <= low && high <= asked[1]) return asked;
  return low >= 0 && high <= 10 ? [0, 10] : low >= 0 && high <= 100 ? [0, 100] : [Math.floor(low), Math.ceil(high)];
}

// An option of a question by its words; its number is that of the published order.
function rowName({ fields, facets }, row) {
  const place = (facets.order || "").indexOf(row);
  return (facets.label !== undefined && row !== "" && place >= 0 && (fields["abc"[place]] ?? fields[`ans${place}`])) || row || "score";
}

export function scoreMatrix(unit, index, identityOf) {
  const scores = panelScores(unit);
  const metrics = unique(scores.map(({ metric }) => metric));
  // A mean of metrics is meaningful only if the same end of all is better, which RLDF's rubrics do not satisfy.
  if (metrics.length > 1 && metrics.includes("BS")) return metrics.map((metric) => matrixOf(unit, scores.filter((score) => score.metric === metric), index, identityOf));
  return scores.length ? matrixOf(unit, scores, index, identityOf) : "";
}

// Rows are judges if they score candidates, and otherwise what is scored: speakers, options, framings.
function matrixOf(unit, scores, index, identityOf) {
  const byJudge = scores.every(({ subject }) => ["", "A", "B"].includes(subject));
  const [rowKey, markKey] = byJudge ? ["judge", "subject"] : ["subject", "judge"];
  const rows = unique(scores.map((score) => score[rowKey]));
  // Where each row has one mark in one round only, rounds and marks say nothing more.
  const once = !byJudge && rows.length === scores.length;
  if (once) scores = scores.map((score) => ({ ...score, round: 1, judge: "" }));
  const [marks, rounds] = [unique(scores.map((score) => score[markKey])), unique(scores.map(({ round }) => round)).sort((a, b) => a - b)];
  if (rows.length * rounds.length * marks.length === 1) return ""; // one dot says less than the line above it
  const [low, high] = scaleOf(unit, scores);
  const percent = (value) => `${5 + (90 * (value - low)) / (high - low)}%`;
  const steps = [5, 4, 6, 3, 7, 2].find((count) => (high - low) % count === 0) || 5; // whole numbers where possible
  const ticks = Array.from({ length: steps + 1 }, (_, n) => low + ((high - low) * n) / steps);
  const silent = isSilent(unit);
  // A judge has its own colour and shape where nothing else needs one.
  const ownStyle = byJudge && marks.length === 1;
  const styleOf = (mark, nth, row = null) => {
    if (ownStyle) { const { colour, shape: kind } = row === null ? { colour: "var(--ink)", shape: "circle" } : speakerStyle(index(row)); return { colour, kind }; }
    return (byJudge && SIDES[mark]) || { colour: `var(--speaker-${nth % 6})`, kind: ["circle", "diamond", "square", "triangle"][nth % 4] };
  };
  const markName = (mark) => (byJudge ? [mark, identityOf(mark)].filter(Boolean).join(" · ") : mark);
  const choices = unit.verdicts.filter(({ metric, text }) => metric === "preferred" && text !== null);
  const choiceOf = (judge, round) => choices.find((choice) => choice.judge === judge && choice.round === round)?.text;
  const values = (row, mark, round) => scores.filter((score) => (row === null || score[rowKey] === row) && score[markKey] === mark && score.round === round);
  const showMetrics = unique(scores.map(({ metric }) => metric)).length > 1;

  function cell(row, round) {
    const previous = rounds[rounds.indexOf(round) - 1];
    const said = [];
    const drawn = marks.map((mark, nth) => {
      const own = values(row, mark, round);
      if (!own.length) return "";
      const { colour, kind } = styleOf(mark, nth, row);
      const y = marks.length > 1 ? 9 + (14 * nth) / (marks.length - 1) : 16;
      const value = mean(own.map((score) => score.value));
      const before = previous === undefined ? [] : values(row, mark, previous);
      const metricsInWords = showMetrics && row !== null ? ` (${own.map((score) => `${score.metric} ${number(score.value, Number.isInteger(score.value) ? 0 : 2)}`).join(", ")})` : "";
      said.push(`${mark ? `${mark} ` : ""}${number(value)}${metricsInWords}`);
      return [
        before.length ? svg("line", { x1: percent(mean(before.map((score) => score.value))), x2: percent(value), y1: y, y2: y, stroke: colour, "stroke-width": 1.5, opacity: 0.5 }) : "",
        showMetrics && row !== null ? unique(own.map((score) => score.value)).map((one) => svg("circle", { cx: percent(one), cy: y, r: 2, fill: colour, opacity: 0.45 })) : "",
        svg("svg", { x: percent(value), y, class: "dot", "aria-hidden": "true" }, shape(kind, 0, 0, row === null ? 5.5 : 4.5, colour)),
      ];
    });
    const choice = row !== null && byJudge ? choiceOf(row, round) : null;
    if (choice) said.push(choice === "tie" ? "a tie" : `prefers ${choice}`);
    const text = said.join("; ") || "no readable score";
    return [h("td", { class: "strip" }, svg("svg", { class: "strip-plot", role: "img", "aria-label": text }, svg("title", {}, text), ticks.map((tick) => svg("line", { x1: percent(tick), x2: percent(tick), y1: 0, y2: 32, class: "grid" })), drawn)),
      choices.length ? h("td", { class: "chosen" }, row === null ? "" : choice || "–") : ""];
  }

  const axis = () => [h("td", { class: "strip" }, svg("svg", { class: "axis", "aria-hidden": "true" }, ticks.map((tick) => svg("text", { x: percent(tick), y: 12, class: "tick", "text-anchor": "middle" }, number(tick, Number.isInteger(tick) ? 0 : 1))))), choices.length ? h("td", {}) : ""];
  const line = (row, name) => h("tr", {}, h("th", { scope: "row" }, name), rounds.map((round) => cell(row, round)));
  const title = scores.every(({ metric }) => metric === scores[0].metric) ? METRIC_NAMES[scores[0].metric] || scores[0].metric : "scores";
  return h("figure", { class: "matrix" },
    h("figcaption", {}, `${title.charAt(0).toUpperCase() + title.slice(1)}${once ? "" : ` by ${byJudge ? "judge" : "speaker"}${silent ? "" : " and round"}`}, ${number(low, 0)} to ${number(high, 0)}`),
    once ? "" : h("p", { class: "legend" }, ownStyle ? "" : marks.map((mark, nth) => { const { colour, kind } = styleOf(mark, nth); return h("span", {}, svg("svg", { class: "badge", viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, shape(kind, 8, 8, 5.5, colour)), h("bdi", {}, markName(mark))); }),
      showMetrics ? h("span", { class: "muted" }, "large: mean of the metrics, small: single metrics") : "", rounds.length > 1 ? h("span", { class: "muted" }, "lines: from the round before") : ""),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix of scores" }, h("table", { vars: { "--rounds": rounds.length } },
      h("thead", {}, h("tr", {}, h("td", {}), rounds.map((round) => [h("th", { scope: "col" }, once ? "" : round === 0 && expectedValues(unit) ? "silent ballot" : `Round ${round}`), choices.length ? h("th", { scope: "col", class: "chosen" }, "prefers") : ""]))),
      h("tbody", {}, rows.map((row) => line(row, [ownStyle ? badge(index(row)) : "", h("bdi", {}, rowName(unit, row))])), byJudge && rows.length > 1 ? line(null, h("b", {}, "all judges")) : ""),
      h("tfoot", {}, h("tr", { "aria-hidden": "true" }, h("td", {}), rounds.map(axis))))));
}
