// The state of the page as a short text: in the address, and as "copy this view" for other people's studios.
import { call } from "./api.js";
import { frozen } from "./frozen.js";
import { currentRun, giveParts, linked, set, state, updateShown } from "./state.js";

const SETTINGS = ["cell", "hidden", "layers", "activation", "pattern", "feedback", "embedding", "learning_rate", "seed", "steps", "bptt", "batch_size", "window", "dropout", "optimiser", "schedule", "clip"];
const NUMBERS = new Set(["hidden", "layers", "embedding", "learning_rate", "seed", "steps", "batch_size", "window", "dropout", "clip"]);
export const VIEWS = frozen?.views ?? ["learn", "read", "units", "back", "unfold"];

// What this tab looks at; with the run's settings if `whole`, so that another studio can train the same.
export function fragment(whole = false) {
  const made = new URLSearchParams({ view: state.view });
  if (state.u !== null || whole) made.set("u", updateShown());
  if (state.t) made.set("t", state.t + 1);
  if (state.unit) made.set("unit", state.unit);
  for (const [key, first] of linked) if (JSON.stringify(state[key]) !== JSON.stringify(first)) made.set(key, JSON.stringify(state[key]));
  if (state.edits.length) made.set("edits", JSON.stringify(state.edits));
  if (state.text && state.text.length <= 6000) made.set("text", state.text);
  const run = currentRun();
  if (whole && run) {
    const text = state.texts.find((each) => each.id === run.text);
    if (text) made.set("on", text.name);
    for (const key of SETTINGS) if (run[key] !== undefined && run[key] !== null) made.set(`run.${key}`, run[key]);
    if (run.token_kind) made.set("run.tokens", run.token_kind);
  }
  return made.toString();
}

// What of a fragment is about this tab alone, checked, as changes of the state.
export function changesOf(given) {
  const made = {};
  const whole = (key) => (/^\d{1,9}$/.test(given.get(key) ?? "") ? Number(given.get(key)) : null);
  if (VIEWS.includes(given.get("view"))) made.view = given.get("view");
  if (given.has("u")) made.u = whole("u");
  if (whole("t")) made.t = whole("t") - 1;
  if (/^layer\d+\.[a-z]\d+$/.test(given.get("unit") ?? "")) made.unit = given.get("unit");
  if (given.has("text")) made.text = given.get("text").slice(0, 20000);
  const edits = parsed(given.get("edits"));
  if (Array.isArray(edits)) made.edits = edits.filter(isEdit).slice(0, 64);
  return made;
}

function parsed(text) {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isEdit(each) {
  if (!each || typeof each !== "object") return false;
  if (each.kind === "character") return Number.isInteger(each.t) && typeof each.value === "string";
  if (each.kind === "weight") return typeof each.name === "string" && Array.isArray(each.index) && typeof each.value === "number";
  return each.kind === "unit" && typeof each.name === "string" && typeof each.value === "number" && (each.t === null || Number.isInteger(each.t));
}

// Open the text of another studio's view: {trains: whether a new run was begun} or {bad} or {noText: name}.
export async function openView(words) {
  const given = new URLSearchParams(words.trim().replace(/^[^#]*#/, ""));
  const changes = changesOf(given);
  if (!changes.view) return { bad: true };
  const options = {};
  for (const key of [...SETTINGS, "tokens"]) {
    const value = given.get(`run.${key}`);
    if (value !== null) options[key] = NUMBERS.has(key) ? Number(value) : value;
  }
  let trains = false;
  if (Object.keys(options).length) {
    const same = (run) => Object.entries(options).every(([key, value]) => (key === "tokens" ? run.token_kind : run[key]) === value) && !run.parent;
    const text = state.texts.find((each) => each.name === given.get("on"));
    const found = state.runs.find((run) => same(run) && (!text || !run.text || run.text === text.id));
    if (found && found.id !== state.current) await call("/api/show", { run: found.id });
    if (!found && !text) return { noText: given.get("on") ?? "" };
    if (!found) {
      await call("/api/new", { text: text.id, options, start: true });
      trains = true;
    }
  }
  return { trains, changes, parts: partsOf(given), u: changes.u };
}

let saving = 0;
export function rememberView() {
  clearTimeout(saving);
  saving = setTimeout(() => history.replaceState(null, "", `#${fragment()}`), 400);
}

// What of a fragment belongs to single views.
export function partsOf(given) {
  const made = {};
  for (const [key, value] of given) if (/^(learn|read|units|back|unfold)\.\w+$/.test(key)) made[key] = parsed(value);
  return made;
}

export function restoreView() {
  const given = new URLSearchParams(location.hash.slice(1));
  set(changesOf(given));
  giveParts(partsOf(given));
}
