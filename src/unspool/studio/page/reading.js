// Keeps state.reading (and state.base, the same without what-ifs) up to date for the views that read a text.
import { newest } from "./api.js";
import { decode } from "./format.js";
import { whole } from "./frozen.js";
import { currentRun, set, state, watch } from "./state.js";
import { takeHere } from "./views/read_vocabulary.js";
import { t } from "./words.js";

const LIVE = 450; // milliseconds between two readings while the newest update is followed
const SETTLED = 300; // milliseconds without a key after which the plane of the path is that of the text again
const ask = newest("/api/read");
const askBase = newest("/api/read", "-base");
let wanted = () => false;
let caret = { before: () => null, after: () => null }; // the step at the caret of the text field while somebody types, or null
let lastKey = "", askedBase = "", lately = 0, timer = 0, plane = null, serial = 0, newestShown = 0;
let lastText = "", typedAt = -SETTLED, settling = 0, forgotten = "";
let pinned = null; // the update whose parameters what-ifs compare while a run is trained

// The fields that say with which parameters a request computes. What-ifs name their update, so that the same text
// with and without them is read by the same parameters.
export function modelFields(withEdits = true) {
  const run = currentRun();
  const newest = state.u === null || !run || state.u >= run.step;
  return { run: run?.id, update: newest ? heldUpdate(run) : state.u, edits: withEdits ? state.edits.filter((each) => each.kind !== "character") : [] };
}

function heldUpdate(run) {
  if (!state.edits.length || !run) return (pinned = null);
  const read = state.reading?.version.run === run.id ? state.reading.version.update : run.step;
  return (pinned = run.status === "training" ? pinned ?? read : run.step);
}

// The text with its changed characters.
export function editedText() {
  const letters = Array.from(state.text);
  for (const each of state.edits) if (each.kind === "character" && each.t < letters.length) letters[each.t] = each.value;
  return letters.join("");
}

// The body that asks for what is shown, for the numbers as CSV.
export const asked = () => ({ ...modelFields(), text: editedText() });

// Why there is nothing to ask, or null.
export function unread() {
  const run = currentRun();
  if (!run) return "noRun";
  if (run.status === "preparing" || run.vocabulary === undefined || run.vocabulary === null) return "preparing";
  if (Array.from(state.text).length < 2) return "short";
  return null;
}

// States that came in part: the rows before answer.from are those of the reading that it continues.
function completed(answer, before) {
  if (answer.short) return answer;
  for (const [name, rows] of Object.entries(answer.states)) {
    const [count, width] = rows.shape;
    if (!answer.from) continue;
    const whole = new Float32Array((answer.from + count) * width);
    whole.set(before.states[name].values.subarray(0, answer.from * width));
    whole.set(rows, answer.from * width);
    whole.shape = [answer.from + count, width];
    answer.states[name] = whole;
  }
  return { ...answer, from: 0, same: answer.from, after: before?.id };
}

function opened(answer, text) {
  const states = {};
  for (const [name, found] of Object.entries(answer.states)) {
    const values = decode(found), width = found.shape[1];
    states[name] = { values, width, scale: answer.scales[name], at: (t, unit) => values[t * width + unit] };
  }
  return {
    ...answer, text, states, layer: state["read.layer"], id: answer.reading, T: answer.pieces.length,
    surprise: decode(answer.surprise), expected: decode(answer.expected), shares: decode(answer.shares), ids: decode(answer.ids), known: decode(answer.known),
    path: answer.path && { positions: decode(answer.path.positions), shares: answer.path.shares },
    spans: spansOf(text, answer.pieces, currentRun()?.token_kind),
  };
}

// Where each token lies in the text: [begin, end) in UTF-16 units. Spaces between words go to the word after them.
export function spansOf(text, pieces, kind) {
  if (kind === "byte") return byteSpans(text, pieces.length);
  const spans = [];
  let at = 0;
  for (const piece of pieces) {
    const exact = text.startsWith(piece, at) ? at : text.indexOf(piece, at);
    const near = exact >= 0 && piece && (exact === at || /^\s*$/.test(text.slice(at, exact)));
    const end = near ? exact + piece.length : Math.min(text.length, at + (text.codePointAt(at) > 0xffff ? 2 : 1));
    spans.push([at, end]);
    at = end;
  }
  if (spans.length) spans.at(-1)[1] = text.length;
  return spans;
}

