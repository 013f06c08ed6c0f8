// The units of a run in columns, and every query on them: filters with their counts, order, neighbours, grid, comparison.
// Several values of one filter mean "or", several filters mean "and". A filter's counts ignore its own selection, so that
// they show what its other values would give.
import { get } from "./api.js";
import { embedded, mean, unique } from "./dom.js";
import { saidTexts } from "./echo.js";
import { facetsOf, knowFacets } from "./facets.js";
import { PAGE_SIZE } from "./widgets.js";

const STATUS = { d: "done", f: "failed", p: "planned" };
const PANEL = ""; // the panel's figures; a judge's are under its name
const ANSWERS = ["right", "wrong", "stereotyped", "unknown", "unparsed"];
const MOST_VALUES = 5000; // a facet with more identifies units, and is no filter
const MOST_COLUMNS = 60;
const SHOWN_AS_ZERO = 0.005; // scores have two decimals

const tables = new Map(); // by run

// A number to sort units by at random, always in the same order: the one of `parley show --random` (parley/runs/notes.py).
export function mixed(place) {
  let number = place + 1;
  for (const [factor, shift] of [[0x85ebca6b, 16], [0xc2b2ae35, 13]]) number = Math.imul(number ^ (number >>> shift), factor);
  return (number ^ (number >>> 16)) >>> 0;
}

// The table of a run: as it was read last, or `again`, when only what is new is sent.
export async function unitsOf(run, again = false) {
  const known = tables.get(run);
  if (known && (embedded || !again)) return known;
  const answer = embedded ? embedded.table : await get("units", known ? { run, plan: known.plan, after: known.after } : { run });
  if (answer.ids) {
    knowFacets(await get("run", { run }));
    tables.set(run, new Units(answer));
  }
  const table = tables.get(run);
  table.update(answer);
  return table;
}

// One unit with its figures, and its neighbours in the list that it was opened from.
export async function readUnit(run, id, params, again = false) {
  const [unit, table, found] = await Promise.all([get("unit", { run, unit: id }), unitsOf(run, again), searched(run, params)]);
  const place = table.places.get(id);
  return { ...unit, figures: table.row(place), labels: table.otherLabels(place), neighbours: table.neighbours(params, found, id) };
}

// Whether the same pair, shown in the other order, got the other verdict. The same letter in both orders is flipped: the
// candidates have changed places, so the letters name different ones.
function flipOf(choice, other) {
  if (choice === null || other === null) return null;
  if (choice === "tie" || other === "tie") return choice === other ? "consistent" : "tie in one order";
  return choice === other ? "flipped" : "consistent";
}

// Whether each value of a facet always comes with the same value of another, as an identity does with its category.
function determines(codes, others, places) {
  const first = new Map();
  return places.every((place) => codes[place] < 0 || (first.has(codes[place]) ? first.get(codes[place]) === others[place] : first.set(codes[place], others[place])));
}

// Values as a column: the labels, and for each unit the number of its own, -1 for none.
function column(values) {
  const numbers = new Map();
  const codes = Int32Array.from(values, (value) => {
    if (value === null || value === undefined) return -1;
    if (!numbers.has(value)) numbers.set(value, numbers.size);
    return numbers.get(value);
  });
  return { labels: [...numbers.keys()], codes: [codes] };
}

// Several columns as one, in which a unit can have several values: a pair's identities, tags.
function united(columns) {
  const labels = unique(columns.flatMap((one) => one.labels));
  const numbers = new Map(labels.map((label, code) => [label, code]));
  return { labels, codes: columns.flatMap((one) => one.codes.map((codes) => codes.map((code) => (code < 0 ? -1 : numbers.get(one.labels[code]))))) };
}

function sortedLabels({ labels, codes }) {
  const order = labels.map((_, code) => code).sort((a, b) => (labels[a] < labels[b] ? -1 : 1));
  const places = order.map((_, code) => order.indexOf(code));
  return { labels: order.map((code) => labels[code]), codes: codes.map((own) => own.map((code) => (code < 0 ? -1 : places[code]))) };
}

export class Units {
  constructor({ plan, ids, facets, fields, usage, repeated }) {
    Object.assign(this, { plan, ids, fields, usageFields: usage, size: ids.length, figures: [], judges: [], indexed: 0 });
    this.places = new Map(ids.map((id, place) => [id, place]));
    this.facets = new Map(Object.entries(facets).map(([name, { labels, codes }]) => [name, { labels, codes: [Int32Array.from(codes)] }]));
    // Facets with a value that several units of the whole run share. What has another value in each unit, such as an id, tells nothing apart.
    this.repeated = repeated || [...this.facets].filter(([, { labels, codes: [codes] }]) => labels.length < codes.filter((code) => code >= 0).length).map(([name]) => name);
    this.partner = this.partners();
    this.byJudge = new Map();
  }

