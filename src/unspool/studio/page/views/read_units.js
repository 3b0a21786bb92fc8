// Units through time: the slider, a ribbon of surprise, the heat map of one state, its values at the cursor.
import { sharp } from "../charts/axes.js";
import { heatMap } from "../charts/heat.js";
import { panel } from "../charts/panel.js";
import { chips, clamp, el, put, select } from "../dom.js";
import { fixed, glyph, signed } from "../format.js";
import { whole } from "../frozen.js";
import { asked } from "../reading.js";
import { part, set, state, touch } from "../state.js";
import { divColour, redraw, seqColour } from "../theme.js";
import { t } from "../words.js";

const MOST = 7;
const SAMPLE = 160; // steps that the order of the units looks at

const layerOf = (reading) => state["read.layer"] && reading.states[state["read.layer"]] ? state["read.layer"] : Object.keys(reading.states)[0];
export const unitName = (layer, i) => `${layer}${i}`;

// Units in an order in which neighbours are alike: from each to the nearest one left, by the size of the correlation.
function alike(reading, layer) {
  const { at, width } = reading.states[layer];
  const step = Math.max(1, Math.floor(reading.T / SAMPLE));
  const rows = Array.from({ length: width }, (_, unit) => {
    const values = [];
    for (let i = 0; i < reading.T; i += step) values.push(at(i, unit));
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const norm = Math.hypot(...values.map((v) => v - mean)) || 1;
    return values.map((v) => (v - mean) / norm);
  });
  const left = new Set(rows.keys());
  const made = [0];
  left.delete(0);
  while (left.size) {
    const last = rows[made.at(-1)];
    let best = -1, most = -2;
    for (const each of left) {
      let sum = 0;
      for (let i = 0; i < last.length; i++) sum += last[i] * rows[each][i];
      if (sum > most) [best, most] = [each, sum];
    }
    made.push(best);
    left.delete(best);
  }
  return made;
}

const orders = new Map();
function order(reading, layer) {
  const { width } = reading.states[layer];
  if (state["read.order"] === "number") return null;
  const key = `${reading.version.run} ${layer}`;
  if (!orders.has(key) || orders.get(key).length !== width) orders.set(key, alike(reading, layer));
  return orders.get(key);
}

