// The first tab of a run: cautions, the headline, a forest plot for each question, what else the report says, figures.
import { get } from "./api.js";
import { embedded, fill, h } from "./dom.js";
import { forestPlot } from "./forest.js";
import { cautions, errorBox, loading } from "./widgets.js";

function pictureAddress(run, name) {
  return embedded ? "data:image/svg+xml;charset=utf-8," + encodeURIComponent(embedded.pictures[name]) : "/api/figure?" + new URLSearchParams({ run, name });
}

function picture(run, { name, caption }) {
  return h("figure", { class: "picture" }, h("img", { src: pictureAddress(run, name), alt: caption, loading: "lazy" }), h("figcaption", { class: "muted" }, caption));
}

// The filters that show the units behind an estimate.
function unitParams(run, { units }) {
  const facets = Object.entries(units || {});
  if (!facets.length) return null;
  const params = new URLSearchParams({ run, tab: "units" });
  for (const [name, values] of facets) for (const value of values) params.append(/^[fd]\./.test(name) ? name : `f.${name}`, value);
  return params;
}

function words(sentences) {
  if (!sentences.length) return "";
  return h("section", { class: "words", "aria-label": "In words" }, h("h2", {}, "In words"), h("ul", {}, sentences.map((line) => h("li", {}, line))));
}

// Shows what the run found in `box`; called again whenever the run changes. Returns whether it is still being computed.
export async function showFindings(box, run) {
  let found;
  try { found = await get("headline", { run }); } catch (error) { fill(box, errorBox(error)); return false; }
  const { forests = [], figures = [], sentences = [] } = found;
  if (found.pending) { fill(box, loading("The report is being computed…")); return true; }
  const empty = !forests.length && !figures.length && !sentences.length;
  const pictures = figures.map((figure) => picture(run, figure));
  fill(box, cautions(found.cautions || []),
    empty ? h("p", { class: "notice" }, found.unavailable || "This run has no figures.") : "",
    found.headline ? h("p", { class: "lead" }, found.headline.text) : "",
    h("div", { class: forests.length || pictures.length ? "findings" : "" },
      h("div", { class: "plots" }, forests.map((plot) => forestPlot(plot, (line) => unitParams(run, line))),
        !pictures.length ? "" : forests.length ? h("details", { class: "all-figures" }, h("summary", {}, `All figures of the report (${pictures.length})`), pictures) : pictures),
      words(sentences)));
  return false;
}