  update({ status, errors, done, tags, figures, after, index_error: indexError }) {
    Object.assign(this, { status, errors, done, tags, after, indexError });
    for (const [position, ...row] of figures) {
      if (!this.figures[position]) this.indexed += 1;
      this.figures[position] = row;
      for (const judge in row[0]) if (judge !== PANEL && !this.judges.includes(judge)) this.judges.push(judge);
    }
    this.byJudge.clear();
    const kinds = ANSWERS.filter((kind) => this.figures.some((row) => row?.[1].includes(kind)));
    const marked = (name, has) => ({ labels: [name], codes: [Int32Array.from(this.ids, (id, place) => (has(id, place) ? 0 : -1))] });
    this.answers = united(kinds.map((kind) => marked(kind, (_, place) => this.figures[place]?.[1].includes(kind))));
    this.tagged = united(Object.entries(tags).map(([tag, units]) => { const own = new Set(units); return marked(tag, (id) => own.has(id)); }));
    this.statuses = sortedLabels(column([...status].map((letter) => STATUS[letter])));
  }

  // For each unit that shows a pair, the one with the other order; -1 where there is none.
  partners() {
    const partner = new Int32Array(this.size).fill(-1);
    const [order] = facetsOf("order").filter((name) => this.facets.has(name));
    if (!order) return partner;
    const shared = [...this.facets].filter(([name]) => name !== order && !/_[ab]$/.test(name)).map(([, { codes }]) => codes[0]);
    const unpaired = new Map();
    for (let place = 0; place < this.size; place += 1) {
      if (this.facets.get(order).codes[0][place] < 0) continue;
      const key = shared.map((codes) => codes[place]).join();
      const other = unpaired.get(key);
      if (other === undefined) { unpaired.set(key, place); continue; }
      unpaired.delete(key);
      [partner[place], partner[other]] = [other, place];
    }
    return partner;
  }

  // The figures of all units by one judge, or the panel: an array for each field of a row of figures.
  by(judge) {
    const name = this.judges.includes(judge) ? judge : PANEL;
    if (!this.byJudge.has(name)) {
      const own = this.figures.length ? Array.from({ length: this.size }, (_, place) => this.figures[place]?.[0][name]) : [];
      const figures = { twins: new Map(), ...Object.fromEntries(this.fields.map((field, nth) => [field, Array.from({ length: this.size }, (_, place) => own[place]?.[nth] ?? null)])) };
      figures.flip = figures.choice.map((choice, place) => (this.partner[place] < 0 ? null : flipOf(choice, figures.choice[this.partner[place]])));
      // A unit of which nothing was read; one that is not indexed yet may still be.
      const unread = (place) => this.figures[place] && !figures.read[place];
      figures.filters = { "d.read": Array.from({ length: this.size }, (_, place) => (unread(place) ? "nothing" : "something")), "d.choice": figures.choice, "d.flip": figures.flip, "d.changed": figures.changed.map((changed) => (changed === null ? null : changed ? "changed" : "unchanged")), "d.parse": figures.parse };
      for (const [key, values] of Object.entries(figures.filters)) figures.filters[key] = sortedLabels(column(values));
      this.byJudge.set(name, figures);
    }
    return this.byJudge.get(name);
  }

