// Back in time: the gradient of one loss flows back; all losses at once; by lag; what truncation makes of it.
import { clamp } from "../dom.js";
import { figures, glyph } from "../format.js";
import { frozen } from "../frozen.js";
import { unread } from "../reading.js";
import { math, sayLine, strong, token } from "../say.js";
import { set, state } from "../state.js";
import { rich, t } from "../words.js";
import { cutsPanel, lagsPanel } from "./back_cuts.js";
import { flowPanel } from "./back_flow.js";
import { memoryPanel } from "./back_memory.js";
import { matrixPanel } from "./back_matrix.js";
import { declare, frontAt, left, lossAt, reach, refresh, setScale, share, stopAsking, TAU } from "./back_model.js";

const PACE = 26; // steps a second that the gradient travels
const FINE = 16; // parts of a step that it moves at a time

function sentence(say) {
  const found = state["back.flow"], why = unread() ?? (state.reading && state.reading.T < 3 ? "three" : null);
  if (!found || why) return say.show([state["back.problem"] || (why === "three" ? t("back.short") : why ? t(`read.${why}`) : t("common.waiting"))]);
  const at = lossAt(found), to = frontAt(found), from = found.begin + 1, part = share(found, at, to);
  if (!found.h(at, at)) return say.show([t("back.noGradient", { t: at + from })]);
  say.show(rich(part > 2 ? "back.saysGrown" : "back.says", {
    t: strong(String(at + from)), now: token(glyph(found.pieces[at]), true), next: token(glyph(found.pieces[at + 1])), g: strong(figures(found.h(at, at))), h: math(`h(${at + from})`),
    k: strong(String(to + from)), lag: String(at - to), share: strong(left(part)), s: found.s && to < at ? t("back.saysS", { share: left(found.s(at, to) / found.h(at, at)) }) : "",
  }));
}

const SCALES = [0.5, 1, 1.5, 2];
const moveFront = (by) => {
  const found = state["back.flow"];
  if (found) set({ "back.lag": clamp(Math.round(state["back.lag"]) + by, 0, lossAt(found)), playing: false });
};
const moveK = (by) => set({ "back.K": clamp(state["back.K"] + by, 1, TAU) });
const WAKES = ["reading", "t", "u", "text", "edits", "current", "back.scale", "back.seed", "view"];

export const view = {
  name: "back",
  reads: true,
  pace: PACE * FINE,
  mount(root) {
    declare();
    if (!state.t) set({ t: TAU - 8 });
    const say = sayLine();
    const parts = [flowPanel(), matrixPanel(), lagsPanel(), cutsPanel(), memoryPanel()];
    root.append(say, ...parts);
    let last = state.t, step = -1;
    return {
      update(changed) {
        const found = state["back.flow"], before = step;
        step = Math.round(state["back.lag"]);
        if (step === before && changed.size === 1 && changed.has("back.lag")) return parts[0].update(changed); // a frame between two steps
        if (changed.has("t") && state.t !== last) {
          last = state.t;
          if (found) set({ "back.lag": reach(found, lossAt(found)) });
        }
        if (changed.has("playing")) {
          say.update();
          if (state.playing && found && state["back.lag"] >= reach(found, lossAt(found))) set({ "back.lag": 0 });
        }
        if (["back.flow", "back.lag", "back.problem", "t", "reading", "runs", "text"].some((key) => changed.has(key))) sentence(say);
        for (const each of parts) each.update(changed);
        if (changed.has("back.stale")) [null, null, "lags", "truncations"].forEach((name, i) => parts[i].classList.toggle("hushed", name !== null && state["back.stale"][name] === true));
        if (WAKES.some((key) => changed.has(key))) refresh();
      },
      tick(count) {
        const found = state["back.flow"];
        if (!found) return;
        const end = reach(found, lossAt(found)), lag = Math.min(end, state["back.lag"] + count / FINE);
        set({ "back.lag": lag, playing: lag < end });
      },
      keys: {
        ",": () => moveFront(1), ".": () => moveFront(-1), "-": () => moveK(-1), "+": () => moveK(1),
        ...(frozen ? {} : { s: () => setScale(SCALES.find((each) => each > state["back.scale"]) ?? SCALES[0]), r: () => set({ "back.seed": state["back.seed"] + 1 }) }),
      },
      help: [[[",", "."], t("back.keyFront")], [["−", "+"], t("back.keyK")], ...(frozen ? [] : [[["s"], t("back.keyScale")], [["r"], t("back.again")]]), [["↑", "↓"], t("back.keyMatrix")]],
      unmount: stopAsking,
    };
  },
};