export function unitsPanel() {
  part("read.layer", "");
  part("read.order", "alike");
  part("read.shows", "values");
  let rows = null; // row → unit, or null: by number
  let painted = { look: "", id: "" }; // what the heat map shows
  const unitAt = (row) => (rows ? rows[row] : row);
  const rowOf = (unit) => (rows ? rows.indexOf(unit) : unit);
  const chosen = () => Number(/\d+$/.exec(state.unit)?.[0] ?? 0);
  const layer = () => layerOf(state.reading);
  const shown = (reading, name, step, unit) => {
    const base = state["read.shows"] === "change" && state.base?.T === reading.T ? state.base.states[name] : null;
    return base ? reading.states[name].at(step, unit) - base.at(step, unit) : reading.states[name].at(step, unit);
  };
  const letterOf = (name) => name.split(".").at(-1);
  const say = (row, column) => {
    const reading = state.reading;
    if (!reading) return "";
    const unit = unitAt(row);
    return t("read.cell", { unit: letterOf(layer()) + unit, t: column + 1, value: signed(shown(reading, layer(), column, unit)), token: glyph(reading.pieces[column] ?? "") });
  };
  const heat = heatMap({ label: t("read.unitsLabel"), map: "div", say, ramp: { from: "−1", to: "+1" }, onpick: ({ row, column }) => set({ t: column, unit: unitName(layer(), unitAt(row)), playing: false }) });
  const ribbon = el("canvas", { class: "ribbon", "aria-hidden": "true" });
  const slider = el("input", { type: "range", id: "time", min: 0, max: 1, step: 1, class: "time-slider", "aria-label": t("read.slider"), oninput: () => set({ t: slider.valueAsNumber, playing: false }) });
  const values = el("canvas", { class: "values", "aria-hidden": "true" });
  const around = el("div", { class: "around", "aria-hidden": "true" });
  const says = el("p", { class: "note unit-says" });
  const layers = select([["", "h"]], "", { "aria-label": t("read.layer"), onchange: () => {
    state["read.layer"] = layers.value;
    touch("read.layer");
  } });
  const own = (key, choices, label) => chips({ label, choices, value: state[key], onpick: (value) => {
    state[key] = value;
    touch(key);
  } });
  const shows = own("read.shows", [["values", t("read.values")], ["change", t("read.changes")]], t("read.shows"));
  const made = panel({
    name: "units", title: t("read.units"), controls: [layers, own("read.order", [["alike", t("read.alike")], ["number", t("read.byNumber")]], t("read.order")), shows, heat.legend],
    figure: [el("div", { class: "stacks" }, el("div", { class: "stack" }, slider, ribbon, heat, around), el("div", { class: "state-now" }, values)), says],
    csv: { route: "/api/read", name: "states", body: asked },
    table: () => {
      const reading = state.reading;
      if (!reading) return null;
      const name = layer(), { width } = reading.states[name];
      return { caption: t("read.tableUnits"), head: [t("read.step"), t("read.token"), ...Array.from({ length: width }, (_, i) => letterOf(name) + i)], count: reading.T, on: state.t,
        row: (i) => [String(i + 1), glyph(reading.pieces[i]), ...Array.from({ length: width }, (_, unit) => signed(reading.states[name].at(i, unit)))] };
    },
  });

  const drawRibbon = redraw(ribbon, (width, height) => {
    const reading = state.reading, pen = sharp(ribbon, width, height);
    if (!reading) return;
    const one = width / reading.T;
    for (let i = 1; i < reading.T; i++) {
      const share = clamp(reading.surprise[i] / MOST, 0, 1);
      pen.fillStyle = seqColour(0.12 + 0.7 * share);
      pen.fillRect(i * one, height - Math.max(1, share * height), Math.max(0.6, one - (one > 3 ? 0.7 : 0)), height);
    }
  });

  const drawValues = redraw(values, (width, height) => {
    const reading = state.reading, pen = sharp(values, width, height);
    if (!reading) return;
    const name = layer(), { width: H } = reading.states[name], at = Math.min(state.t, reading.T - 1), one = height / H, middle = width / 2, most = Math.max(1, reading.states[name].scale);
    const style = getComputedStyle(values);
    pen.fillStyle = style.getPropertyValue("border-top-color");
    for (const x of [0, middle, width - 1]) pen.fillRect(Math.round(x), 0, 1, height);
    for (let row = 0; row < H; row++) {
      const unit = unitAt(row), value = shown(reading, name, at, unit) / most;
      pen.fillStyle = unit === chosen() ? style.color : divColour(value < 0 ? Math.min(value, -0.35) : Math.max(value, 0.35));
      pen.fillRect(value < 0 ? middle + value * middle : middle, row * one + 0.2, Math.max(1, Math.abs(value) * middle), Math.max(0.8, one - 0.6));
    }
  });

  // The stretch of text round the cursor, each sign under its place.
  const drawAround = redraw(around, (width) => {
    const reading = state.reading;
    if (!reading) return around.replaceChildren();
    const sign = 7.3, x = ((state.t + 0.5) / reading.T) * width;
    const from = Math.max(0, state.t - Math.floor(x / sign)), to = Math.min(reading.T, state.t + Math.floor((width - x) / sign) + 1);
    const words = (a, b) => reading.pieces.slice(a, b).map(glyph).join("");
    const before = el("span", { class: "before", text: words(from, state.t) }), after = el("span", { class: "after", text: words(state.t + 1, to) }), now = el("b", { text: glyph(reading.pieces[state.t] ?? "") });
    now.style.left = `${x}px`;
    before.style.right = `${width - x + sign / 2}px`;
    after.style.left = `${x + sign / 2}px`;
    around.replaceChildren(before, now, after);
  });

  function cursor() {
    const reading = state.reading;
    if (!reading) return;
    const at = Math.min(state.t, reading.T - 1);
    slider.max = reading.T - 1;
    slider.value = at;
    slider.setAttribute("aria-valuetext", t("read.sliderText", { t: at + 1, n: reading.T, token: glyph(reading.pieces[at]), s: fixed(reading.surprise[at]) }));
    const row = rowOf(Math.min(chosen(), reading.states[layer()].width - 1));
    heat.cursor({ row, column: at });
    put(says, say(row, at));
    drawAround();
    drawValues();
  }

  function paint() {
    const reading = state.reading;
    if (!reading) return heat.show({ rows: 0, columns: 0, at: () => NaN });
    const name = layer(), { width, scale } = reading.states[name];
    const names = whole ? Object.keys(reading.states) : reading.state_names;
    if (layers.options.length !== names.length || layers.options[0].value === "") layers.replaceChildren(...names.map((each) => el("option", { value: each, text: each })));
    layers.value = name;
    rows = order(reading, name);
    const change = state["read.shows"] === "change" && state.base;
    const most = change ? 0.5 : Math.max(1, scale);
    heat.legend.ends(`−${fixed(most, 1)}`, `+${fixed(most, 1)}`);
    const { values } = reading.states[name], units = rows ?? Array.from({ length: width }, (_, unit) => unit);
    const base = change && state.base.T === reading.T ? state.base.states[name].values : null;
    const at = base ? (row, column) => (values[column * width + units[row]] - base[column * width + units[row]]) / most : (row, column) => values[column * width + units[row]] / most;
    const look = `${name} ${most} ${state["read.order"]} ${Boolean(change)}`;
    const from = !base && painted.look === look && painted.id === reading.after ? reading.same : 0;
    painted = { look: base ? "" : look, id: reading.id };
    heat.show({ rows: width, columns: reading.T, at, from });
    drawRibbon();
  }

  made.update = (changed) => {
    const again = ["reading", "base", "read.order", "read.shows"].some((key) => changed.has(key));
    if (again) paint();
    if (again || ["t", "unit"].some((key) => changed.has(key))) cursor();
    shows.hidden = !state.edits.length;
    if (again || changed.has("t")) made.refresh();
  };
  return made;
}