  // For each unit its twin, which differs from it only in a label, or -1: the one that a finding compares it with, or of
  // several the one whose score differs most from its own.
  twins(params) {
    const [between, figures] = [params.get("between") || "", this.by(params.get("judge"))];
    const { score, twins } = figures;
    if (twins.has(between)) return twins.get(between);
    const [twin, facet] = [new Int32Array(this.size).fill(-1), []];
    const join = (place, other, name) => { [twin[place], facet[place]] = [other, name]; };
    const scored = this.ids.map((_, place) => place).filter((place) => score[place] !== null);
    if (between) {
      const [name, values] = JSON.parse(between);
      for (const [a, b] of values.flatMap(([x, y]) => this.pairsBy(name, x, y, scored))) { join(a, b, name); join(b, a, name); }
    }
    for (const name of between ? [] : facetsOf("identity", "varied").filter((one) => this.facets.has(one) && !/_[ab]$/.test(one))) {
      const [codes] = this.facets.get(name).codes;
      const places = scored.filter((place) => codes[place] >= 0 && twin[place] < 0);
      const [block, ends] = [places.map(this.blocks(name, places)), new Map()]; // of each block, the units with the lowest and the highest score
      places.forEach((place, nth) => {
        const [low, high] = ends.get(block[nth]) || [place, place];
        ends.set(block[nth], [score[place] < score[low] ? place : low, score[place] >= score[high] ? place : high]);
      });
      places.forEach((place, nth) => {
        const others = ends.get(block[nth]).filter((other) => codes[other] !== codes[place]);
        if (others.length) join(place, others.reduce((far, other) => (Math.abs(score[other] - score[place]) > Math.abs(score[far] - score[place]) ? other : far)), name);
      });
    }
    const difference = Array.from(twin, (other, place) => (other < 0 ? null : score[place] - score[other]));
    const differs = sortedLabels(column(difference.map((value) => (value === null ? null : Math.abs(value) < SHOWN_AS_ZERO ? "same" : "different"))));
    twins.set(between, { twin, facet, difference, differs });
    return twins.get(between);
  }

  // Every filter, by its key in the address.
  filters(params) {
    const facets = Object.fromEntries([...this.facets].map(([name, own]) => [`f.${name}`, own]));
    const identities = facetsOf("identity").filter((name) => this.facets.has(name));
    // Which of a pair's identities is stored first says nothing: only its sides, A and B, have filters of their own.
    for (const name of identities.filter((name) => !/_[ab]$/.test(name))) facets[`f.${name}`] = this.identities ??= united(identities.map((one) => this.facets.get(one)));
    return { ...facets, "d.status": this.statuses, "d.answer": this.answers, ...this.by(params.get("judge")).filters, "d.twin": this.twins(params).differs, "d.tag": this.tagged };
  }

  label(name, place) { const { labels, codes } = this.facets.get(name); return codes[0][place] < 0 ? undefined : labels[codes[0][place]]; }

  facetsAt(place) { return Object.fromEntries([...this.facets.keys()].map((name) => [name, this.label(name, place)]).filter(([, value]) => value !== undefined)); }

  row(place, params = new URLSearchParams()) {
    const judge = params.get("judge") || PANEL;
    const { twin, facet, difference } = this.twins(params);
    const [figures, marks] = [this.by(judge), ({ labels, codes }) => codes.map((own) => labels[own[place]]).filter((label) => label !== undefined)];
    return { id: this.ids[place], position: place, facets: this.facetsAt(place), status: STATUS[this.status[place]], error: this.errors[place] ?? null,
      ...Object.fromEntries([...this.fields, "flip"].map((field) => [field, figures[field][place]])), answers: marks(this.answers), tags: marks(this.tagged),
      difference: difference[place], twin: twin[place] < 0 ? null : { id: this.ids[twin[place]], score: figures.score[twin[place]], facet: facet[place], label: this.label(facet[place], twin[place]) },
      ...Object.fromEntries(this.usageFields.map((field, nth) => [field, this.figures[place]?.[2][nth] ?? null])) };
  }

  progress() { return { indexed: this.indexed, done: this.done, index_error: this.indexError }; }

  // Which units match: for each unit how many filters leave it out, and the last that does. `found` are positions that a
  // text search has found, or null.
  matches(params, found) {
    const judge = params.get("judge") || PANEL;
    const [filters, { score }] = [this.filters(params), this.by(judge)];
    const [low, high] = ["low", "high"].map((key) => (params.get(key) ? Number(params.get(key)) : null));
    const base = new Uint8Array(this.size).fill(found ? 0 : 1);
    for (const place of found || []) base[place] = 1;
    if (low !== null || high !== null) for (let place = 0; place < this.size; place += 1) if (score[place] === null || score[place] < (low ?? -Infinity) || score[place] > (high ?? Infinity)) base[place] = 0;
    const [missed, by] = [new Uint8Array(this.size), new Int8Array(this.size).fill(-1)];
    const keys = unique([...params.keys()].filter((key) => /^[fd]\./.test(key)));
    keys.forEach((key, nth) => {
      const { labels, codes } = filters[key] || { labels: [], codes: [] };
      const chosen = labels.map((label) => params.getAll(key).includes(label));
      for (let place = 0; place < this.size; place += 1) if (!codes.some((own) => chosen[own[place]])) { missed[place] += 1; by[place] = nth; }
    });
    return { filters, keys, base, missed, by, judge };
  }

