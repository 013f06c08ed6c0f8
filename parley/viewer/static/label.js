// Blind labelling: the draws with their agreement, and one item after another, answered by single keys or the mouse.
import { get, post } from "./api.js";
import { announce, dateTime, fill, go, h, integer, link, number, plural, remember, remembered, signed } from "./dom.js";
import { markDifferences, markLegend } from "./diff.js";
import { facetValue, knowFacets } from "./facets.js";
import { unitsOf } from "./units.js";
import { breadcrumbs, button, copy, errorBox, loading, permalink, scrollTable, setTitle, shortcuts } from "./widgets.js";

const TEN = "x";  // the key of 10, a Roman ten: the digits end at 9
const KINDS = {
  even: ["evenly at random", { kind: "random", floor: 1 }],
  disputed: ["at random, more often where the judges disagree; every text keeps at least half of an even chance", { kind: "random", floor: 0.5 }],
  sorted: ["most disputed first: for reading only, since these labels never correct the judges", { kind: "sorted" }],
};

export function labelPage(main, params) {
  const [run, set, rater] = [params.get("run"), params.get("set"), params.get("rater")];
  const facets = [...params].filter(([name]) => name.startsWith("f."));
  setTitle("Labelling");
  // A run's name can reveal its model, which a rater must not know.
  breadcrumbs(link("/run", { run }, {}, h("bdi", {}, set ? "the run" : run)), "label");
  const page = h("div", { class: "page" }, loading());
  fill(main, page);
  const show = !set ? showDraws : rater ? async () => showItem(await get("label", { run, set, rater })) : async () => askName();
  show().catch((error) => fill(page, errorBox(error)));
  return { stop: () => {} };

  async function showDraws() {
    shortcuts({ u: { what: "back to the run", run: () => go("/run", { run }) } });
    const [{ sets }, table, summary] = await Promise.all([get("label/sets", { run }), unitsOf(run, true), get("run", { run })]);
    knowFacets(summary);
    const phases = facets.length ? [] : table.choices().phase || [];
    const only = h("select", {}, h("option", { value: "" }, "all texts"), phases.map((phase) => h("option", { value: phase }, `${facetValue("phase", phase)} (phase ${phase})`)));
    const tags = table.tagTable();
    const problem = h("div", {});
    const count = h("input", { type: "number", min: 1, max: 1000, value: 50, class: "narrow" });
    const scores = h("input", { type: "checkbox" });
    const how = h("select", {}, Object.entries(KINDS).map(([value, [words]]) => h("option", { value }, words)));
    const draw = async () => {
      fill(problem, loading("Drawing: reading every finished unit…"));
      try { await post("label/sets", [["run", run], ...facets, ...(only.value ? [["f.phase", only.value]] : [])], { count: Number(count.value), scores: scores.checked, ...KINDS[how.value][1] }); await showDraws(); } catch (error) { fill(problem, errorBox(error)); }
    };
    fill(page, h("h1", {}, "Labels"), [...sets].reverse().sort((a, b) => Boolean(b.agreement.raters?.length) - Boolean(a.agreement.raters?.length)).map(drawCard),
      h("section", { class: "card" }, h("h2", {}, "New draw"),
        h("p", {}, "Raters see the texts and the rubric. Identities are blacked out; models and verdicts are not shown. All raters get the same items, each rater in a different random order, so a rater may stop early. Labels of a random draw correct the judges' scores of texts; they cannot correct differences between identities."),
        facets.length ? h("p", {}, "Only units with ", facets.map(([name, value]) => `${name.slice(2)} ${value}`).join(", "), ".") : "",
        h("div", { class: "row" }, h("label", {}, "number of items ", count), phases.length > 1 ? h("label", {}, "of ", only) : "", h("label", {}, "how to draw them ", how)),
        h("div", { class: "row" }, h("label", {}, scores, " for pairs, also score each answer"), button("Draw", draw)), problem),
      tags.length ? h("section", { class: "card" }, h("h2", {}, "Tags and the panel's verdicts"), tagTable(tags)) : "");
  }

  function drawCard({ id, items, texts, at, kind, floor, seed, fewer, corrects, agreement }) {
    const drawn = kind === "random" ? (floor < 1 ? "drawn more often where the judges disagree" : "drawn evenly") : kind === "sorted" ? "a sorted queue: its labels never correct the judges" : "chosen by hand: its labels never correct the judges";
    return h("section", { class: "card" },
      h("div", { class: "row spread" }, h("h2", {}, `Draw ${id}: ${plural(items, "item")}`), h("span", { class: "row" },
        button("Copy the link for raters", () => copy(permalink("/label", { run, set: id }), "link")), link("/label", { run, set: id }, { class: "button" }, "Label"))),
      corrects.map((sentence) => h("p", {}, sentence)),
      agreementTables(agreement, floor < 1 && kind === "random"),
      h("p", { class: "muted" }, `${drawn}, from ${plural(texts, "different text")} · ${dateTime(at)} · seed ${seed}`),
      fewer ? h("p", { class: "notice caution" }, fewer) : "");
  }

  // Raters come here by a link, and see nothing but this question.
  function askName() {
    shortcuts({});
    const name = h("input", { value: remembered("name"), maxlength: 80, required: true });
    const begin = (event) => {
      event.preventDefault();
      remember("name", name.value.trim());
      if (name.value.trim()) go("/label", { run, set, rater: name.value.trim() });
    };
    fill(page, h("h1", {}, "Blind labelling"), h("p", {}, "You will see one item after another. Your answers are saved after each item, and you may stop at any time."),
      h("form", { class: "row", onsubmit: begin }, h("label", {}, "your name ", name), h("button", { class: "strong" }, "Begin")));
    name.focus();
  }

  function showItem(item, last = "") {
    if (item.item === undefined) return showEnd(item);
    const questions = questionsOf(item);
    const given = questions.map(() => null);
    const comment = h("input", { class: "comment", maxlength: 2000, "aria-label": "comment", placeholder: "comment", onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); comment.blur(); } } });
    const problem = h("div", { role: "alert" });
    let busy = false;
    const send = async (path, body, words) => {
      if (busy) return;
      busy = true;
      try { showItem(await post(path, { run }, { set: Number(set), rater, ...body }), words); window.scrollTo(0, 0); document.getElementById("main").focus({ preventScroll: true }); }
      catch (error) { busy = false; fill(problem, errorBox(error)); }
    };
    const save = () => {
      const missing = given.filter((value) => value === null).length;
      if (missing) return fill(problem, h("p", { class: "notice caution" }, `${plural(missing, "answer")} ${missing === 1 ? "is" : "are"} missing.`));
      const scores = questions.flatMap(({ metric, nth }, n) => (metric ? [[nth, metric.name, given[n]]] : []));
      const words = questions.map(({ options }, n) => options.find(({ value }) => value === given[n]).words).join(", ");
      return send("label", { item: item.item, comment: comment.value, scores, choice: item.choice ? given[0] : null }, `last: ${words}`);
    };
    const skip = () => send("label", { item: item.item, comment: comment.value }, "last: skipped");
    const undo = () => {
      const answered = given.findLastIndex((value) => value !== null);
      if (answered < 0) return item.done ? send("label/undo", {}, "undone") : announce("there is nothing to undo");
      given[answered] = null;
      groups[answered].querySelectorAll("input").forEach((input) => { input.checked = false; });
      return mark();
    };
    const choose = (n, value) => { given[n] = value; fill(problem); mark(); };
    const groups = questions.map((question, n) => radioGroup(question, n, (value) => choose(n, value)));
    const mark = () => { const now = given.indexOf(null); groups.forEach((group, n) => group.classList.toggle("asked", n === now)); if (given.some((value) => value !== null)) groups[now]?.scrollIntoView({ block: "nearest" }); };
    const press = (key) => {
      const now = given.indexOf(null);
      const option = questions[now]?.options.findIndex((one) => one.key === key) ?? -1;
      if (option < 0 || busy) return;
      groups[now].querySelectorAll("input")[option].checked = true;
      choose(now, questions[now].options[option].value);
      if (!given.includes(null)) save();
    };
    const keys = {};
    for (const { options, metric } of questions) for (const { key, words } of options) keys[key] ??= { what: metric ? `score ${words}` : words, run: () => press(key) };
    const listen = () => shortcuts(keysAreOn() ? { ...keys, s: { what: "skip", run: skip }, u: { what: "undo", run: undo }, c: { what: "comment", run: () => comment.focus() } } : {});
    const toggle = h("input", { type: "checkbox", onchange: () => { remember("keys", toggle.checked ? "on" : "off"); page.classList.toggle("keyless", !toggle.checked); listen(); } });
    toggle.checked = keysAreOn();
    page.classList.toggle("keyless", !toggle.checked);
    const fieldsets = item.choice ? [h("fieldset", { class: "choice" }, h("legend", {}, item.choice.question), groups[0])] : [];
    for (const metric of item.metrics) fieldsets.push(h("fieldset", {}, h("legend", {}, metric.name), h("ul", {}, metric.questions.map((question) => h("li", {}, question))), ends(item.scale, metric), groups.filter((_, n) => questions[n].metric === metric)));
    const tools = h("div", { class: "row tools" }, h("button", { class: "strong" }, "Save and continue"), button(["Skip ", h("kbd", {}, "s")], skip), button(["Undo ", h("kbd", {}, "u")], undo), h("label", {}, h("kbd", {}, "c"), " ", comment), h("label", { class: "muted" }, toggle, " answer with single keys"));
    const form = h("form", { class: "rubric", onsubmit: (event) => { event.preventDefault(); save(); } }, fieldsets, tools, problem);
    fill(page, h("div", { class: "row spread" }, h("h1", {}, `${item.done + 1} of ${integer(item.total)}`), h("p", { class: "muted" }, [rater, item.skipped ? `${item.skipped} skipped` : "", last].filter(Boolean).join(" · "))),
      h("progress", { max: item.total, value: item.done, "aria-label": "labelled" }),
      h("div", { class: item.pair ? `label-pair${item.metrics.length ? "" : " one-question"}` : "split label" }, h("section", { class: "label-texts" }, item.task.map(({ title, text }) => textBox(title, text)), item.pair ? pairOfTexts(item.texts) : item.texts.map(({ title, text }) => textBox(title, text))), form));
    mark();
    listen();
  }

  function showEnd({ total, skipped }) {
    shortcuts({ u: { what: "undo the last item", run: async () => showItem(await post("label/undo", { run }, { set: Number(set), rater })) } });
    fill(page, h("h1", {}, "Done"), h("p", {}, `You have finished ${total === 1 ? "the only item" : `all ${plural(total, "item")}`} of draw ${set}${skipped ? ` and skipped ${skipped} of them` : ""}. Thank you.`), link("/label", { run }, { class: "button" }, "See how raters agree"));
  }
}

