// Who repeated whom: a judge that takes over another's scores, or repeats its words. Only what a judge had read counts.
// Unlike the report, one unit has no chance rate to compare with, so only what the task cannot explain is marked.

const ECHO_WORDS = 8; // in a row, as RLDF counts repeated instructions; fewer are often a phrase that anyone would use
const MAX_ECHO_WORDS = 5000; // of one message

// The prose in a reply: its longer strings if it was parsed, otherwise its text. Short strings are labels and choices.
function proseOf(message) {
  if (!message.parsed || typeof message.parsed !== "object") return [];
  const prose = [];
  const collect = (value) => {
    if (typeof value === "string" && value.length > 12) prose.push(value);
    else if (value && typeof value === "object" && !Array.isArray(value)) Object.values(value).forEach(collect);
  };
  collect(message.parsed);
  return prose;
}

export function hasJson(text) { return /^\s*[[{]|\{\s*"/.test(text.slice(0, 2000)); }

export function saidTexts(message) { return message.parsed && hasJson(message.text) ? proseOf(message) : [message.text]; }

// For each message by its number: { scores: [names], first, words: Map(name → count), ranges: [[start, end, name], …] by text }.
export function findEchoes(unit) {
  const found = new Map();
  const speakers = unit.messages.filter(({ role }) => ["debater", "chair"].includes(role));
  const told = sequencesOf(unit.messages.filter(({ role }) => role === "narrator").map(({ text }) => text));
  for (const message of speakers) {
    const heard = new Set(message.calls.flatMap(({ prompt }) => prompt.map(([, source]) => source)));
    const earlier = speakers.filter((other) => other.seq < message.seq && other.speaker !== message.speaker && (message.calls.length ? heard.has(other.speaker) : other.round < message.round));
    if (!earlier.length) continue;
    const own = speakers.filter((other) => other.seq < message.seq && other.speaker === message.speaker);
    const scores = takenScores(unit, message, earlier, own.at(-1));
    const { words, ranges } = repeatedWords(message, earlier, new Set([...told, ...sequencesOf(own.flatMap(saidTexts))]));
    if (scores.length || words.size) found.set(message.seq, { scores, first: !own.length, words, ranges });
  }
  return found;
}

function scoresOf(unit, { speaker, round }) {
  return unit.verdicts.filter((verdict) => verdict.judge === speaker && verdict.round === round && verdict.value !== null && verdict.text === null)
    .map(({ subject, metric, value }) => `${subject} ${metric} ${value}`).sort().join("; ");
}

// All judges who gave these scores earlier; none if the judge gave them earlier itself.
function takenScores(unit, message, earlier, before) {
  const scores = scoresOf(unit, message);
  if (!scores || (before && scoresOf(unit, before) === scores)) return [];
  return [...new Set(earlier.filter((other) => scoresOf(unit, other) === scores).map(({ speaker }) => speaker))];
}

function wordsIn(text) { return [...text.matchAll(/[\p{L}\p{N}]+/gu)].slice(0, MAX_ECHO_WORDS).map((match) => ({ word: match[0].toLowerCase(), start: match.index, end: match.index + match[0].length })); }

function eachSequence(words, visit) {
  for (let start = 0; start + ECHO_WORDS <= words.length; start++) visit(words.slice(start, start + ECHO_WORDS).map(({ word }) => word).join(" "), start);
}

function sequencesOf(texts) {
  const sequences = new Set();
  for (const text of texts) eachSequence(wordsIn(text), (sequence) => sequences.add(sequence));
  return sequences;
}

function repeatedWords(message, earlier, known) {
  const source = new Map();
  for (const other of earlier) for (const sequence of sequencesOf(saidTexts(other))) if (!known.has(sequence) && !source.has(sequence)) source.set(sequence, other.speaker);
  const words = new Map();
  const ranges = saidTexts(message).map((text) => {
    const own = wordsIn(text);
    const from = new Array(own.length).fill(null);
    eachSequence(own, (sequence, start) => { if (source.has(sequence)) for (let n = 0; n < ECHO_WORDS; n++) from[start + n] ??= source.get(sequence); });
    const pieces = [];
    from.forEach((name, n) => {
      if (name === null) return;
      words.set(name, (words.get(name) || 0) + 1);
      if (n && from[n - 1] === name) pieces.at(-1)[1] = own[n].end;
      else pieces.push([own[n].start, own[n].end, name]);
    });
    return pieces;
  });
  return { words, ranges };
}

// In words, for a list and for a message: ["took over the scores of Editor", "repeats 12 words of Editor"].
export function echoInWords({ scores, first, words }) {
  return [
    ...(scores.length ? [`${first ? "gives the same scores as" : "moved to the scores of"} ${scores.join(", ")}`] : []),
    ...[...words].map(([name, count]) => `repeats ${count} of ${name}'s words`),
  ];
}