  // What the list is sorted by: what the address says or, once all scores are there, the units that differ most from their twins.
  sorting(params) {
    const differs = !params.has("sort") && !params.get("q") && this.indexed === this.done && !this.status.includes("p") && this.twins(params).twin.some((other) => other >= 0);
    return differs ? { sort: "difference", descending: true } : { sort: params.get("sort") || "position", descending: Boolean(params.get("desc")) };
  }

  // The positions that match, in order. Units without a value come last both ways, and after them those only planned.
  order(params, found = null, { base, missed, judge } = this.matches(params, found)) {
    const places = [];
    for (let place = 0; place < this.size; place += 1) if (base[place] && !missed[place]) places.push(place);
    const { sort, descending } = this.sorting(params);
    const sign = descending ? -1 : 1;
    const usage = this.usageFields.indexOf(sort);
    const values = sort === "id" ? this.ids : sort === "random" ? this.ids.map((_, place) => (this.status[place] === "d" ? mixed(place) : null)) : sort.startsWith("f.") && this.facets.has(sort.slice(2)) ? places.reduce((all, place) => { all[place] = this.label(sort.slice(2), place) ?? null; return all; }, [])
      : sort === "difference" ? (params.has("between") ? this.pairRanks(params, places) : this.twins(params).difference.map((value) => (value === null ? null : Math.abs(value)))) : usage >= 0 ? this.figures.map((row) => row?.[2][usage] ?? null) : this.by(judge)[sort];
    const missing = (place) => values[place] === null || values[place] === undefined;
    if (Array.isArray(values)) places.sort((a, b) => missing(a) - missing(b) || (values[a] < values[b] ? -sign : values[a] > values[b] ? sign : a - b));
    else if (sign < 0) places.reverse();
    const waits = (place) => this.status[place] === "p";
    return this.status.includes("p") ? [...places.filter((place) => !waits(place)), ...places.filter(waits)] : places;
  }

  // The rank of each unit's pair by the difference of its scores; of several pairs, the one that is listed first counts.
  pairRanks(params, places) {
    const [facet, values] = JSON.parse(params.get("between"));
    const { score } = this.by(params.get("judge"));
    const pairs = values.flatMap(([x, y]) => this.pairsBy(facet, x, y, places)).filter((pair) => pair.every((place) => score[place] !== null));
    const sign = params.get("desc") ? 1 : -1;
    pairs.sort(([a, b], [c, d]) => sign * (score[a] - score[b] - (score[c] - score[d])) || c - a);
    const ranks = new Array(this.size).fill(null);
    pairs.forEach((pair, nth) => { for (const place of pair) ranks[place] = sign * nth; });
    return ranks;
  }

  // The finished units that differ from one in a single label, by facet and value.
  otherLabels(place) {
    const labels = facetsOf("identity", "varied");
    const columns = [...this.facets].map(([name, { codes }]) => [name, codes[0]]);
    const found = {};
    for (let other = 0; other < this.size; other += 1) {
      if (other === place || this.status[other] !== "d") continue;
      let only = "";
      for (const [name, codes] of columns) if (codes[other] !== codes[place]) { only = only || codes[other] < 0 || codes[place] < 0 ? null : name; if (only === null) break; }
      if (only && labels.includes(only)) (found[only] ??= {})[this.label(only, other)] = this.ids[other];
    }
    return found;
  }

  // One page of units, the number of matches, and the counts of every filter.
  page(params, found = null) {
    const matched = this.matches(params, found);
    const { filters, keys, base, missed, by } = matched;
    const places = this.order(params, found, matched);
    const counted = Object.entries(filters).map(([key, { labels, codes }]) => {
      const own = keys.indexOf(key);
      if (own < 0 && (labels.length < 2 || labels.length > MOST_VALUES) && !((key === "d.tag" || key === "d.status") && labels.length)) return null;
      const counts = new Int32Array(labels.length);
      for (let place = 0; place < this.size; place += 1) {
        if (!base[place] || missed[place] > 1 || (missed[place] === 1 && by[place] !== own)) continue;
        for (let nth = 0; nth < codes.length; nth += 1) {
          const code = codes[nth][place];
          let again = false; // a pair's identity can stand in several of its facets
          for (let before = 0; before < nth; before += 1) again ||= codes[before][place] === code;
          if (code >= 0 && !again) counts[code] += 1;
        }
      }
      return { key, values: labels.map((label, code) => [label, counts[code]]) };
    });
    const start = Number(params.get("page") || 0) * PAGE_SIZE;
    return { ...this.sorting(params), total: this.size, matching: places.length, places, rows: places.slice(start, start + PAGE_SIZE).map((place) => this.row(place, params)), filters: counted.filter(Boolean), judges: this.judges, ...this.progress() };
  }