// What is asked about an item, one radio group each: the choice, then each metric for each text.
function questionsOf({ choice, pair, metrics, texts, scale: [from, to] }) {
  const scores = Array.from({ length: to - from + 1 }, (_, n) => ({ value: from + n, words: String(from + n), key: from + n === 10 ? TEN : String(from + n) }));
  const chosen = choice ? [{ name: choice.question, options: choice.options.map(([value, words], n) => ({ value, words, key: pair ? value[0].toLowerCase() : String(n + 1) })) }] : [];
  return [...chosen, ...metrics.flatMap((metric) => texts.map(({ title }, nth) => ({ name: [metric.name, texts.length > 1 ? title : ""].filter(Boolean).join(", "), metric, nth, side: texts.length > 1 ? title.split(" ").at(-1) : "", options: scores })))];
}

function radioGroup({ name, side, metric, options }, n, chosen) {
  return h("div", { class: "marks", role: "radiogroup", "aria-label": name }, side ? h("b", {}, side) : "",
    options.map(({ value, words, key }, m) => h("label", { for: `q${n}-${m}` }, h("input", { type: "radio", id: `q${n}-${m}`, name: `q${n}`, onchange: () => chosen(value) }),
      h("span", {}, words, !metric || key !== words ? [" ", h("kbd", {}, metric ? key : key.toUpperCase())] : ""))));
}

