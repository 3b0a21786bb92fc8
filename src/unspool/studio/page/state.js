// The one state of the page. Watchers run once a frame with the set of keys that changed; the newest value wins.

export const state = {
  lang: "en", // "en" | "zh"
  theme: "", // "" follows the system | "light" | "dark"
  view: "learn",
  u: null, // the cursor through updates; null follows the newest
  t: 0, // the cursor through time: the token that was read last
  text: "", // what the views Read, Units and Back in time read
  edits: [], // what-ifs, oldest first: {kind: "character" | "unit" | "weight", …}
  unit: "", // the chosen unit, "layer0.h17"
  playing: false, // whether the view moves by itself
  reading: null, // the newest answer about the text (see reading.js)
  base: null, // the same without what-ifs; null where there are none
  here: null, // exact values of the step at the cursor (see views/read_vocabulary.js)
  vocabulary: "", // id of the run whose tokens are known
  problem: "", // why the last reading failed, in words
  // from the server's stream (see stream.js)
  online: "connecting", // "connecting" | "live" | "gone" | "refused" | "frozen"
  runs: [],
  current: null, // id of the run that the strip shows
  curve: { rows: new Float64Array(0), count: 0 }, // update, loss, running mean, norm, seconds
  points: [],
  samples: [],
  replay: null,
  note: null,
  texts: [],
};

const watchers = new Set();
let pending = null;
let painting = null; // work for the end of the frame that is being painted

export function set(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (!(key in state)) throw new Error(`no such part of the state: ${key}`);
    if (Object.is(state[key], value)) continue;
    state[key] = value;
    touch(key);
  }
}

// Say that a part changed inside, or a key of a view's own ("back.scale").
export function touch(key) {
  if (!pending) {
    pending = new Set();
    requestAnimationFrame(paint);
  }
  pending.add(key);
}

function paint() {
  const changed = pending;
  pending = null;
  painting = [];
  for (const watcher of [...watchers]) watcher(changed);
  const works = painting;
  painting = null;
  for (const work of works) work();
}

// Do something at the end of this frame, or in the next one.
export function inFrame(work) {
  if (painting) painting.push(work);
  else requestAnimationFrame(work);
}

// Run watcher(changed) after changes; returns a function that ends it.
export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

// The run that the strip shows, or null.
export function currentRun() {
  return state.runs.find((run) => run.id === state.current) ?? null;
}

// The update that is looked at, as a number.
export function updateShown() {
  return state.u ?? currentRun()?.step ?? 0;
}

// Declare a part of a view's own with its first value; it is kept when the view is left and, if linked, goes into the
// text of "copy this view".
export const linked = new Map();
const early = new Map(); // values of parts that are not declared yet: from the address, or of a saved page
export function part(key, value, link = true) {
  if (key in state) return;
  const given = early.get(key);
  state[key] = given !== undefined && given !== null && typeof given === typeof value ? given : value;
  if (link) linked.set(key, value);
}

// Set a part now if its view has declared it, else when it does.
export function giveParts(parts) {
  for (const [key, value] of Object.entries(parts)) {
    if (!linked.has(key)) early.set(key, value);
    else if (typeof value === typeof linked.get(key)) set({ [key]: value });
  }
}
