// Steps: how the prediction of a classifier, tagger or regressor changes with every step that it reads.
import { barList } from "../charts/bars.js";
import { heatMap } from "../charts/heat.js";
import { lineChart } from "../charts/lines.js";
import { panel } from "../charts/panel.js";
import { clamp, el, field, put, select } from "../dom.js";
import { decode, figures, fixed, glyph, grouped, percent, signed } from "../format.js";
import { frozen } from "../frozen.js";
import { sayLine, strong, token } from "../say.js";
import { part, set, state } from "../state.js";
import { rich, t } from "../words.js";

const SHOWN = 8; // classes in the list of the prediction now
const held = frozen?.steps;
const opened = new Map();
const shownWord = (word) => Array.from(String(word), (letter) => (letter === " " ? letter : glyph(letter))).join("");
const named = (k) => shownWord(held.names[k]);
const inside = (x) => (held.classes ? percent(x) : figures(x, 4));

// A sequence with its arrays opened.
function open(i) {
  if (!opened.has(i)) {
    const found = held.sequences[i], p = decode(found.predictions), K = held.names.length, rows = found.steps.length;
    const row = new Int32Array(found.tau); // step → row of the predictions that were made by then
    for (let at = 0, k = 0; at < found.tau; at++) {
      while (k + 1 < rows && found.steps[k + 1] <= at + 1) k++;
      row[at] = k;
    }
    opened.set(i, { ...found, values: decode(found.values), h: decode(found.states), K, rows, row, p: (at, k) => p[at * K + k] });
  }
  return opened.get(i);
}
const now = () => open(state["steps.i"]);

const best = (one, row) => Array.from({ length: one.K }, (_, k) => k).reduce((a, k) => (one.p(row, k) > one.p(row, a) ? k : a), 0);
const at = (one) => clamp(state.t, 0, one.tau - 1);
const truthAt = (one) => (one.truth === null ? null : typeof one.truth === "string" ? one.truth : held.each ? one.truth[at(one)] : one.truth.map((x) => (typeof x === "number" ? figures(x, 4) : x)).join(", "));
const answer = (one) => (held.classes ? named(best(one, one.rows - 1)) : Array.from({ length: one.K }, (_, k) => figures(one.p(one.rows - 1, k), 4)).join(", "));
const pick = (step) => set({ t: step, playing: false });

function sentence(say) {
  const one = now(), row = one.row[at(one)], k = best(one, row), truth = truthAt(one);
  const right = held.classes && truth === held.names[k];
  const values = {
    t: strong(String(at(one) + 1)), n: String(one.tau), name: token(named(k)), share: strong(percent(one.p(row, k))), values: strong(Array.from({ length: one.K }, (_, i) => figures(one.p(row, i), 4)).join(", ")),
    truth: truth === null ? "" : right ? t("steps.right") : t("steps.truth", { truth: shownWord(typeof truth === "number" ? figures(truth, 4) : truth) }),
  };
  say.show([...rich(`steps.${held.classes ? (held.each ? "saysEach" : "says") : "saysNumber"}`, values), ...(held.both ? [" ", t("steps.both")] : [])]);
}

function chooser() {
  const choices = held.sequences.map(({ truth }, i) => {
    const words = { i: i + 1, answer: held.each ? "" : answer(open(i)), truth: shownWord(truth) };
    return [String(i), held.each ? String(i + 1) : t(typeof truth === "string" ? "steps.itemTruth" : "steps.item", words)];
  });
  const which = select(choices, String(state["steps.i"]), { id: "sequence", onchange: () => set({ "steps.i": Number(which.value), t: 0, playing: false }) });
  const facts = t("steps.facts", { kind: held.kind, cell: held.cell, hidden: held.hidden, parameters: grouped(held.parameters), n: held.sequences.length });
  const made = el("div", { class: "choose-sequence" }, ...field(t("steps.sequence"), which), el("span", { class: "note", text: facts }));
  made.update = () => (which.value = String(state["steps.i"]));
  return made;
}

