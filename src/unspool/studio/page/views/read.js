// Read: type a text; its surprise, what comes next, the path of the state, all units, what-ifs.
import { clamp } from "../dom.js";
import { fixed, glyph, percent } from "../format.js";
import { frozen } from "../frozen.js";
import { unread } from "../reading.js";
import { sayLine, strong, token } from "../say.js";
import { set, state } from "../state.js";
import { rich, t } from "../words.js";
import { nextPanel } from "./read_next.js";
import { pathPanel } from "./read_path.js";
import { textPanel } from "./read_text.js";
import { unitsPanel } from "./read_units.js";
import { whatPanel } from "./read_what.js";
import { piece, sharesAt } from "./read_vocabulary.js";

function sentence(say) {
  const reading = state.reading;
  const why = unread();
  if (!reading || why) return say.show([state.problem || (why ? t(`read.${why}`) : t("common.waiting"))]);
  const at = Math.min(state.t, reading.T - 1);
  const { id, share } = sharesAt(reading, at + 1);
  const values = {
    t: strong(String(at + 1)), n: String(reading.T), now: token(glyph(reading.pieces[at]), true), next: token(glyph(piece(id, reading))), share: percent(share),
    given: percent(Math.exp(-reading.surprise[at])), surprise: strong(fixed(reading.surprise[at])),
  };
  if (at + 1 < reading.T) Object.assign(values, { comes: token(glyph(reading.pieces[at + 1])), come: percent(Math.exp(-reading.surprise[at + 1])) });
  const key = at === 0 ? "saysFirst" : at + 1 === reading.T ? "saysLast" : "says";
  const unknown = reading.known[at] ? [] : [" ", ...rich("read.saysUnknown", { now: token(glyph(reading.pieces[at])) })];
  say.show([...rich(`read.${key}`, values), ...unknown]);
}

export const view = {
  name: "read",
  reads: true,
  pace: 9,
  mount(root) {
    const say = sayLine();
    const parts = [textPanel(), nextPanel(), ...(frozen && !state.edits.length ? [] : [whatPanel()]), unitsPanel(), pathPanel()];
    root.append(say, ...parts);
    return {
      update(changed) {
        if (changed.has("playing")) say.update();
        if (["reading", "t", "problem", "runs", "current", "text", "vocabulary"].some((key) => changed.has(key))) sentence(say);
        for (const part of parts) part.update(changed);
      },
      tick(count) {
        if (!state.reading) return;
        const last = state.reading.T - 1;
        const to = clamp(state.t + count, 0, last);
        set({ t: to, playing: to < last });
      },
      help: [[["↑", "↓"], t("read.keyUnit")]],
    };
  },
};