function byteSpans(text, count) {
  const spans = [];
  let at = 0;
  for (const letter of text) {
    const bytes = new TextEncoder().encode(letter).length;
    for (let i = 0; i < bytes; i++) spans.push([i ? at + letter.length : at, at + letter.length]);
    at += letter.length;
  }
  return spans.slice(0, count);
}

const layer = () => (state["read.layer"] && !whole ? { states: [state["read.layer"]] } : {});
const sameText = (text) => state.reading?.text === text;

// A reading whose steps before the first difference need not be computed again.
const continued = (run, reading) => (reading && reading.version.run === run.id && reading.layer === state["read.layer"] && reading.id !== forgotten ? reading : null);

// The plane of the path: that of this text, or while somebody types, of the text before.
function planeOf(run, typing) {
  return plane && plane.run === run.id && (typing || plane.text === state.text) ? { plane: plane.id } : {};
}

// Whether the text changed a moment ago. Some time after the last key it is read once more.
function typingNow(text) {
  if (text !== lastText) {
    lastText = text;
    typedAt = performance.now();
    clearTimeout(settling);
    settling = setTimeout(() => {
      if (plane && plane.text !== state.text) lastKey = "";
      refreshReading();
    }, SETTLED);
  }
  return performance.now() - typedAt < SETTLED;
}

export async function refreshReading() {
  if (!wanted()) return;
  const why = unread();
  if (why) {
    if (state.reading) set({ reading: null, base: null });
    lastKey = "";
    return;
  }
  const run = currentRun();
  const fields = modelFields();
  const text = editedText();
  const key = JSON.stringify([fields, fields.update ?? run.step, text, state["read.layer"]]);
  if (key === lastKey) return void refreshBase();
  const typing = typingNow(text);
  const follows = fields.update === null && run.status === "training" && sameText(text);
  const wait = lately + LIVE - performance.now();
  if (follows && wait > 0) {
    timer ||= setTimeout(() => ((timer = 0), refreshReading()), wait);
    return;
  }
  lastKey = key;
  lately = performance.now();
  const mine = ++serial;
  refreshBase();
  const before = continued(run, state.reading);
  const newest = fields.update === null;
  // a key while a run is trained is answered by the parameters of the text before it; the newest are read when no key comes
  if (newest && run.status === "training" && before?.newest && before.text !== text) fields.update = before.version.update;
  const keep = planeOf(run, typing), aim = caret.before(text);
  try {
    const body = { ...fields, text, ...layer(), ...keep, ...(before && { after: before.id }), at: aim ?? state.t };
    const answer = await ask(body, (found) => completed(found, before));
    if (!answer || mine < newestShown) return;
    newestShown = mine;
    if (answer.short) {
      problem({ message: t("read.short") });
      return set({ reading: null, base: null });
    }
    if (!keep.plane) plane = { run: run.id, text: state.text, id: answer.reading };
    const reading = { ...opened(answer, text), newest };
    takeHere(reading, answer.here);
    set({ reading, t: aim === null ? caret.after(reading) ?? Math.min(state.t, reading.T - 1) : answer.here.t });
    problem(null);
  } catch (refusal) {
    if (refusal.code === "unknown" && (keep.plane || before)) {
      plane = null;
      forgotten = before?.id ?? "";
      lastKey = "";
      return void refreshReading();
    }
    problem(refusal);
  }
}

async function refreshBase() {
  if (!state.edits.length) {
    askedBase = "";
    if (state.base) set({ base: null });
    return;
  }
  const run = currentRun();
  const fields = modelFields(false);
  const key = JSON.stringify([fields, fields.update ?? run.step, state.text, state["read.layer"]]);
  if (key === askedBase) return;
  askedBase = key;
  const before = continued(run, state.base ?? state.reading);
  const body = { ...fields, text: state.text, ...layer(), ...planeOf(run, true), ...(before && { after: before.id }), at: state.t };
  const answer = await askBase(body, (found) => completed(found, before)).catch(() => null);
  if (!answer) askedBase = "";
  else if (!answer.short && state.edits.length) set({ base: opened(answer, state.text) });
}

function problem(refusal) {
  set({ problem: refusal ? refusal.message || t(refusal.code === "frozen" ? "common.unavailable" : "common.goneShort") : "" });
}

// The field that is typed in says at which step its caret will be, before a text is read and after.
export const followCaret = (steps) => (caret = steps);

export function startReading(isWanted) {
  wanted = isWanted;
  watch((changed) => ["u", "text", "edits", "runs", "current", "view", "read.layer"].some((key) => changed.has(key)) && refreshReading());
}