// Tokens as text; numbers as a heat map: one row an input, or the image that is read pixel by pixel.
function inputPanel() {
  const letters = el("p", { class: "tint", tabindex: "0", onclick: (event) => event.target.dataset?.at && pick(Number(event.target.dataset.at)) });
  const stepOf = (row, column) => (now().side ? row * now().side + column : column);
  const cell = (row, column) => now().values[stepOf(row, column) * now().channels + (now().side ? 0 : row)];
  const heat = heatMap({ label: t("steps.inputLabel"), map: "seq", say: (row, column) => t("steps.channel", { i: now().side ? 1 : row + 1, t: stepOf(row, column) + 1, value: figures(cell(row, column), 3) }), ramp: { from: "", to: "" }, onpick: ({ row, column }) => pick(stepOf(row, column)) });
  const made = panel({ name: "input", title: t("steps.input"), controls: [heat.legend], figure: [letters, heat],
    table: () => {
      const one = now(), wide = Math.max(1, one.channels), numbers = Array.from({ length: wide }, (_, i) => i);
      return { caption: t("steps.tableInput"), head: [t("steps.step"), ...(one.pieces.length ? [t("steps.token")] : numbers.map((i) => `x${i + 1}`))], count: one.tau, on: at(one), row: (i) => [String(i + 1), ...(one.pieces.length ? [glyph(one.pieces[i])] : numbers.map((k) => figures(one.values[i * wide + k], 4)))] };
    } });
  let spans = [];
  made.draw = (again) => {
    const one = now(), text = one.pieces.length > 0;
    if (again) {
      letters.hidden = !text;
      heat.hidden = heat.legend.hidden = text;
      spans = one.pieces.map((piece, i) => el("s", { "data-at": i, text: piece === "\n" ? "↵\n" : piece }));
      letters.replaceChildren(...spans);
      heat.classList.toggle("square", one.side > 0);
      const low = Math.min(...one.values), high = Math.max(...one.values), scale = high - low || 1;
      heat.legend.ends(figures(low, 2), figures(high, 2));
      if (!text) heat.show({ rows: one.side || one.channels, columns: one.side || one.tau, at: (row, column) => (cell(row, column) - low) / scale });
    }
    letters.querySelector(".on")?.classList.remove("on");
    spans[at(one)]?.classList.add("on");
    if (!text) heat.cursor(one.side ? { row: Math.floor(at(one) / one.side), column: at(one) % one.side } : { row: 0, column: at(one) });
  };
  return made;
}

function nowPanel() {
  const bars = barList(Math.min(SHOWN, held.names.length));
  const table = () => {
    const one = now(), row = one.row[at(one)], order = Array.from({ length: one.K }, (_, k) => k).sort((a, b) => one.p(row, b) - one.p(row, a));
    return { caption: t("steps.now"), head: ["", t(held.classes ? "steps.share" : "steps.value")], count: one.K, row: (i) => [named(order[i]), held.classes ? one.p(row, order[i]).toFixed(6) : figures(one.p(row, order[i]), 6)] };
  };
  const made = panel({ name: "answers", title: t("steps.now"), figure: [bars], table });
  made.draw = () => {
    const one = now(), row = one.row[at(one)], truth = truthAt(one), most = Math.max(...Array.from({ length: one.K }, (_, k) => Math.abs(one.p(row, k)))) || 1;
    const order = Array.from({ length: one.K }, (_, k) => k).sort((a, b) => (held.classes ? one.p(row, b) - one.p(row, a) : a - b)).slice(0, SHOWN);
    bars.show(order.map((k) => ({ name: named(k), share: held.classes ? one.p(row, k) : Math.abs(one.p(row, k)) / most, text: inside(one.p(row, k)), kind: held.classes && held.names[k] === truth ? "came" : "", tag: held.classes && held.names[k] === truth ? t("steps.keyTruth") : "" })));
  };
  return made;
}

const predictions = () => {
  const one = now();
  return { caption: t("steps.table"), head: [t("steps.steps"), ...held.names.map((_, k) => named(k))], count: one.rows, on: one.row[at(one)], row: (i) => [String(one.steps[i]), ...held.names.map((_, k) => (held.classes ? one.p(i, k).toFixed(4) : figures(one.p(i, k), 4)))] };
};

function byPanel() {
  const chart = lineChart({ label: t("steps.byLabel"), xTitle: t("steps.steps"), yTitle: t(held.classes ? "steps.share" : "steps.value"), cursor: "time", onpick: (x) => pick(clamp(Math.round(x) - 1, 0, now().tau - 1)) });
  const keys = ["main", "other"].map((kind) => el("span", { class: `key key-${kind}` }));
  const made = panel({ name: "by", title: t("steps.by"), controls: keys, figure: [chart], note: held.each ? undefined : t("steps.note"), table: predictions });
  made.draw = (again) => {
    const one = now(), truth = typeof one.truth === "string" ? held.names.indexOf(one.truth) : -1, last = best(one, one.rows - 1);
    if (again) {
      const shown = held.classes && !held.each ? [last, truth].filter((k, i, all) => k >= 0 && all.indexOf(k) === i) : Array.from({ length: Math.min(one.K, 12) }, (_, k) => k);
      const numbers = shown.flatMap((k) => Array.from({ length: one.rows }, (_, i) => one.p(i, k))), room = 0.05 * (Math.max(...numbers) - Math.min(...numbers) || 1);
      put(keys[0], held.classes && !held.each ? t("steps.keyAnswer", { name: named(last) }) : "");
      put(keys[1], shown.length === 2 && held.classes ? t("steps.keyTruth") : "");
      keys.forEach((key) => (key.hidden = !key.textContent));
      chart.show({ x: [1, Math.max(2, one.tau)], y: held.classes ? [0, 1] : [Math.min(...numbers) - room, Math.max(...numbers) + room], lines: [],
        curves: shown.map((k, i) => ({ kind: i === 0 ? "main" : i === 1 && !held.each ? "other" : "soft", exact: true, count: one.rows, xs: (row) => one.steps[row], ys: (row) => one.p(row, k), dots: one.rows < 3 })) });
    }
    chart.cursor(at(one) + 1);
  };
  return made;
}

