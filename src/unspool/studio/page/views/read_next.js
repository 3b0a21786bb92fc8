// What comes next: the likeliest tokens at the cursor, and the whole vocabulary in its fixed order.
import { barList } from "../charts/bars.js";
import { panel } from "../charts/panel.js";
import { sharp } from "../charts/axes.js";
import { el, put } from "../dom.js";
import { fixed, glyph, percent } from "../format.js";
import { whole } from "../frozen.js";
import { state } from "../state.js";
import { redraw, seqColour } from "../theme.js";
import { t } from "../words.js";
import { askHere, piece, vocabulary } from "./read_vocabulary.js";

const TOP = 6;

const here = () => (state.here && state.reading && state.here.reading === state.reading.id && state.here.t === state.t ? state.here : null);

// The bars: from the reading at once, from the whole distribution when it is there.
function items() {
  const reading = state.reading;
  const full = here();
  const row = state.t + 1;
  const came = row < reading.T ? reading.ids[row] : -1;
  let tops;
  if (row < reading.T) tops = Array.from({ length: TOP }, (_, i) => [reading.expected[6 * row + i], reading.shares[6 * row + i]]);
  else if (full) tops = [...full.next.keys()].sort((a, b) => full.next[b] - full.next[a]).slice(0, TOP).map((id) => [id, full.next[id]]);
  else return [];
  const made = tops.map(([id, share]) => ({ name: glyph(piece(id, reading)), share, text: percent(share), kind: id === came ? "came" : "" }));
  const rest = Math.max(0, 1 - tops.reduce((sum, [, share]) => sum + share, 0));
  const count = (vocabulary(reading)?.length ?? TOP) - TOP;
  made.push({ name: t("read.rest", { n: Math.max(0, count) }), share: rest, text: percent(rest), kind: "rest" });
  if (came >= 0) {
    const p = Math.exp(-reading.surprise[row]);
    const rank = full ? 1 + full.next.reduce((sum, each) => sum + (each > full.next[came]), 0) : null;
    made.push({ name: glyph(reading.pieces[row]), share: p, text: percent(p), tag: rank ? t("read.rankOf", { n: rank }) : "", kind: "came" });
  }
  return made;
}

export function nextPanel() {
  const bars = barList(TOP + 2);
  const canvas = el("canvas", { role: "img", "aria-label": t("read.allLabel"), class: "vocabulary" });
  const made = panel({
    name: "next", title: t("read.next"), figure: [bars, el("p", { class: "note all", text: t("read.all") }), canvas], note: "\u00a0",
    csv: { route: "/api/at", name: "next", body: () => ({ reading: state.reading?.id, t: state.t }) },
    table: () => {
      const full = here();
      const pieces = state.reading && vocabulary(state.reading);
      if (!full || !pieces) return null;
      const order = [...full.next.keys()].sort((a, b) => full.next[b] - full.next[a]);
      return { caption: t("read.tableNext", { t: state.t + 1 }), head: [t("read.token"), t("read.probability")], count: order.length, row: (i) => [glyph(pieces[order[i]]), full.next[order[i]].toFixed(6)] };
    },
  });
  const draw = redraw(canvas, (width, height) => {
    const full = here() ?? state.here; // pale until the numbers of this step are there
    const pen = sharp(canvas, width, height);
    if (!full) return;
    pen.globalAlpha = full === here() ? 1 : 0.35;
    const one = width / full.next.length;
    full.next.forEach((p, i) => {
      const high = Math.max(1, Math.sqrt(p) * height); // the square root, so that rare tokens are seen
      pen.fillStyle = seqColour(0.35 + 0.65 * Math.sqrt(p));
      pen.fillRect(i * one, height - high, Math.max(0.7, one - 0.6), high);
    });
  });
  made.update = (changed) => {
    if (!["reading", "t", "here", "vocabulary"].some((key) => changed.has(key))) return;
    const reading = state.reading;
    if (!reading) return bars.show([]);
    askHere(reading, state.t);
    bars.show(items());
    const full = here();
    if (whole) canvas.hidden = canvas.previousSibling.hidden = !full; // a large vocabulary is not in the file
    if (full) {
      const entropy = full.next.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
      put(made.note, t("read.nextNote", { nats: fixed(entropy), count: fixed(Math.exp(entropy), 1) }));
    }
    draw();
    made.refresh();
  };
  return made;
}
