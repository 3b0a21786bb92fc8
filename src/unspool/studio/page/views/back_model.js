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
const shown = {}; // part → key of the request that is under way or shown
let timer = 0, lately = 0, moved = false, slowKey = "";

// The window that holds a step: always the same one for the same step.
const liveWindow = (at, tokens) => (at < TAU ? 0 : clamp(Math.floor((at - 16) / 32) * 32, 0, Math.max(0, tokens - 1 - TAU)));
// A file from unspool inspect holds some windows: the nearest one.
const windowAt = (at, tokens) => (whole ? frozen.windows.reduce((best, begin) => (Math.abs(begin + 24 - at) < Math.abs(best + 24 - at) ? begin : best)) : liveWindow(at, tokens));
export const left = (share) => (share > 2 ? `${figures(share)}×` : share >= 0.0005 || !share ? percent(share) : `${figures(100 * share)}\u202f%`);
export const request = (more) => ({ ...modelFields(), text: editedText(), begin: windowAt(state.t, state.reading?.T ?? 2), tau: TAU, scale: state["back.scale"], ...more });
export const cutsRequest = () => request({ parts: ["truncations"], kinds: KINDS, draws: DRAWS, seed: state["back.seed"] });

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

// Whether a part is of another window or another W than what is asked for now: it is shown pale.
const stale = (name, is) => set({ "back.stale": { ...state["back.stale"], [name]: is } });

async function send(name, body, follows) {
  const key = JSON.stringify([body, follows]);
  if (shown[name] === key) return;
  shown[name] = key;
  stale(name, true);
  try {
    const answer = await ask[name](body);
    if (!answer) return void (shown[name] === key && (shown[name] = ""));
    set({ [`back.${name}`]: name === "flow" ? opened(answer, body.begin) : answer, "back.problem": "" });
    if (name === "flow") arrived();
    if (shown[name] === key) stale(name, false);
  } catch (refusal) {
    set({ "back.problem": refusal.message || t(frozen ? "common.unavailable" : "common.goneShort") });
  }
}

// One kind after the other: a gradient that is asked for meanwhile need not wait for all of them.
async function sendCuts(body, follows) {
  const key = JSON.stringify([body, follows]), rows = [];
  if (shown.truncations === key) return;
  shown.truncations = key;
  stale("truncations", true);
  for (const kind of body.kinds) {
    const answer = await ask.truncations({ ...body, kinds: [kind] }).catch(() => null);
    if (shown.truncations !== key) return;
    if (!answer) return void (shown.truncations = "");
    rows.push(...answer.truncations.slice(rows.length ? 1 : 0));
  }
  set({ "back.truncations": { truncations: rows } });
  stale("truncations", false);
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
  const body = request(), follows = body.update ?? run.step;
  const busy = body.update === null && run.status === "training";
  const wait = busy && shown.flow ? lately + 300 - performance.now() : 0;
  clearTimeout(timer);
  if (wait > 0) return void (timer = setTimeout(refresh, wait));
  lately = performance.now();
  send("flow", { ...body, parts: ["flow"] }, follows);
  const key = JSON.stringify(body);
  if (key !== slowKey && !busy) for (const name of ["lags", "truncations"]) stale(name, true);
  slowKey = key;
  timer = setTimeout(async () => {
    const about = busy ? Math.floor(follows / 50) : follows;
    await send("lags", { ...body, parts: ["lags"] }, about);
    if (JSON.stringify(request()) === key) sendCuts(cutsRequest(), about);
  }, 250);
}

export const stopAsking = () => clearTimeout(timer);
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