function slider() {
  const made = el("input", { type: "range", id: "time", min: 0, step: 1, class: "time-slider", "aria-label": t("steps.slider"), oninput: () => pick(made.valueAsNumber) });
  return made;
}

function matrixPanel() {
  const time = slider();
  const say = (row, column) => t("steps.cell", { name: named(row), t: column + 1, share: inside(now().p(now().row[column], row)) });
  const heat = heatMap({ label: t("steps.matrixLabel"), map: "seq", say, ramp: { from: "0", to: "1" }, onpick: ({ column }) => pick(column) });
  const labels = el("div", { class: "rows note", "aria-hidden": "true" }), few = held.names.length <= 24;
  const made = panel({ name: "classes", title: t("steps.matrix"), controls: [heat.legend], figure: [el("div", { class: "labelled" }, labels, el("div", {}, time, heat))], table: predictions });
  if (few) labels.append(...held.names.map((_, k) => el("span", { text: named(k) })));
  made.draw = (again) => {
    const one = now();
    if (again) heat.show({ rows: one.K, columns: one.tau, at: (row, column) => one.p(one.row[column], row) });
    time.max = one.tau - 1;
    time.value = at(one);
    time.setAttribute("aria-valuetext", t("steps.sliderText", { t: at(one) + 1, n: one.tau }));
    heat.cursor({ row: best(one, one.row[at(one)]), column: at(one) });
  };
  return made;
}

function statesPanel() {
  const value = (row, column) => now().h[column * now().units.length + row];
  const heat = heatMap({ label: t("steps.unitsLabel"), map: "div", say: (row, column) => t("steps.unit", { unit: now().units[row], t: column + 1, value: signed(value(row, column)) }), ramp: { from: "−1", to: "+1" }, onpick: ({ row, column }) => {
    set({ "steps.unit": row });
    pick(column);
  } });
  const made = panel({ name: "states", title: t("steps.units"), controls: [heat.legend], figure: [heat], note: held.halves ? t("steps.halves", { hidden: held.hidden }) : undefined,
    table: () => ({ caption: t("steps.tableUnits"), head: [t("steps.step"), ...now().units.map((unit) => `h${unit}`)], count: now().tau, on: at(now()), row: (i) => [String(i + 1), ...now().units.map((_, row) => signed(value(row, i)))] }) });
  made.draw = (again) => {
    const one = now();
    if (again) {
      const most = Math.max(1, ...one.h.map(Math.abs));
      heat.legend.ends(`−${fixed(most, 1)}`, `+${fixed(most, 1)}`);
      heat.show({ rows: one.units.length, columns: one.tau, at: (row, column) => value(row, column) / most });
    }
    heat.cursor({ row: clamp(state["steps.unit"], 0, one.units.length - 1), column: at(one) });
  };
  return made;
}

export const view = {
  name: "steps",
  pace: 12,
  mount(root) {
    part("steps.i", 0, false);
    part("steps.unit", 0, false);
    const say = sayLine(), which = chooser(), panels = [inputPanel(), nowPanel(), byPanel(), ...(held.classes ? [matrixPanel()] : []), statesPanel()];
    root.append(say, which, ...panels);
    const other = (by) => set({ "steps.i": clamp(state["steps.i"] + by, 0, held.sequences.length - 1), t: 0, playing: false });
    return {
      last: () => now().tau - 1,
      update(changed) {
        const again = changed.has("steps.i") || changed.has("lang");
        if (changed.has("playing")) say.update();
        if (!again && !changed.has("t") && !changed.has("steps.unit")) return;
        sentence(say);
        which.update();
        for (const each of panels) {
          each.draw(again);
          each.refresh();
        }
      },
      tick(count) {
        const last = now().tau - 1, to = clamp(state.t + count, 0, last);
        set({ t: to, playing: to < last });
      },
      keys: { ArrowUp: () => other(-1), ArrowDown: () => other(1) },
      help: [[["↑", "↓"], t("steps.keySequence")]],
    };
  },
};
