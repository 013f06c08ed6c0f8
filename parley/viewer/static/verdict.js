// What came out of a unit, in one line: "A (white), 3 of 4 judges · other order: flipped".
import { number, percent, plural, unique } from "./dom.js";

export function verdictLine(unit, measure = null) {
  if (unit.status !== "done") return "";
  return [answerInWords(unit) || choiceInWords(unit) || expectedInWords(unit) || scoreInWords(unit, measure), unit.figures?.flip ? `other order: ${unit.figures.flip}` : ""].filter(Boolean).join(" · ");
}

// The verdicts that count: a chair's, or those of the last round.
function finalOnes(verdicts) {
  const chair = verdicts.filter(({ role }) => role === "chair");
  const last = Math.max(...verdicts.map(({ round }) => round));
  return chair.length ? chair : verdicts.filter(({ round }) => round === last);
}

// A question with options: what was answered, and what that is.
function answerInWords({ facets, verdicts, figures }) {
  const answer = verdicts.filter(({ metric }) => metric === "answer").at(-1);
  if (!answer || facets.label === undefined) return "";
  const kinds = (figures?.answers || []).filter((kind) => kind !== "unparsed");
  return answer.value === null ? `the answer could not be read (${answer.status})` : [answer.text || `option ${answer.value + 1}`, kinds.join(", ")].filter(Boolean).join(": ");
}

function choiceInWords(unit) {
  const choices = finalOnes(unit.verdicts.filter(({ metric, text }) => metric === "preferred" && text !== null));
  if (!choices.length) return "";
  const votes = (choice) => choices.filter(({ text }) => text === choice).length;
  const ranked = unique(choices.map(({ text }) => text)).sort((a, b) => votes(b) - votes(a));
  const identity = (side) => unit.facets[`identity_${side.toLowerCase()}`];
  const named = (side) => (identity(side) === undefined ? side : `${side} (${identity(side) || "no label"})`);
  if (ranked.length > 1 && votes(ranked[0]) === votes(ranked[1])) return `tie: ${ranked.map((side) => `${votes(side)} for ${named(side)}`).join(", ")}`;
  const probability = choices.length === 1 && choices[0].value !== null && isSilent(unit) ? `, with probability ${percent(choices[0].value)}` : "";
  return choices.length === 1 ? `${named(ranked[0])}${probability}` : `${named(ranked[0])}, ${votes(ranked[0])} of ${plural(choices.length, "judge")}`;
}

export function expectedValues(unit) { return unit.messages.findLast(({ expected }) => expected)?.expected || null; }

// The probabilities of a ballot's options, [[option, probability], …]; [] where they were not read.
export function distributionOf(expected, metric) {
  const start = `${metric}=`;
  return Object.entries(expected || {}).filter(([path]) => path.startsWith(start)).map(([path, probability]) => [path.slice(start.length), probability]);
}

// Whether the unit is one silent ballot: nobody speaks in it, and it has no rounds.
export function isSilent(unit) { return expectedValues(unit) !== null && unit.messages.every(({ round }) => round === 0); }

// A silent ballot: its expected score, and what it would most likely have said. Several ballots have a mean instead.
function expectedInWords(unit) {
  const [score, ...others] = unit.verdicts.filter(({ value, text }) => value !== null && text === null);
  const options = score && !others.length && isSilent(unit) ? distributionOf(expectedValues(unit), score.metric) : [];
  if (!options.length) return "";
  const [likely, probability] = options.reduce((best, one) => (one[1] > best[1] ? one : best));
  return `expected score ${number(score.value)} on a scale of ${options[0][0]} to ${options.at(-1)[0]} · most likely ${likely} (${percent(probability)})`;
}

function scoreInWords({ verdicts, figures }, measure) {
  if (figures?.score === null || figures?.score === undefined) return figures?.choice ? String(figures.choice) : "";
  if (measure?.kind === "correct") return figures.score === 1 ? "right" : figures.score === 0 ? "wrong" : `${percent(figures.score)} right`;
  const judges = unique(finalOnes(verdicts.filter(({ value, text }) => value !== null && text === null)).map(({ judge }) => judge)).length;
  return `${measure?.label || "score"} ${number(figures.score)}${judges > 1 ? `, mean of ${judges} judges` : ""}`;
}
