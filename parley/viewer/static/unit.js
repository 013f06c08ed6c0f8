// One unit: the conversation by round, with its scores.
import { get } from "./api.js";
import { badge, sparkline } from "./charts.js";
import { address, announce, currentPage, dateTime, embedded, facetName, fill, go, h, integer, link, orNone, plural, unique } from "./dom.js";
import { sideBySide } from "./diff.js";
import { messageView, noteForm, noteList } from "./message.js";
import { breadcrumbs, button, copy, download, errorBox, loading, permalink, setTitle, shortcuts, speakerIndex, watchRun } from "./widgets.js";

export function unitPage(main, params) {
  const [run, id] = [params.get("run") || (embedded ? embedded.name : ""), params.get("unit")];
  const runParams = new URLSearchParams(params);
  runParams.delete("unit");
  runParams.set("tab", "units");
  breadcrumbs(link("/run", runParams, {}, h("bdi", {}, run)), h("bdi", { class: "current" }, id));
  setTitle(id);
  const page = h("div", { class: "page reading" }, loading());
  fill(main, page);
  let unit = null;

  async function show(keepScroll) {
    try {
      const query = new URLSearchParams(params);
      query.set("run", run);
      unit = await get("unit", query);
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
    const roundTitle = (round, inRound) => (isLoop ? `Iteration ${round}` : round > 0 ? `Round ${round}` : inRound.every((message) => message.role === "narrator") ? "Task" : "Opening");
    fill(page,
      h("div", { class: "row spread" },
        h("h1", { class: "unit-title" }, h("bdi", {}, unit.id)),
        h("div", { class: "row actions" }, neighbour(neighbours.previous, "← previous", "["), neighbours.total ? h("span", { class: "muted" }, `${integer(neighbours.index + 1)} of ${integer(neighbours.total)}`) : "", neighbour(neighbours.next, "next →", "]"))),
      h("dl", { class: "facets" }, facets.map(([key, value]) => h("div", {}, h("dt", {}, facetName(key)), h("dd", {}, h("bdi", {}, orNone(value)))))),
      h("p", { class: "muted" }, [unit.status, unit.stop_reason, plural(messages.length, "message"), unit.finished_at ? dateTime(unit.finished_at) : null].filter(Boolean).join(" · ")),
      unit.error ? h("p", { class: "error" }, unit.error) : "",
      h("div", { class: "row actions" },
        button("JSON", () => download(`${unit.id.replaceAll(/[^\w.-]+/g, "_")}.json`, JSON.stringify(unit, null, 2), "application/json")),
        button("Copy text", () => copy(messages.map((message) => `[${message.round}] ${message.speaker}: ${message.text}`).join("\n\n"), "conversation")),
        button("Copy link", () => copy(permalink("/unit", { run, unit: unit.id }, ""), "link")),
        button("Print", () => window.print()),
        neighbours.other_order ? link("/pair", { run, unit: unit.id, run2: run, unit2: neighbours.other_order }, { class: "button" }, "Compare with the other order") : ""),
      overview(index),
      comparisons(),
      noteList(run, notes.filter((note) => note.seq === null), redraw),
      embedded ? "" : noteForm(run, unit.id, null, redraw),
      unique(messages.map((message) => message.round)).map((round) => {
        const inRound = messages.filter((message) => message.round === round);
        const title = roundTitle(round, inRound);
        return h("section", { class: "round", "aria-label": title }, h("h2", { class: "round-title" }, title),
          inRound.map((message) => messageView(unit, message, { run, params, index: index(message.speaker), notes: notes.filter((note) => note.seq === message.seq), changed: redraw })));
      }));
  }

  // Scores by judge and round for each subject, choices by judge and round, evaluators' scores by iteration.
  function overview(index) {
    const charts = [];
    const isEvaluator = (verdict) => verdict.role === "evaluator";
    const byJudge = (verdicts) => unique(verdicts.map((verdict) => verdict.judge))
      .map((judge) => ({ name: judge, index: index(judge), points: meanByRound(verdicts.filter((verdict) => verdict.judge === judge)) }));
    const evaluated = unit.verdicts.filter((verdict) => verdict.value !== null && isEvaluator(verdict));
    for (const metric of unique(evaluated.map((verdict) => verdict.metric))) {
      const series = byJudge(evaluated.filter((verdict) => verdict.metric === metric));
      if (series.some((line) => line.points.length > 1)) charts.push(sparkline(series, { title: `${orNone(metric)} by iteration`, step: "iteration", ...(metric === "toxicity" ? { low: 0, high: 1 } : {}) }));
    }
    const scored = unit.verdicts.filter((verdict) => verdict.value !== null && verdict.text === null && !["evaluator", "coordinator"].includes(verdict.role) && !verdict.metric.startsWith("search_"));
    for (const subject of unique(scored.map((verdict) => verdict.subject))) {
      const series = byJudge(scored.filter((verdict) => verdict.subject === subject));
      const identity = subject && unit.facets[`identity_${subject.toLowerCase()}`];
      const means = series.flatMap((line) => line.points.map((point) => point[1]));
      const [low, high] = [Math.max(0, Math.floor(Math.min(...means)) - 1), Math.ceil(Math.max(...means)) + 1];
      charts.push(sparkline(series, { title: `Mean score${subject ? ` of ${subject}` : ""}${identity ? ` (${identity})` : ""}`, low, high }));
    }
    const assessments = unit.messages.filter((message) => message.role === "evaluator" && typeof message.parsed?.score === "number");
    if (assessments.length && !scored.length && !evaluated.length) {
      const series = unique(assessments.map((message) => message.speaker))
        .map((name) => ({ name, index: index(name), points: assessments.filter((message) => message.speaker === name).map((message) => [message.round, message.parsed.score]) }));
      charts.push(sparkline(series, { title: "Evaluators' scores by iteration", step: "iteration" }));
    }
    const choices = unit.verdicts.filter((verdict) => verdict.text !== null && !isEvaluator(verdict));
    const judges = unique(unit.verdicts.filter((verdict) => !isEvaluator(verdict)).map((verdict) => verdict.judge));
    const rounds = unique(choices.map((verdict) => verdict.round));
    if (choices.length) {
      const choicesOf = (judge, round) => choices.filter((verdict) => verdict.judge === judge && verdict.round === round).map((verdict) => verdict.text).join(", ");
      charts.push(h("figure", { class: "spark" }, h("figcaption", {}, "Verdicts by round"), h("table", { class: "scores" },
        h("thead", {}, h("tr", {}, h("th", {}), rounds.map((round) => h("th", { scope: "col" }, String(round))))),
        h("tbody", {}, judges.map((judge) => h("tr", {}, h("th", { scope: "row" }, badge(index(judge)), h("bdi", {}, judge)),
          rounds.map((round) => h("td", {}, choicesOf(judge, round) || "–"))))))));
    }
    const legend = judges.length > 1 ? h("p", { class: "legend" }, judges.map((judge) => h("span", {}, badge(index(judge)), h("bdi", {}, judge)))) : "";
    return charts.filter(Boolean).length ? h("section", { class: "overview", "aria-label": "Scores" }, charts, legend) : "";
  }

  function meanByRound(verdicts) {
    return unique(verdicts.map((verdict) => verdict.round)).sort((a, b) => a - b).map((round) => {
      const values = verdicts.filter((verdict) => verdict.round === round).map((verdict) => verdict.value);
      return [round, values.reduce((sum, value) => sum + value, 0) / values.length];
    });
  }

  // The two responses of a pair, or the drafts of a critique loop, with the differences marked.
  function comparisons() {
    const parts = [];
    const { response_a: a, response_b: b } = unit.fields;
    if (a && b) {
      const names = ["a", "b"].map((side) => [`Candidate ${side.toUpperCase()}`, unit.facets[`identity_${side}`], unit.facets[`response_${side}`] && `response ${unit.facets[`response_${side}`]}`].filter(Boolean).join(" · "));
      parts.push(foldedComparison("Compare the two responses", a, b, names));
    }
    const drafts = unit.messages.filter((message) => message.role === "generator");
    const accepted = unit.verdicts.filter((verdict) => verdict.metric === "accepted" && verdict.value === 1).at(-1);
    const last = accepted && drafts.find((message) => message.round === accepted.round);
    if (last && drafts.length > 2) parts.push(foldedComparison("Before and after: the first draft and the accepted one", drafts[0].text, last.text, ["Before", `After (iteration ${last.round})`]));
    drafts.slice(1).forEach((draft, n) => {
      const previous = drafts[n];
      parts.push(foldedComparison(`What changed from iteration ${previous.round} to ${draft.round}`, previous.text, draft.text, [`Iteration ${previous.round}`, `Iteration ${draft.round}`]));
    });
    return parts;
  }

  // Computed when it is opened: a long text takes time.
  function foldedComparison(title, before, after, names) {
    const box = h("details", { class: "compare", ontoggle: () => { if (box.open && box.children.length === 1) box.append(sideBySide(before, after, names)); } }, h("summary", {}, title));
    return box;
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
    n: { what: "add a note", run: openNoteForm },
    u: { what: "back to the units", run: () => go("/run", runParams) },
  });
  show(false);
  const stop = watchRun(run, async () => { if (unit && unit.status !== "done") await show(true); });
  return { stop, update: (next) => { if (next.toString() !== params.toString()) return false; scrollToAnchor(); return true; } };
}
