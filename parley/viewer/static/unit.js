// One unit: the conversation by round, with scores beside it.
import { get } from "./api.js";
import { badge, sparkline } from "./charts.js";
import { address, day, embedded, fill, go, h, here, link, named, number, plural, say, whole } from "./dom.js";
import { sideBySide } from "./diff.js";
import { messageView, noteForm, noteList } from "./message.js";
import { button, copy, crumbs, download, follow, heading, permalink, shortcuts, trouble, voices, waiting } from "./widgets.js";

export function unitPage(main, params) {
  const [run, id] = [params.get("run") || (embedded ? embedded.name : ""), params.get("unit")];
  const back = new URLSearchParams(params);
  back.delete("unit");
  crumbs(link("/run", back, {}, h("bdi", {}, run)), h("bdi", { class: "here" }, id));
  heading(id);
  const page = h("div", { class: "page reading" }, waiting());
  fill(main, page);
  let unit = null;

  async function show(stay) {
    try {
      const given = new URLSearchParams(params);
      given.set("run", run);
      unit = await get("unit", given);
    } catch (error) { return fill(page, trouble(error)); }
    const top = window.scrollY;
    draw();
    if (stay) window.scrollTo(0, top);
    else reach();
  }

  function reach() {
    const spot = here().mark;
    const target = spot && document.getElementById(spot);
    if (target) { target.classList.add("reached"); target.scrollIntoView({ block: "center" }); target.focus({ preventScroll: true }); }
    else window.scrollTo(0, 0);
  }

  function to(other) { const next = new URLSearchParams(params); next.set("unit", other); return next; }

  function draw() {
    const { neighbours } = unit;
    const speakers = [...new Set(unit.messages.filter((one) => one.role !== "narrator").map((one) => one.speaker))];
    const index = voices(speakers);
    const again = () => show(true);
    const step = (where, label, key) => (where ? link("/unit", to(where), { class: "button", title: `${label} (${key})` }, label) : h("span", { class: "button off" }, label));
    const facets = Object.entries(unit.facets).filter(([, value]) => value !== "");
    const rounds = [...new Set(unit.messages.map((one) => one.round))];
    fill(page, 
      h("div", { class: "row spread" },
        h("h1", { class: "unit-title" }, h("bdi", {}, unit.id)),
        h("div", { class: "row actions" }, step(neighbours.previous, "← previous", "["), neighbours.of ? h("span", { class: "muted" }, `${whole(neighbours.at + 1)} of ${whole(neighbours.of)}`) : "", step(neighbours.next, "next →", "]"))),
      h("dl", { class: "facets" }, facets.map(([key, value]) => h("div", {}, h("dt", {}, key.replaceAll("_", " ")), h("dd", {}, h("bdi", {}, named(value)))))),
      h("p", { class: "muted" }, [unit.status, unit.stop_reason, plural(unit.messages.length, "message"), unit.finished_at ? day(unit.finished_at) : null].filter(Boolean).join(" · ")),
      unit.error ? h("p", { class: "error" }, unit.error) : "",
      h("div", { class: "row actions" },
        button("JSON", () => download(`${unit.id.replaceAll(/[^\w.-]+/g, "_")}.json`, JSON.stringify(unit, null, 2), "application/json")),
        button("Copy all", () => copy(unit.messages.map((one) => `[${one.round}] ${one.speaker}: ${one.text}`).join("\n\n"), "conversation")),
        button("Copy link", () => copy(permalink("/unit", { run, unit: unit.id }, ""), "link")),
        button("Print", () => window.print()),
        neighbours.other_order ? link("/pair", { run, unit: unit.id, run2: run, unit2: neighbours.other_order }, { class: "button" }, "Beside the other order") : ""),
      overview(index),
      comparisons(),
      noteList(run, unit.notes.filter((one) => one.seq === null), again),
      embedded ? "" : noteForm(run, unit.id, null, again),
      rounds.map((round) => h("section", { class: "round", "aria-label": `round ${round}` },
        h("h2", { class: "round-title" }, round === 0 ? "Opening" : `Round ${round}`),
        unit.messages.filter((one) => one.round === round).map((message) => messageView(unit, message, { run, params, index: index(message.speaker), notes: unit.notes.filter((one) => one.seq === message.seq), changed: again })))));
  }

  // Scores by judge and round, for each subject; verdicts in words; evaluators' scores by iteration.
  function overview(index) {
    const drawn = [];
    const judged = unit.verdicts.filter((one) => one.value !== null && one.role === "evaluator");
    for (const metric of [...new Set(judged.map((one) => one.metric))]) {
      const mine = judged.filter((one) => one.metric === metric);
      const series = [...new Set(mine.map((one) => one.judge))].map((judge) => ({ name: judge, index: index(judge), points: byRound(mine.filter((one) => one.judge === judge)) }));
      if (series.some((one) => one.points.length > 1)) drawn.push(sparkline(series, { title: `${named(metric)} by iteration`, every: "iteration", ...(metric === "toxicity" ? { low: 0, high: 1 } : {}) }));
    }
    const numeric = unit.verdicts.filter((one) => one.value !== null && one.text === null && !["evaluator", "coordinator"].includes(one.role) && !one.metric.startsWith("search_"));
    for (const subject of [...new Set(numeric.map((one) => one.subject))]) {
      const mine = numeric.filter((one) => one.subject === subject);
      const series = [...new Set(mine.map((one) => one.judge))].map((judge) => ({ name: judge, index: index(judge), points: byRound(mine.filter((one) => one.judge === judge)) }));
      const label = subject && unit.facets[`identity_${subject.toLowerCase()}`];
      const ends = series.flatMap((one) => one.points.map((point) => point[1]));
      const [low, high] = [Math.max(0, Math.floor(Math.min(...ends)) - 1), Math.ceil(Math.max(...ends)) + 1];
      drawn.push(sparkline(series, { title: `Mean score${subject ? ` of ${subject}` : ""}${label ? ` (${label})` : ""}`, low, high }));
    }
    const evaluators = unit.messages.filter((one) => one.role === "evaluator" && typeof one.parsed?.score === "number");
    if (evaluators.length && !numeric.length && !judged.length) {
      const series = [...new Set(evaluators.map((one) => one.speaker))].map((name) => ({ name, index: index(name), points: evaluators.filter((one) => one.speaker === name).map((one) => [one.round, one.parsed.score]) }));
      drawn.push(sparkline(series, { title: "Evaluators' scores by iteration", every: "iteration" }));
    }
    const words = unit.verdicts.filter((one) => one.text !== null && one.role !== "evaluator");
    const judges = [...new Set(unit.verdicts.filter((one) => one.role !== "evaluator").map((one) => one.judge))];
    const rounds = [...new Set(words.map((one) => one.round))];
    if (words.length) {
      drawn.push(h("figure", { class: "spark" }, h("figcaption", {}, "Verdicts by round"), h("table", { class: "scores" },
        h("thead", {}, h("tr", {}, h("th", {}), rounds.map((round) => h("th", { scope: "col" }, String(round))))),
        h("tbody", {}, judges.map((judge) => h("tr", {}, h("th", { scope: "row" }, badge(index(judge)), h("bdi", {}, judge)),
          rounds.map((round) => h("td", {}, words.filter((one) => one.judge === judge && one.round === round).map((one) => one.text).join(", ") || "–"))))))));
    }
    const legend = judges.length > 1 ? h("p", { class: "legend" }, judges.map((judge) => h("span", {}, badge(index(judge)), h("bdi", {}, judge)))) : "";
    return drawn.filter(Boolean).length ? h("section", { class: "overview", "aria-label": "Scores" }, drawn, legend) : "";
  }

  function byRound(rows) {
    const rounds = [...new Set(rows.map((one) => one.round))].sort((a, b) => a - b);
    return rounds.map((round) => { const mine = rows.filter((one) => one.round === round); return [round, mine.reduce((sum, one) => sum + one.value, 0) / mine.length]; });
  }

  // The two responses of a pair, and the drafts of a loop, with what differs marked.
  function comparisons() {
    const parts = [];
    const { response_a: a, response_b: b } = unit.fields;
    if (a && b) {
      const names = ["a", "b"].map((side) => `Candidate ${side.toUpperCase()}${unit.facets[`identity_${side}`] ? ` · ${unit.facets[`identity_${side}`]}` : ""}${unit.facets[`response_${side}`] ? ` · response ${unit.facets[`response_${side}`]}` : ""}`);
      parts.push(lazily("The two responses, and how they differ", () => sideBySide(a, b, names)));
    }
    const drafts = unit.messages.filter((one) => one.role === "generator");
    const kept = unit.verdicts.filter((one) => one.metric === "accepted" && one.value === 1).at(-1);
    const last = kept && drafts.find((one) => one.round === kept.round);
    if (last && drafts.length > 2) parts.push(lazily("Before and after: the first draft and the one that was kept", () => sideBySide(drafts[0].text, last.text, ["Before", `After, from iteration ${last.round}`])));
    for (let at = 1; at < drafts.length; at++) parts.push(lazily(`What changed from iteration ${drafts[at - 1].round} to ${drafts[at].round}`, () => sideBySide(drafts[at - 1].text, drafts[at].text, [`Iteration ${drafts[at - 1].round}`, `Iteration ${drafts[at].round}`])));
    return parts;
  }

  function lazily(title, make) {
    const box = h("details", { class: "compare", ontoggle: () => { if (box.open && box.children.length === 1) box.append(make()); } }, h("summary", {}, title));
    return box;
  }

  let at = -1;
  function move(step) {
    const all = [...page.querySelectorAll(".message")];
    if (!all.length) return;
    at = Math.max(0, Math.min(all.length - 1, at + step));
    all[at].focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "center" });
    history.replaceState(null, "", address("/unit", params, all[at].id));
  }
  const turnTo = (which) => { if (unit?.neighbours[which]) go("/unit", to(unit.neighbours[which])); else say(`there is no ${which} unit`); };
  shortcuts({
    j: { what: "next message", run: () => move(1) }, k: { what: "previous message", run: () => move(-1) },
    "]": { what: "next unit", run: () => turnTo("next") }, "[": { what: "previous unit", run: () => turnTo("previous") },
    o: { what: "open or close the prompts", run: () => { const all = [...page.querySelectorAll(".call")]; const open = !all.some((one) => one.open); for (const one of all) one.open = open; } },
    n: { what: "add a note", run: () => { const form = page.querySelector(`.message:focus .note-form`) || page.querySelector(":scope > .note-form"); if (form) { form.open = true; form.querySelector("input").focus(); } } },
    u: { what: "back to the units", run: () => go("/run", back) },
  });
  show(false);
  const stop = follow(run, async () => { if (unit && unit.status !== "done") await show(true); });
  return { stop, update: (next) => { if (next.toString() !== params.toString()) return false; reach(); return true; } };
}
