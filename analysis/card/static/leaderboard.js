// The leaderboard: one line at a time, all models on one scale; sorted, compared and unfolded without a server.
// Everything in the data is text of others: it only ever becomes text nodes and numbers.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const lines = new Map(data.lines.map((line) => [line.id, line]));
  data.models.forEach((model, index) => { model.index = index; });
  const ranked = data.models.filter((model) => !model.apart);
  const apart = data.models.filter((model) => model.apart);
  const state = { line: null, sort: "line", down: false, chosen: null, open: new Set(), find: "" };

  // ---- elements ----
  const SVG = "http://www.w3.org/2000/svg";
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") node.addEventListener("click", value);
      else if (name === "left") node.style.left = value;
      else if (value !== null && value !== false) node.setAttribute(name, value);
    }
    node.append(...children.flat(3).filter((child) => child !== null && child !== ""));
    return node;
  }
  const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const s = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

  // ---- numbers ----
  const minus = (text) => text.replace("-", "−");
  const plain = (value) => minus(value.toFixed(2)).replace(/^−(0\.00)$/, "$1");
  const signed = (value) => (Number(value.toFixed(2)) > 0 ? "+" : "") + plain(value);
  const format = (line) => (line.null === 0 ? signed : plain);
  const pText = (p) => (p < 1e-4 ? "p < 0.0001" : `p = ${Number(p.toPrecision(2))}`);

  function logGamma(x) {
    const c = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3, -5.395239384953e-6];
    const base = x + 5.5;
    const sum = c.reduce((total, part, place) => total + part / (x + 1 + place), 1.000000000190015);
    return (x + 0.5) * Math.log(base) - base + Math.log((2.5066282746310005 * sum) / x);
  }
  // The regularised incomplete beta function, by Lentz's continued fraction.
  function beta(x, a, b) {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
    const tiny = 1e-300;
    let c = 1, d = 1 / Math.max(1 - ((a + b) * x) / (a + 1), tiny), result = d;
    for (let m = 1; m < 300; m += 1) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      for (const part of [even, odd]) {
        d = 1 / (1 + part * d || tiny);
        c = 1 + part / c || tiny;
        result *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-12) break;
    }
    return (Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) * result) / a;
  }
  // Paired t over the clusters: difference, interval, p. None where only one of them could be read in some cluster.
  function difference(first, second) {
    if (!first || !second || first.verdict === "not measured" || second.verdict === "not measured") return null;
    if (first.values.some((value, place) => (value === null) !== (second.values[place] === null))) return null;
    const gaps = first.values.map((value, place) => (value === null || second.values[place] === null ? null : value - second.values[place]))
      .filter((gap) => gap !== null && gap !== undefined && !Number.isNaN(gap));
    const n = gaps.length;
    if (n < data.least) return null;
    const mean = gaps.reduce((total, gap) => total + gap, 0) / n;
    const error = Math.sqrt(gaps.reduce((total, gap) => total + (gap - mean) ** 2, 0) / (n - 1) / n);
    if (!(error > 1e-12)) return { estimate: mean, low: null, high: null, p: 1, n };
    const half = data.quantiles[n] * error, t = mean / error;
    return { estimate: mean, low: mean - half, high: mean + half, p: beta((n - 1) / (n - 1 + t * t), (n - 1) / 2, 0.5), n };
  }
  function holm(found) {
    const order = found.filter(Boolean).sort((one, two) => one.p - two.p);
    let least = 0;
    order.forEach((one, place) => { least = Math.max(least, Math.min(1, one.p * (order.length - place))); one.corrected = least; });
  }
  window.parleyLeaderboard = { difference, holm };

  // ---- drawing ----
  function axis(line, found, margin = true) {
    const ends = found.flatMap((one) => [one.low ?? one.estimate, one.high ?? one.estimate]).filter((end) => end !== null);
    if (margin) ends.push(line.null - line.margin, line.null + line.margin); else ends.push(0);
    let [least, most] = [Math.min(...ends), Math.max(...ends)];
    const room = (most - least) * 0.04 || 1;
    if (margin && line.unit !== "points" && line.null !== 0) [least, most] = [Math.max(0, least), Math.min(1, most)];
    else [least, most] = [least - room, most + room];
    return { least, most, at: (value) => `${((100 * (value - least)) / (most - least)).toFixed(2)}%` };
  }
  function bar(scale, found, zero, margin) {
    if (!found || found.estimate === null) return "";
    const sure = found.low !== null && found.high !== null;
    const closed = found.corrected === undefined ? found.verdict.startsWith("different") : found.corrected <= data.level;
    const band = margin ? s("rect", { class: "band", x: scale.at(zero - margin), y: 0, height: "100%", width: `${(200 * margin) / (scale.most - scale.least)}%` }) : null;
    return s("svg", { class: "bar", "aria-hidden": "true" }, band,
      s("line", { class: "null", x1: scale.at(zero), x2: scale.at(zero), y1: 0, y2: "100%" }),
      sure ? s("line", { class: "span", x1: scale.at(found.low), x2: scale.at(found.high), y1: "50%", y2: "50%" }) : null,
      s("circle", { class: closed ? "dot" : "open", cx: scale.at(found.estimate), cy: "50%", r: 4.5 }));
  }
  function ticks(scale, zero, write, room = 0.15) {
    const marks = [["first", scale.least], ["", zero], ["last", scale.most]];
    const apartEnough = (value) => Math.abs(value - zero) > (scale.most - scale.least) * room;
    return h("div", { class: "axis", "aria-hidden": "true" }, marks.filter(([name, value]) => !name || apartEnough(value))
      .map(([name, value]) => h("span", { class: name, left: scale.at(value) }, write(value))));
  }
  const numbers = (found, write) => (!found || found.estimate === null ? ["–"]
    : [write(found.estimate), " ", h("span", { class: "interval" }, found.low === null ? "(no interval)" : `(${write(found.low)} to ${write(found.high)})`)]);
  const verdict = (found) => (found ? h("span", { class: found.verdict.startsWith("different") ? "shown" : "" }, found.verdict) : "–");

  // ---- the table ----
  const own = (model, id = state.line) => model.lines[id];
  const known = (models, id) => models.map((model) => own(model, id)).filter((found) => found && found.estimate !== null);
  function badness(model, line) {
    const found = own(model, line.id);
    if (!found || found.estimate === null) return Infinity;
    return line.worse === "either" ? Math.abs(found.estimate - line.null) : line.worse === "lower" ? -found.estimate : found.estimate;
  }
  function sorted(models, gaps) {
    const line = lines.get(state.line);
    const keys = {
      name: (model) => model.name.toLowerCase(),
      judge: (model) => -(own(model, model.judging)?.estimate ?? -Infinity),
      line: (model) => badness(model, line),
      difference: (model) => gaps.get(model)?.estimate ?? Infinity,
    };
    const key = keys[state.sort];
    return models.map((model) => [model, key(model)]).sort(([one, a], [two, b]) =>
      two.judges - one.judges || (a === b ? one.index - two.index : (a < b ? -1 : 1) * (state.down ? -1 : 1))).map(([model]) => model);
  }
  function header(label, name, attributes = {}, extra = "") {
    const now = state.sort === name;
    return h("th", { scope: "col", "aria-sort": now ? (state.down ? "descending" : "ascending") : null, ...attributes },
      h("button", { class: "plain", type: "button", onclick: () => { state.down = now && !state.down; state.sort = name; draw(); } },
        label, now ? h("span", { "aria-hidden": "true" }, state.down ? "\u00a0▾" : "\u00a0▴") : ""), extra);
  }
  const built = new Map(); // by table: rows are drawn once for a line and a comparison; sorting and finding only move them
  function table(target, models, compare) {
    const line = lines.get(state.line), write = format(line);
    const scale = axis(line, known(models, line.id));
    const judging = lines.get(models.find((model) => model.judging)?.judging);
    const separate = judging && judging.id !== line.id;
    const judgeScale = separate ? axis(judging, known(models, judging.id)) : null;
    const chosen = compare && state.chosen !== null ? data.models[state.chosen] : null;
    const places = compare ? models.filter((model) => own(model)?.place).length : 0;
    const key = `${state.line} ${state.chosen}`;
    if (built.get(target)?.key !== key) {
      const gaps = new Map(chosen ? models.filter((model) => model !== chosen).map((model) => [model, difference(own(model), own(chosen))]) : []);
      holm([...gaps.values()]);
      const tested = [...gaps.values()].filter(Boolean);
      built.set(target, { key, gaps, gapScale: tested.length ? axis(line, tested, false) : null, rows: new Map() });
    }
    const { gaps, gapScale, rows } = built.get(target);
    const head = h("thead", {}, h("tr", {}, header("model", "name"),
      separate ? header("can it judge?", "judge", { class: "mini wider rare" }, ticks(judgeScale, judging.null, plain, 0.4)) : null,
      header(h("bdi", {}, line.title), "line", { class: "plot" }, ticks(scale, line.null, write)),
      h("th", { scope: "col", class: "middle" }, "95% interval"), h("th", { scope: "col", class: "wider" }, "verdict"),
      places ? h("th", { scope: "col", class: "wider" }, "place") : null,
      chosen ? header("difference", "difference", { class: "mini" }, gapScale ? ticks(gapScale, 0, signed, 0.4) : "") : null,
      compare ? h("th", { scope: "col", class: "compare wider" }, h("span", { class: "unseen" }, "compare")) : null,
      h("th", { scope: "col", class: "rare wider" }, "run")));
    const columns = head.firstChild.children.length;
    function row(model) {
      const found = own(model), gap = gaps.get(model), able = own(model, judging?.id);
      const name = h("button", { class: "plain", type: "button", "aria-expanded": String(state.open.has(model.index)), onclick: () => unfold(model, name) }, h("bdi", {}, model.name));
      const main = h("tr", { class: `${model.judges ? "" : "grey"} ${model === chosen ? "chosen" : ""}` },
        h("th", { scope: "row" }, name, model.apart ? h("div", {}, h("span", { class: "pill" }, model.apart)) : "",
          h("div", { class: "meta" }, h("bdi", {}, [model.family, model.quantisation, model.date].filter(Boolean).join(" · ")), model.judges ? "" : h("div", {}, "not shown to judge"))),
        separate ? h("td", { class: "wider rare" }, bar(judgeScale, able, judging.null), h("div", { class: "num" }, numbers(able, plain))) : null,
        h("td", {}, bar(scale, found, line.null, line.margin), h("div", { class: "num narrow" }, numbers(found, write))),
        h("td", { class: "num middle" }, numbers(found, write)),
        h("td", { class: "num wider" }, verdict(found)),
        places ? h("td", { class: "num wider" }, found?.place ? `${found.place[0] === found.place[1] ? found.place[0] : found.place.join("–")} of ${places}` : "–") : null,
        chosen ? h("td", {}, model === chosen ? "compared with this" : gap ? [bar(gapScale, gap, 0), h("div", { class: "num" }, signed(gap.estimate), " ", h("span", { class: "interval" }, pText(gap.corrected)))] : "–") : null,
        compare ? h("td", { class: "compare wider" }, model === chosen ? "" : h("button", { type: "button", "aria-label": `compare all with ${model.name}`, onclick: () => choose(model) }, "compare")) : null,
        h("td", { class: "rare wider" }, runLink(model)));
      return main;
    }
    function detail(model) { return h("tr", { class: "detail" }, h("td", { colspan: columns }, details(model, chosen))); }
    function unfold(model, name) {
      const parts = rows.get(model);
      if (state.open.delete(model.index)) parts.pop().remove();
      else { state.open.add(model.index); parts.push(detail(model)); parts[0].after(parts[1]); }
      name.setAttribute("aria-expanded", String(parts.length > 1));
    }
    const find = state.find.toLowerCase();
    const shown = sorted(models, gaps).filter((model) => model.name.toLowerCase().includes(find));
    for (const model of shown) {
      if (!rows.has(model)) rows.set(model, state.open.has(model.index) ? [row(model), detail(model)] : [row(model)]);
    }
    target.replaceChildren(h("caption", { class: "unseen" }, line.question), head, h("tbody", {}, shown.flatMap((model) => rows.get(model))));
  }
  const runLink = (model) => {
    const hash = h("code", { title: model.run.sha256 }, model.run.sha256.slice(0, 8));
    return model.run_link ? h("a", { href: model.run_link }, hash) : hash;
  };
  function details(model, chosen) {
    const other = chosen && chosen !== model && !model.apart ? chosen : null;
    const ids = Object.keys(model.lines).filter((id) => lines.has(id));
    const gaps = new Map(other ? ids.map((id) => [id, difference(model.lines[id], other.lines[id])]) : []);
    holm([...gaps.values()]);
    let group = "";
    const rows = ids.flatMap((id) => {
      const line = lines.get(id), found = model.lines[id], gap = gaps.get(id), write = format(line);
      const heading = line.group === group ? [] : [h("tr", {}, h("th", { scope: "rowgroup", class: "group", colspan: other ? 5 : 4 }, (group = line.group)))];
      return [...heading, h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, line.title)),
        h("td", { class: "plot" }, bar(axis(line, found.estimate === null ? [] : [found]), found, line.null, line.margin)),
        h("td", { class: "num" }, numbers(found, write)),
        h("td", {}, verdict(found), found.because ? [": ", h("bdi", {}, found.because)] : ""),
        other ? h("td", { class: "num" }, gap ? [`${signed(gap.estimate)} `, h("span", { class: "interval" }, gap.low === null ? "" : `(${signed(gap.low)} to ${signed(gap.high)}), ${pText(gap.corrected)}`)] : "–") : null)];
    });
    const head = h("tr", {}, ["line", "", "95% interval", "verdict"].map((name) => h("th", { scope: "col", class: name ? "" : "plot" }, name)), other ? h("th", { scope: "col" }, "minus ", h("bdi", {}, other.name)) : null);
    const run = model.run;
    const made = [`revision ${model.revision ?? "unknown"}`, model.template_sha256 ? `chat template ${model.template_sha256.slice(0, 8)}` : "", `read-out ${model.readout}, ${model.scale.join(" to ")}`,
      `battery ${model.battery.name} ${model.battery.version} (${model.battery.size}, ${model.battery.sha256.slice(0, 8)})`, `data ${model.data.suite} (${model.data.suite_sha256.slice(0, 8)})`,
      `${run.calls.toLocaleString("en")} calls`, run.cost === null ? "" : `$${run.cost.toFixed(2)}`, `Parley ${run.parley}`].filter(Boolean).join(" · ");
    return [h("table", {}, h("thead", {}, head), h("tbody", {}, rows)),
      h("p", { class: "made" }, h("bdi", {}, made), " · run ", model.run_link ? h("a", { href: model.run_link }, h("bdi", {}, run.file)) : h("bdi", {}, run.file), ` (verdicts ${run.sha256})`,
        model.card_link ? [" · ", h("a", { href: model.card_link }, "card")] : ""),
      model.apart || chosen === model ? "" : h("button", { type: "button", class: "narrow", onclick: () => choose(model) }, "compare all with this")];
  }

  // ---- controls ----
  function choose(model) {
    state.chosen = model === null ? null : model.index;
    if (state.sort === "difference" && model === null) state.sort = "line";
    draw();
  }
  function draw() {
    const line = lines.get(state.line);
    document.getElementById("question").replaceChildren(h("bdi", {}, line.question), ` ${{ either: `The further from ${line.null}, the worse`, higher: "Higher is worse", lower: "Lower is worse" }[line.worse]}. The unit is ${{ points: "points of the scale", share: "a share from 0 to 1", auc: "the area under the ROC curve" }[line.unit]}.`);
    const chosen = state.chosen === null ? null : data.models[state.chosen];
    document.getElementById("compared").replaceChildren(...(chosen ? ["Compared with ", h("bdi", {}, chosen.name), " ", h("button", { type: "button", onclick: () => choose(null) }, "stop")] : []));
    if (ranked.length) table(document.getElementById("board"), ranked, true);
    if (apart.length) table(document.getElementById("others"), apart, false);
  }
  const select = document.getElementById("line");
  let group = null;
  for (const line of data.lines) {
    if (group?.label !== line.group) select.append((group = h("optgroup", { label: line.group })));
    group.append(h("option", { value: line.id }, line.title));
  }
  select.addEventListener("change", () => { state.line = select.value; history.replaceState(null, "", `#${encodeURIComponent(select.value)}`); draw(); });
  document.getElementById("find").addEventListener("input", (event) => { state.find = event.target.value; draw(); });
  let wanted = "";
  try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { /* another page's address */ }
  const first = data.models.find((model) => lines.has(model.judging))?.judging;
  state.line = lines.has(wanted) ? wanted : first ?? data.lines[0]?.id;
  document.getElementById("apart").hidden = !apart.length;
  document.getElementById("board").hidden = !ranked.length;
  document.getElementById("empty").hidden = ranked.some((model) => model.judges);
  if (lines.size) { select.value = state.line; draw(); }
})();
