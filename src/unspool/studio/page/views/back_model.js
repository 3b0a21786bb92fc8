// What Back in time asks for, and what of the answer stands at the cursor.
import { newest } from "../api.js";
import { calm, clamp } from "../dom.js";
import { decode, figures, percent } from "../format.js";
import { frozen, whole } from "../frozen.js";
import { editedText, modelFields, unread } from "../reading.js";
import { currentRun, part, set, state } from "../state.js";
import { t } from "../words.js";

export const TAU = 48; // steps of the window
const KINDS = ["truncated:4", "truncated:8", "truncated:16", "truncated:4,16", "random:0.5", "random:0.75", "random:0.9"];
const DRAWS = 16; // of each random truncation
const PARTS = ["flow", "lags", "truncations"];
const ask = Object.fromEntries(PARTS.map((name) => [name, newest("/api/back", `-${name}`)]));
const keyOf = (body, follows) => JSON.stringify([{ ...body, reading: undefined }, follows]);
const shown = {}; // part → key of the request that is under way or shown
let timer = 0, slowTimer = 0, lately = 0, moved = false;
let slowPlace = "", slowGoes = false; // the window of the slow parts, and whether they are under way

// The window that holds a step: always the same one for the same step.
const liveWindow = (at, tokens) => (at < TAU ? 0 : clamp(Math.floor((at - 16) / 32) * 32, 0, Math.max(0, tokens - 1 - TAU)));
// A file from unspool inspect holds some windows: the nearest one.
const windowAt = (at, tokens) => (whole ? frozen.windows.reduce((best, begin) => (Math.abs(begin + 24 - at) < Math.abs(best + 24 - at) ? begin : best)) : liveWindow(at, tokens));
export const left = (share) => (share > 2 ? `${figures(share)}×` : share >= 0.0005 || !share ? percent(share) : `${figures(100 * share)}\u202f%`);
export const request = (more) => ({ ...modelFields(), text: editedText(), begin: windowAt(state.t, state.reading?.T ?? 2), tau: TAU, scale: state["back.scale"], ...more });
export const cutsRequest = (more) => request({ ...more, parts: ["truncations"], kinds: KINDS, draws: DRAWS, seed: state["back.seed"] });

// The loss in the window that is looked at, and the step that the gradient has come to.
export const lossAt = (found) => clamp(state.t - found.begin, 0, found.tau - 1);
export const frontAt = (found) => Math.max(0, lossAt(found) - Math.round(state["back.lag"]));
export const share = (found, at, to) => found.h(at, to) / (found.h(at, at) || 1);

function opened(answer, begin) {
  const { tau } = answer, h = decode(answer.matrix.h), s = decode(answer.matrix.s);
  const most = Math.max(...h, ...(s ?? []));
  const high = Math.max(1, Math.ceil(Math.log10(most || 1))), low = high - 7;
  return {
    ...answer, begin, low, high, h: (at, to) => h[at * tau + to], s: s && ((at, to) => s[at * tau + to]),
    height: (value) => clamp((Math.log10(Math.max(value, 1e-30)) - low) / 7, 0, 1),
  };
}

// Lags after which nothing of the gradient is left in the picture.
export function reach(found, at) {
  let lag = 0;
  while (lag < at && (found.height(found.h(at, at - lag - 1)) > 0 || (found.s && found.height(found.s(at, at - lag - 1)) > 0))) lag++;
  return lag;
}

// Whether a part is of another window, W or update than what is asked for now: it is shown pale. While a run is trained, the parts of
// one window follow each other without that.
const stale = (name, is) => set({ "back.stale": { ...state["back.stale"], [name]: is } });
const places = {}; // part → the window that is shown
function begin(name, body) {
  if (body.reading === undefined || places[name] !== keyOf(body)) stale(name, true);
}
function again(name, body) {
  if (places[name] === keyOf(body)) stale(name, false);
}
function came(name, body) {
  places[name] = keyOf(body);
  stale(name, false);
}

async function send(name, body, follows) {
  const key = keyOf(body, follows);
  if (shown[name] === key) return again(name, body);
  shown[name] = key;
  begin(name, body);
  try {
    const answer = await ask[name](body);
    if (!answer) return void (shown[name] === key && (shown[name] = ""));
    set({ [`back.${name}`]: name === "flow" ? opened(answer, body.begin) : answer, "back.problem": "" });
    if (name === "flow") arrived();
    if (shown[name] === key) came(name, body);
  } catch (refusal) {
    set({ "back.problem": refusal.message || t(frozen ? "common.unavailable" : "common.goneShort") });
  }
}

// One kind after the other: a gradient that is asked for meanwhile need not wait for all of them.
async function sendCuts(body, follows) {
  const key = keyOf(body, follows), rows = [];
  if (shown.truncations === key) return again("truncations", body);
  shown.truncations = key;
  begin("truncations", body);
  for (const kind of body.kinds) {
    const answer = await ask.truncations({ ...body, kinds: [kind] }).catch(() => null);
    if (shown.truncations !== key) return;
    if (!answer) return void (shown.truncations = "");
    rows.push(...answer.truncations.slice(rows.length ? 1 : 0));
  }
  set({ "back.truncations": { truncations: rows } });
  came("truncations", body);
}

// The first gradient flows by itself, where the reader's system does not ask for less motion.
function arrived() {
  const found = state["back.flow"], end = reach(found, lossAt(found));
  if (moved || calm()) set({ "back.lag": moved ? Math.min(state["back.lag"], end) : end });
  else if (state.view === "back") set({ "back.lag": 0, playing: true });
  moved = true;
}

export function refresh() {
  const run = currentRun();
  if (unread() || !state.reading || state.reading.T < 3) return;
  const busy = run.status === "training" && modelFields().update === null;
  // while a run is trained, all parts are those of the parameters that the text was read with
  const held = busy ? { reading: state.reading.id } : {}, follows = busy ? state.reading.version.update : modelFields().update ?? run.step;
  const body = request(held);
  const wait = busy && shown.flow ? lately + 300 - performance.now() : 0;
  clearTimeout(timer);
  if (wait > 0) return void (timer = setTimeout(refresh, wait));
  lately = performance.now();
  send("flow", { ...body, parts: ["flow"] }, follows);
  const place = JSON.stringify(request());
  if (place !== slowPlace) for (const name of ["lags", "truncations"]) stale(name, true);
  if (place === slowPlace && busy && slowGoes) return; // the slow parts are not begun again because the training has gone on
  slowPlace = place;
  slowGoes = true;
  clearTimeout(slowTimer);
  slowTimer = setTimeout(async () => {
    const about = busy ? Math.floor(follows / 50) : follows, same = () => place === slowPlace;
    await send("lags", { ...body, parts: ["lags"] }, about);
    if (same() && place === JSON.stringify(request())) await sendCuts(cutsRequest(held), about);
    if (same()) slowGoes = false;
  }, 250);
}

export function stopAsking() {
  clearTimeout(timer);
  clearTimeout(slowTimer);
  slowGoes = false;
}
export const setScale = (x) => set({ "back.scale": Math.round(clamp(x, 0.5, 2) * 100) / 100 });

export function declare() {
  part("back.scale", 1);
  part("back.K", 8);
  part("back.lag", 0, false);
  part("back.seed", 0, false);
  for (const name of PARTS) part(`back.${name}`, null, false);
  part("back.problem", "", false);
  part("back.stale", {}, false);
}