function ends([from, to], { low, high }) { return low || high ? h("p", { class: "ends muted" }, `${from} ${low} – ${to} ${high}`) : ""; }
function keysAreOn() { return remembered("keys") !== "off"; }

function simpleTable(label, heads, rows) {
  return scrollTable(label, heads.map((head) => h("th", { scope: "col" }, head)),
    rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, first)), rest.map((value, n) => h("td", { "data-label": heads[n + 1] }, value)))));
}

function tagTable(tags) {
  const choices = (row) => Object.entries(row.choices).map(([choice, count]) => `${choice} ${count}`).join(", ") || "–";
  return simpleTable("Tags", ["tag", "units", "panel's mean score", "panel's verdicts", "flipped"],
    tags.map((row) => [row.tag, String(row.units), number(row.score), choices(row), String(row.flipped)]));
}

function agreementTables({ unavailable, raters, simulated, between_raters, with_judges }, disputed) {
  if (unavailable) return h("p", { class: "muted" }, unavailable);
  if (!raters.length) return h("p", { class: "muted" }, "No labels yet.");
  const interval = (row) => (row.low === null || row.low === undefined ? "–" : `${number(row.low)} to ${number(row.high)}`);
  const mark = (row) => `${row.rater}${row.simulated ? " (SIMULATED)" : ""}`;
  const between = between_raters.length ? simpleTable("Agreement between raters", ["question", "", "agreement", "95% CI", "items", "raters", ""],
    between_raters.map((row) => [[row.question, row.subject].filter(Boolean).join(" "), row.measure, number(row.estimate), interval(row), String(row.items), String(row.raters), h("span", { class: "muted" }, row.note)]))
    : h("p", { class: "muted" }, raters.length > 1 ? "No item has two ratings yet." : "Only one rater so far. A second one shows how far people agree.");
  const nobody = with_judges.every((row) => row.simulated);
  return [simulated ? h("p", { class: "notice caution" }, h("strong", {}, "SIMULATED: "), nobody ? "no person gave these labels." : "raters with this mark are not people, and agreement between raters leaves them out.") : "",
    h("h3", {}, "Agreement with the judges"),
    simpleTable("Agreement with the judges", ["rater", "items", "skipped", "same choice", "Cohen's κ", "score − judges' mean", "absolute difference"],
      with_judges.map((row) => [mark(row), String(row.items), String(row.skipped), row.compared ? `${row.same_choice} of ${row.compared}` : "–", number(row.kappa), signed(row.mean_difference), row.scores ? `${number(row.mean_absolute_difference)} (${plural(row.scores, "score")})` : "–"])),
    h("h3", {}, `Agreement between raters (${raters.length})`), between,
    h("p", { class: "muted" }, "Scores are compared question by question, on the raters' scale from 0 to 10.", disputed ? " Disputed texts were drawn more often, so these figures describe the labelled items and not the run." : "")];
}

function textBox(title, content) {
  return h("article", { class: "message" }, h("h2", { class: "box-title" }, title), h("div", { class: "prose", dir: "auto" }, content));
}

function pairOfTexts([a, b]) {
  const marked = ["A", "B"].map((side) => markDifferences(a.text, b.text, side));
  return [h("div", { class: "sides" }, textBox(a.title, marked[0]), textBox(b.title, marked[1])),
    markLegend(a.text, b.text, "in one answer")];
}
