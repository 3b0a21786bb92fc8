// Keeps state.reading (and state.base, the same without what-ifs) up to date for the views that read a text.
import { newest } from "./api.js";
import { decode } from "./format.js";
import { whole } from "./frozen.js";
import { currentRun, set, state, watch } from "./state.js";
import { t } from "./words.js";

const LIVE = 450; // milliseconds between two readings while the newest update is followed
const ask = newest("/api/read");
const askBase = newest("/api/read", "-base");
let wanted = () => false;
let lastKey = "", askedBase = "", lately = 0, timer = 0, plane = null, serial = 0, newestShown = 0;

// The fields that say with which parameters a request computes. What-ifs name their update, so that the same text
// with and without them is read by the same parameters.
export function modelFields(withEdits = true) {
  const run = currentRun();
  const newest = state.u === null || !run || state.u >= run.step;
  const update = newest ? (state.edits.length && run ? run.step : null) : state.u;
  return { run: run?.id, update, edits: withEdits ? state.edits.filter((each) => each.kind !== "character") : [] };
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

function opened(answer, text) {
  const states = {};
  for (const [name, packed] of Object.entries(answer.states)) {
    const bytes = decode(packed);
    const scale = packed.scale / 127;
    const width = packed.shape[1];
    states[name] = { width, scale: packed.scale, at: (t, unit) => (bytes[t * width + unit] - 128) * scale };
  }
  return {
    ...answer, text, states, id: answer.reading, T: answer.pieces.length,
    surprise: decode(answer.surprise), expected: decode(answer.expected), shares: decode(answer.shares), ids: decode(answer.ids),
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
  const keep = plane && plane.run === run.id && plane.text === state.text ? { plane: plane.id } : {};
  try {
    const answer = await ask({ ...fields, text, ...layer(), ...keep });
    if (!answer || mine < newestShown) return;
    newestShown = mine;
    if (!keep.plane) plane = { run: run.id, text: state.text, id: answer.reading };
    set({ reading: opened(answer, text) });
    set({ t: Math.min(state.t, answer.pieces.length - 1) });
    problem(null);
  } catch (refusal) {
    if (keep.plane && refusal.code === "unknown") {
      plane = null;
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
  const keep = plane && plane.run === run.id && plane.text === state.text ? { plane: plane.id } : {};
  const answer = await askBase({ ...fields, text: state.text, ...layer(), ...keep }).catch(() => null);
  if (answer && state.edits.length) set({ base: opened(answer, state.text) });
}

function problem(refusal) {
  set({ problem: refusal ? refusal.message || t(refusal.code === "frozen" ? "common.unavailable" : "common.goneShort") : "" });
}

export function startReading(isWanted) {
  wanted = isWanted;
  watch((changed) => ["u", "text", "edits", "runs", "current", "view", "read.layer"].some((key) => changed.has(key)) && refreshReading());
}
