// One unit: what was judged, the scores, who repeated whom, and the conversation by round.
import { get, post } from "./api.js";
import { badge, sparkline } from "./charts.js";
import { address, announce, currentPage, dateTime, embedded, fill, go, h, integer, link, orNone, plural, remembered, unique } from "./dom.js";
import { echoInWords, findEchoes } from "./echo.js";
import { facetName, facetValue, knowFacets, unitTitle } from "./facets.js";
import { draftComparisons, materialView } from "./material.js";
import { isHeard, messageView, noteForm, noteList } from "./message.js";
import { scoreMatrix } from "./scores.js";
import { readUnit } from "./units.js";
import { isSilent, verdictLine } from "./verdict.js";
import { breadcrumbs, button, copy, download, errorBox, loading, mainMeasure, permalink, setTitle, shortcuts, speakerIndex, watchRun } from "./widgets.js";

const HEARD = ({ facets }) => `A control, as earlier versions made them: before round 2 the judges were told the scores of ballots on the same answer${facets.heard ? ` under the label "${facets.heard}"` : ""}, not those of round 1. These ballots do not count as verdicts here.`;

export function unitPage(main, params) {
  const [run, id] = [params.get("run") || (embedded ? embedded.name : ""), params.get("unit")];
  const runParams = new URLSearchParams(params);
  runParams.delete("unit");
  runParams.set("tab", "units");
  breadcrumbs(link("/run", runParams, {}, h("bdi", {}, run)), h("bdi", { class: "current" }, id));
  setTitle(id);
  const page = h("div", { class: "page reading" }, loading());
  fill(main, page);
  let [unit, measure] = [null, null];

  async function show(keepScroll, again = false) {
    try {
      const [found, summary] = await Promise.all([readUnit(run, id, params, again), get("run", { run })]);
      [unit, measure] = [found, mainMeasure(summary)];
      knowFacets(summary);
    } catch (error) { return fill(page, errorBox(error)); }
    const top = window.scrollY;
    draw();
    if (keepScroll) window.scrollTo(0, top);
    else scrollToAnchor();
  }

  function scrollToAnchor() {
    const { anchor } = currentPage();
    const message = anchor && document.getElementById(anchor);
    if (message) { message.classList.add("linked"); message.scrollIntoView({ block: "center" }); message.focus({ preventScroll: true }); }
    else window.scrollTo(0, 0);
  }

  function paramsOf(other) { const next = new URLSearchParams(params); next.set("unit", other); return next; }

  function draw() {
    const { neighbours, messages, notes } = unit;
    const index = speakerIndex(unique(messages.filter((message) => message.role !== "narrator").map((message) => message.speaker)));
    const redraw = () => show(true);
    const neighbour = (other, label, key) => (other ? link("/unit", paramsOf(other), { class: "button", title: `shortcut: ${key}` }, label) : h("span", { class: "button off" }, label));
    const facets = Object.entries(unit.facets).filter(([, value]) => value !== "");
    const isLoop = messages.some((message) => message.role === "generator");
    const roundTitle = (round, inRound) => (isLoop ? `Iteration ${round}` : round > 0 ? `Round ${round}` : isSilent(unit) ? "Silent ballot" : inRound.some((message) => message.expected) ? "Silent ballots, before anybody speaks" : inRound.every((message) => message.role === "narrator") ? "Task" : "Opening");
    const title = unitTitle(unit.facets, unit.id);
    breadcrumbs(link("/run", runParams, {}, h("bdi", {}, run)), h("bdi", { class: "current" }, title));
    setTitle(title);
    const material = materialView(unit);
    const echoes = findEchoes(unit);
    const [instructions, beginnings] = [new Map(), new Set()];
    const heard = messages.filter(isHeard);
    // Where another prompt began in the same way, the end of one says more.
    const beginsAlike = ({ role, text }) => role === "narrator" && beginnings.has(text.slice(0, 110)) || !beginnings.add(text.slice(0, 110));
    const sameAs = ({ role, text, seq }) => { if (role !== "narrator") return undefined; if (instructions.has(text)) return instructions.get(text); instructions.set(text, seq); return undefined; };
    fill(page,
      h("div", { class: "row spread" },
        h("h1", { class: "unit-title" }, h("bdi", {}, title)),
        h("div", { class: "row actions" }, neighbour(neighbours.previous, "← previous", "["), neighbours.total ? h("span", { class: "muted" }, `${integer(neighbours.index + 1)} of ${integer(neighbours.total)}`) : "", neighbour(neighbours.next, "next →", "]"), embedded || isRead() ? "" : button("Mark as read", markRead, { title: "shortcut: r" }))),
      h("p", { class: "verdict" }, h("bdi", {}, verdictLine(unit, measure))),
      h("p", { class: "muted" }, h("bdi", { class: "unit-id" }, unit.id), [unit.status, isSilent(unit) ? "silent ballot" : unit.stop_reason, plural(messages.length, "message"), unit.finished_at ? dateTime(unit.finished_at) : null].filter(Boolean).map((fact) => ` · ${fact}`).join("")),
      heard.length ? h("p", { class: "muted" }, HEARD(unit)) : "",
      h("details", { class: "folded" }, h("summary", {}, `What the id stands for: ${plural(facets.length, "facet")}`), h("dl", { class: "facets" }, facets.map(([key, value]) => h("div", {}, h("dt", {}, facetName(key)), h("dd", {}, h("bdi", {}, facetValue(key, value))))))),
      unit.error ? h("p", { class: "error" }, unit.error) : "",
      otherLabels(),
      neighbours.other_order ? h("p", { class: "row actions" }, link("/pair", { run, unit: unit.id, run2: run, unit2: neighbours.other_order }, { class: "button" }, "Compare with the other order")) : "",
      material,
      overview(index),
      echoList(echoes),
      personaList(index),
      draftComparisons(unit),
      noteList(run, notes.filter((note) => note.seq === null), redraw),
      embedded ? "" : noteForm(run, unit.id, null, redraw),
      unique(messages.map((message) => message.round)).map((round) => {
        const inRound = messages.filter((message) => message.round === round && !isHeard(message));
        const heading = roundTitle(round, inRound);
        const shown = (message) => messageView(unit, message, { run, params, index: index(message.speaker), notes: notes.filter((note) => note.seq === message.seq), changed: redraw, echo: echoes.get(message.seq) || null, again: sameAs(message), alike: beginsAlike(message), folded: Boolean(material) || round > 0 });
        return [h("section", { class: inRound.filter((message) => message.expected).length > 1 ? "round ballots" : "round", "aria-label": heading }, h("h2", { class: "round-title" }, heading), inRound.map(shown)),
          heard.length && round === 1 ? h("section", { class: "round", "aria-label": "Heard before round 2" }, h("h2", { class: "round-title" }, "Heard before round 2"), h("p", { class: "muted" }, HEARD(unit)), heard.map(shown)) : ""];
      }),
      h("div", { class: "row actions" },
        button("Download JSON", () => download(`${unit.id.replaceAll(/[^\w.-]+/g, "_")}.json`, JSON.stringify(unit, null, 2), "application/json")),
        button("Copy text", () => copy(messages.map((message) => `[${message.round}] ${message.role === "narrator" && !isHeard(message) ? "prompt" : message.speaker}: ${message.text}`).join("\n\n"), "conversation")),
        button("Copy link", () => copy(permalink("/unit", { run, unit: unit.id }, ""), "link")),
        button("Print", () => window.print())));
  }

  function isRead() { return unit.notes.some(({ seq, tag }) => seq === null && tag === "read"); }

  async function markRead() {
    if (embedded || !unit || isRead()) return;
    try { await post("notes", { run }, { unit: unit.id, seq: null, tag: "read", comment: "", author: remembered("name") }); await show(true); } catch (error) { announce(error.message); }
  }

  // The units that differ from this one in one label only, each beside this one with a click.
  function otherLabels() {
    return Object.entries(unit.labels || {}).map(([name, units]) => h("p", { class: "row actions" }, `Compare with another ${facetName(name)}: `, Object.entries(units).map(([value, id]) => link("/pair", { run, unit: unit.id, run2: run, unit2: id }, { class: "button small", title: id }, h("bdi", {}, facetValue(name, value))))));
  }

  // Who repeated whom, a line for each message; it also says so if judges heard each other and nobody did.
  function echoList(echoes) {
    const heard = unit.messages.some((message) => ["debater", "chair"].includes(message.role) && message.calls.some(({ prompt }) => prompt.some(([, source]) => source !== message.speaker && unit.messages.some((other) => other.speaker === source && other.role === "debater"))));
    if (!heard) return "";
    const lines = [...echoes].map(([seq, echo]) => { const message = unit.messages.find((one) => one.seq === seq); return h("li", {}, h("a", { href: `#m${seq}`, onclick: (event) => { event.preventDefault(); showMessage(seq); } }, h("bdi", {}, message.speaker), `, round ${message.round}`), ` ${echoInWords(echo).join(", and ")}`); });
    return h("section", { class: "echoes", "aria-label": "Who repeated whom" }, h("h2", {}, "Who repeated whom"),
      lines.length ? h("ul", {}, lines) : h("p", { class: "muted" }, "Nobody took over another judge's scores or repeated eight of their words in a row."),
      lines.length ? h("p", { class: "muted" }, "A judge is listed if all of its scores are the same as scores it had read, or if it repeats eight or more words in a row that are not in the task.") : "");
  }

  function showMessage(seq) {
    const message = document.getElementById(`m${seq}`);
    message.scrollIntoView({ block: "center" });
    message.focus({ preventScroll: true });
  }

  function personaList(index) {
    const personas = new Map(unit.messages.filter(({ persona }) => persona).map(({ speaker, persona }) => [speaker, persona]));
    return personas.size ? h("section", { class: "personas", "aria-label": "Personas" }, h("h2", {}, "Personas"), h("dl", {}, [...personas].map(([name, persona]) => h("div", {}, h("dt", {}, badge(index(name)), h("bdi", {}, name)), h("dd", { dir: "auto" }, persona))))) : "";
  }

  // Scores by judge and round, other choices by judge and round, evaluators' scores by iteration.
  function overview(index) {
    const charts = [];
    const isEvaluator = (verdict) => verdict.role === "evaluator";
    const byJudge = (verdicts) => unique(verdicts.map((verdict) => verdict.judge))
      .map((judge) => ({ name: judge, index: index(judge), points: meanByRound(verdicts.filter((verdict) => verdict.judge === judge)) }));
    const evaluated = unit.verdicts.filter((verdict) => verdict.value !== null && isEvaluator(verdict));
    for (const metric of unique(evaluated.map((verdict) => verdict.metric))) {
      const series = byJudge(evaluated.filter((verdict) => verdict.metric === metric));
      if (series.some((line) => line.points.length > 1)) charts.push(sparkline(series, { title: `${orNone(metric)} by iteration`, step: "iteration", ...evaluatorScale(metric, series) }));
    }
    const matrix = scoreMatrix(unit, index, (side) => unit.facets[`identity_${side.toLowerCase()}`]);
    const assessments = unit.messages.filter((message) => message.role === "evaluator" && typeof message.parsed?.score === "number");
    if (assessments.length && !matrix && !evaluated.length) {
      const series = unique(assessments.map((message) => message.speaker))
        .map((name) => ({ name, index: index(name), points: assessments.filter((message) => message.speaker === name).map((message) => [message.round, message.parsed.score]) }));
      charts.push(sparkline(series, { title: "Evaluators' scores by iteration", step: "iteration" }));
    }
    // A pair's choices are in the matrix; answers written out are in the conversation.
    const choices = unit.verdicts.filter((verdict) => verdict.text !== null && verdict.subject === "" && !isEvaluator(verdict) && !(matrix && verdict.metric === "preferred"));
    const judges = unique(choices.map((verdict) => verdict.judge));
    const rounds = unique(choices.map((verdict) => verdict.round));
    const isAnswer = choices.every((verdict) => verdict.metric === "answer") && unit.facets.label !== undefined; // shown with the options
    if (choices.length && !isAnswer && choices.every((verdict) => verdict.text.length <= 30)) {
      const choicesOf = (judge, round) => choices.filter((verdict) => verdict.judge === judge && verdict.round === round).map((verdict) => verdict.text).join(", ");
      charts.push(h("figure", { class: "spark wide" }, h("figcaption", {}, isLoopUnit() ? "Decisions and answers by iteration" : "Choices by round"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Choices" }, h("table", { class: "scores" },
        h("thead", {}, h("tr", {}, h("td", {}), rounds.map((round) => h("th", { scope: "col" }, String(round))))),
        h("tbody", {}, judges.map((judge) => h("tr", {}, h("th", { scope: "row" }, badge(index(judge)), h("bdi", {}, judge)),
          rounds.map((round) => h("td", {}, choicesOf(judge, round) || "–")))))))));
    }
    const named = unique(charts.length ? evaluated.map((verdict) => verdict.judge) : []);
    const legend = named.length > 1 ? h("p", { class: "legend" }, named.map((judge) => h("span", {}, badge(index(judge)), h("bdi", {}, judge)))) : "";
    return [matrix, charts.filter(Boolean).length ? h("section", { class: "overview", "aria-label": "Scores" }, legend, charts) : ""];
  }

  function isLoopUnit() { return unit.messages.some((message) => message.role === "generator"); }

  // The whole scale where it is known, so that the same value is at the same height in every unit.
  function evaluatorScale(metric, series) {
    const values = series.flatMap((line) => line.points.map((point) => point[1]));
    if (/toxicity$/.test(metric)) return { low: 0, high: 1 };
    return values.every((value) => value >= 0 && value <= 10) ? { low: 0, high: 10 } : values.every((value) => value >= 0 && value <= 100) ? { low: 0, high: 100 } : {};
  }

  function meanByRound(verdicts) {
    return unique(verdicts.map((verdict) => verdict.round)).sort((a, b) => a - b).map((round) => {
      const values = verdicts.filter((verdict) => verdict.round === round).map((verdict) => verdict.value);
      return [round, values.reduce((sum, value) => sum + value, 0) / values.length];
    });
  }

  let focused = -1;
  function moveFocus(step) {
    const messages = [...page.querySelectorAll(".message")];
    if (!messages.length) return;
    focused = Math.max(0, Math.min(messages.length - 1, focused + step));
    messages[focused].focus({ preventScroll: true });
    messages[focused].scrollIntoView({ block: "center" });
    history.replaceState(null, "", address("/unit", params, messages[focused].id));
  }
  const openNeighbour = (which) => { if (unit?.neighbours[which]) go("/unit", paramsOf(unit.neighbours[which])); else announce(`there is no ${which} unit`); };
  const togglePrompts = () => { const calls = [...page.querySelectorAll(".call")]; const open = !calls.some((call) => call.open); for (const call of calls) call.open = open; };
  const openNoteForm = () => { const form = page.querySelector(".message:focus .note-form") || page.querySelector(":scope > .note-form"); if (form) { form.open = true; form.querySelector("input").focus(); } };
  shortcuts({
    j: { what: "next message", run: () => moveFocus(1) }, k: { what: "previous message", run: () => moveFocus(-1) },
    "]": { what: "next unit", run: () => openNeighbour("next") }, "[": { what: "previous unit", run: () => openNeighbour("previous") },
    o: { what: "open or close all prompts", run: togglePrompts },
    n: { what: "add a note", run: openNoteForm }, r: { what: "mark as read", run: markRead },
    u: { what: "back to the units", run: () => go("/run", runParams) },
  });
  show(false);
  const stop = watchRun(run, async () => { if (unit && unit.status !== "done") await show(true, true); });
  return { stop, update: (next) => { if (next.toString() !== params.toString()) return false; scrollToAnchor(); return true; } };
}