  // The units before and after one in the list that the page was opened from.
  neighbours(params, found, id) {
    const [place, places] = [this.places.get(id), this.order(params, found)];
    const [index, other] = [places.indexOf(place), this.partner[place]];
    return { ...(index < 0 ? {} : { index, total: places.length, previous: this.ids[places[index - 1]], next: this.ids[places[index + 1]] }), other_order: this.ids[other] };
  }

  // The first units that have all words of a text in their ids or facets.
  find(text, limit) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const named = words.map((word) => [...this.facets.values()].map(({ labels, codes }) => [labels.map((label) => label.toLowerCase().includes(word)), codes[0]]));
    const found = [];
    for (let place = 0; place < this.size && found.length < limit; place += 1) {
      if (words.every((word, nth) => this.ids[place].toLowerCase().includes(word) || named[nth].some(([has, codes]) => has[codes[place]]))) found.push({ id: this.ids[place], facets: this.facetsAt(place) });
    }
    return found;
  }

  // Situations by what is varied on them, a unit's score in each cell, the largest spread first. Without a natural grid
  // there are no rows.
  grid(params) {
    const has = (name) => this.facets.has(name);
    const rowFacets = facetsOf("text").filter(has).reverse(); // the last one says most exactly what a unit is about
    const columnFacets = [...facetsOf("identity").slice(0, 1), ...facetsOf("varied")].filter((name) => has(name) && this.facets.get(name).labels.length > 1);
    const rowFacet = has(params.get("rows")) ? params.get("rows") : rowFacets[0];
    for (const columnFacet of has(params.get("columns")) ? [params.get("columns")] : columnFacets.filter((name) => name !== rowFacet)) {
      if (!rowFacet) break;
      const { part, places } = this.onePart(params, columnFacet);
      const labels = this.labelsOf(columnFacet, places);
      if (labels.length < 2 || labels.length > MOST_COLUMNS) continue;
      const rows = this.gridRows(params, places, rowFacet, columnFacet, labels);
      const category = this.facets.get("category");
      const groups = category && determines(this.facets.get(columnFacet).codes[0], category.codes[0], places) ? labels.map((label) => this.label("category", places.find((place) => (this.label(columnFacet, place) ?? "") === label)) ?? "") : [];
      const start = Number(params.get("page") || 0) * PAGE_SIZE;
      return { rowFacets, columnFacets, rowFacet, columnFacet, part, columns: labels, groups, total: rows.length, rows: rows.slice(start, start + PAGE_SIZE), ...this.progress() };
    }
    return { rowFacets, columnFacets, columns: [], rows: [], ...this.progress() };
  }

  labelsOf(name, places) { return unique(places.map((place) => this.label(name, place) ?? "")); }

  // The scored units of the part of the study that varies a facet most, and which part that is: parts are not averaged.
  onePart(params, facet) {
    const { score } = this.by(params.get("judge"));
    const plan = new URLSearchParams([...[...params].filter(([key]) => !["sort", "desc", "q"].includes(key)), ["sort", "position"]]);
    const sides = this.facets.get(`${facet}_a`); // a pair has two of them, and one score for both
    const places = this.order(plan).filter((place) => score[place] !== null && !(sides?.codes[0][place] >= 0));
    for (const name of facetsOf("part").filter((one) => this.facets.has(one) && !params.has(`f.${one}`))) {
      const parts = this.labelsOf(name, places).map((value) => ({ value, own: places.filter((place) => (this.label(name, place) ?? "") === value) }));
      if (parts.length < 2) continue;
      const [{ value, own }] = parts.map((one) => ({ ...one, varied: this.labelsOf(facet, one.own).length })).sort((a, b) => b.varied - a.varied || b.own.length - a.own.length);
      return { part: { [name]: value }, places: own };
    }
    return { part: {}, places };
  }

  // A cell is compared only with cells whose units differ from its own in nothing but the column: categories have label
  // wordings of their own, and what a wording adds to a score is no difference between labels.
  gridRows(params, places, rowFacet, columnFacet, labels) {
    const { score } = this.by(params.get("judge"));
    const blockOf = this.blocks(columnFacet, places);
    const byRow = new Map();
    for (const place of places) {
      const [row, cell] = [this.label(rowFacet, place) ?? "", this.label(columnFacet, place) ?? ""];
      if (!byRow.has(row)) byRow.set(row, new Map());
      if (!byRow.get(row).has(cell)) byRow.get(row).set(cell, []);
      byRow.get(row).get(cell).push(place);
    }
    return [...byRow].map(([name, cells]) => {
      const blocks = new Map(); // of each block, the scores by column
      for (const [label, own] of cells) for (const place of own) { const block = blockOf(place); if (!blocks.has(block)) blocks.set(block, new Map()); blocks.get(block).set(label, score[place]); }
      const shared = [...blocks.values()].filter((block) => block.size > 1);
      const drawn = labels.map((label) => {
        const own = cells.get(label);
        const deviations = shared.filter((block) => block.has(label)).map((block) => block.get(label) - mean([...block.values()]));
        return own ? { score: mean(own.map((place) => score[place])), deviation: deviations.length ? mean(deviations) : null, units: own.map((place) => this.ids[place]) } : null;
      });
      // The two labels that differ most: highest, lowest, and by how much.
      let [highest, lowest, spread] = [-1, -1, null];
      labels.forEach((one, i) => labels.forEach((other, j) => {
        const both = i === j ? [] : shared.filter((block) => block.has(one) && block.has(other));
        const difference = both.length ? mean(both.map((block) => block.get(one) - block.get(other))) : null;
        if (difference !== null && difference >= 0 && (spread === null || difference > spread)) [highest, lowest, spread] = [i, j, difference];
      }));
      return { name, facets: this.facetsAt(cells.values().next().value[0]), spread, highest, lowest, cells: drawn };
    }).sort((a, b) => (b.spread ?? -1) - (a.spread ?? -1));
  }

  // The facets in which twins are alike: what a unit is about, and what the facet does not determine.
  alike(facet, places) {
    const { codes: [own] } = this.facets.get(facet) || { codes: [[]] };
    const texts = facetsOf("text").filter((name) => this.facets.has(name));
    const kept = texts.some((name) => this.repeated.includes(name)) ? this.repeated : [...this.repeated, ...texts];
    return [...this.facets].filter(([name, { codes: [codes] }]) => name !== facet && kept.includes(name) && (texts.includes(name) || name === "category" || !determines(own, codes, places))).map(([, other]) => other);
  }

  // Which units differ in nothing but a facet, and in what it determines. A category is not left out: labels are compared
  // within one. Nor does a unit's own label tell it apart where another facet repeats it, as for judges who heard ballots on it.
  blocks(facet, places) {
    const { labels, codes: [own] } = this.facets.get(facet);
    const others = this.alike(facet, places);
    const repeated = others.map((other) => labels.map((label) => (label === "" ? -1 : other.labels.indexOf(label))));
    return (place) => others.map(({ codes: [codes] }, nth) => (codes[place] >= 0 && repeated[nth][own[place]] === codes[place] ? "own" : codes[place])).join();
  }

  // Pairs of units that differ only in a facet (x or y) and in facets determined by it, as a category is by an identity.
  pairsBy(facet, x, y, places = this.ids.map((_, place) => place)) {
    const { labels, codes: [own] } = this.facets.get(facet) || { labels: [], codes: [[]] };
    const others = [...this.facets].filter(([name, { codes }]) => name !== facet && (facetsOf("text").includes(name) || !determines(own, codes[0], places))).map(([, { codes }]) => codes[0]);
    const side = (value) => { const code = labels.indexOf(value); return new Map(places.filter((place) => code >= 0 && own[place] === code).map((place) => [others.map((codes) => codes[place]).join(), place])); };
    const [a, b] = [side(x), side(y)];
    return [...a].filter(([key]) => b.has(key)).map(([key, place]) => [place, b.get(key)]);
  }
}

// The positions of the units that contain the words of a search; null without one.
export async function searched(run, params) {
  const [text, prompts] = [(params.get("q") || "").trim(), params.get("prompts") || ""];
  if (!text) return null;
  if (!embedded) return get("search", { run, q: text, prompts });
  const words = (text.toLowerCase().match(/"[^"]+"|\S+/g) || []).map((word) => word.replaceAll('"', "").replace(/\*$/, ""));
  return embedded.units.flatMap((unit, place) => {
    const said = unit.messages.filter(({ role }) => prompts || role !== "narrator").flatMap(saidTexts).join("\n").toLowerCase();
    return words.every((word) => said.includes(word)) ? [place] : [];
  });
}
