// The norm of the gradient of one loss at every earlier step, growing as it flows back.
import { axes, linear, logarithmic, powers } from "../charts/axes.js";
import { panel } from "../charts/panel.js";
import { clamp, el, put, svg } from "../dom.js";
import { figures, fixed, glyph } from "../format.js";
import { frozen } from "../frozen.js";
import { set, state } from "../state.js";
import { redraw, seqColour } from "../theme.js";
import { t } from "../words.js";
import { frontAt, left, lossAt, setScale, share } from "./back_model.js";

const [LEFT, TOP, UNDER] = [40, 40, 64]; // pixels round the bars
const radiiOf = (found) => Object.entries(found.radii).map(([gate, radius]) => `${gate.length > 2 ? "" : `${gate} `}${fixed(radius)}`).join(" · ");

function slider(kind, label, pick) {
  const input = el("input", { type: "range", step: 1, min: 0, max: 1, class: `time-slider ${kind}`, "aria-label": label, oninput: () => pick(input.valueAsNumber) });
  return { input, box: el("div", { class: `rail ${kind}` }, input) };
}

// The first step from which on, going back, less than 1 % of the gradient is left; null where that never happens.
function hundredth(found, at) {
  for (let to = 0; to <= at; to++) if (found.h(at, to) >= 0.01 * found.h(at, at)) return to ? at - to + 1 : null;
  return null;
}

function scaleControl() {
  const input = el("input", { type: "range", id: "back-scale", min: 0.5, max: 2, step: 0.05, "aria-label": t("back.scaleLabel"), oninput: () => setScale(input.valueAsNumber) });
  const value = el("output", { class: "scale-value", for: "back-scale" }), radii = el("span", { class: "note radii" });
  const made = el("span", { class: "scale" }, el("label", { for: "back-scale", class: "math", text: t("back.scale") }), input, value, radii);
  made.update = (found) => {
    input.value = state["back.scale"];
    put(value, fixed(state["back.scale"]));
    const words = found ? radiiOf(found) : "–";
    put(radii, t("back.radii", { radii: words }));
    input.setAttribute("aria-valuetext", t("back.scaleText", { x: fixed(state["back.scale"]), radii: words }));
  };
  return made;
}

export function flowPanel() {
  const plot = svg("svg", { "aria-hidden": "true" });
  const rail = slider("loss", t("back.rail"), (k) => set({ t: k + state["back.flow"].begin, playing: false }));
  const front = slider("front", t("back.front"), (k) => set({ "back.lag": Math.max(0, lossAt(state["back.flow"]) - k), playing: false }));
  const figure = el("div", { class: "flow-figure" }, plot, rail.box, front.box);
  const scale = scaleControl(), keyS = el("span", { class: "key key-s", text: t("back.keyS") });
  const made = panel({ name: "flow", title: t("back.flow"), controls: [!frozen && scale, el("span", { class: "key key-h", text: t("back.keyH") }), keyS], figure: [figure], note: "", table });
  let place = null, columns = [], mark = {}, shown = "";

  function table() {
    const found = state["back.flow"];
    if (!found) return null;
    const at = lossAt(found), cells = (k) => [String(k + found.begin + 1), glyph(found.pieces[k]), String(at - k), figures(found.h(at, k), 3), left(share(found, at, k)), ...(found.s ? [figures(found.s(at, k), 3)] : [])];
    return { caption: t("back.tableFlow", { t: at + found.begin + 1 }), head: [t("back.step"), t("back.token"), t("back.lag"), t("back.keyH"), t("back.share"), ...(found.s ? [t("back.keyS")] : [])], count: at + 1, on: at - frontAt(found), row: (i) => cells(at - i) };
  }

  function column(found, at, k) {
    const { x, y, one, base } = place, px = x(k), value = found.h(at, k), top = y(Math.max(value, 10 ** found.low)), word = glyph(found.pieces[k]);
    plot.append(svg("text", { class: `letter${k > at ? " later" : ""}`, x: px, y: base + 17, text: word.length > 2 ? word.slice(0, 2) : word }));
    if (k > at) return;
    const bar = svg("rect", { class: "grad", x: px - one / 2 + 0.75, width: Math.max(1, one - 1.5), y: top, height: base - top });
    bar.style.fill = seqColour(0.1 + 0.9 * found.height(value));
    bar.style.transformOrigin = `0 ${base}px`;
    const yet = svg("path", { class: "yet", d: `M${px - one * 0.3} ${top}h${one * 0.6}` });
    const s = found.s && k < at && found.s(at, k) > 10 ** found.low ? svg("rect", { class: "s-mark", x: px - one * 0.42, y: y(found.s(at, k)) - 1.5, width: one * 0.84, height: 3 }) : null;
    plot.append(bar, yet, ...(s ? [s] : []));
    columns.push({ k, bar, yet, s, grown: -1 });
  }

  function line(found, at) {
    const { y, base, x, one } = place, level = y(0.01 * found.h(at, at));
    if (!(level < base - 2) || !at) return;
    const from = hundredth(found, at), words = found.h(at, 0) > 2 * found.h(at, at) ? t("back.grows") : from ? t("back.below", { n: from }) : t("back.never");
    const word = svg("text", { class: "plot-text", x: LEFT + one + 8, y: level - 6, text: words }), ground = svg("rect", { class: "ground", rx: 3 });
    plot.append(svg("path", { class: "hundredth", d: `M${LEFT} ${level}H${x(at) + one / 2}` }), ground, word);
    const area = word.getBBox();
    for (const [name, value] of [["x", area.x - 3], ["y", area.y - 1], ["width", area.width + 6], ["height", area.height + 2]]) ground.setAttribute(name, value);
  }

  function paint(width, height) {
    const found = state["back.flow"];
    if (!found) return;
    const at = lossAt(found), base = height - UNDER, count = Math.min(found.tau, Math.floor((width - LEFT - 8) / 10.5));
    const from = clamp(at - count + Math.min(6, Math.floor(count / 5)), 0, found.tau - count), one = (width - LEFT - 8) / count;
    const x = linear(from - 0.5, from + count - 0.5, LEFT, width - 8), y = logarithmic(10 ** found.low, 10 ** found.high, base, TOP);
    place = { x, y, one, base, from, count, width };
    columns = [];
    shown = "";
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const steps = Array.from({ length: count }, (_, i) => i + from).filter((k) => (k + found.begin + 1) % 10 === 0);
    plot.replaceChildren(axes({ x, y, box: { left: LEFT, top: TOP, right: width - 8, bottom: base }, xTicks: [], yTicks: powers(10 ** found.low, 10 ** found.high, 8), yTitle: t("back.norm") }));
    for (const k of steps) plot.append(svg("text", { class: "plot-text", x: x(k), y: height - 4, "text-anchor": "middle", text: k + found.begin + 1 }));
    const edge = x(at) + one / 2, room = width - 8 - edge;
    if (room > 170) plot.append(svg("text", { class: "plot-text", x: edge + room / 2, y: (TOP + base) / 2, "text-anchor": "middle", text: t("back.later") }));
    for (let k = from; k < from + count; k++) column(found, at, k);
    line(found, at);
    mark = { loss: svg("path", { class: "loss-line", d: `M${x(at)} 12V${base}` }), front: svg("path", { class: "front-line" }), label: svg("text", { class: "front-label haloed" }) };
    plot.append(...Object.values(mark));
    for (const { box, input } of [rail, front]) {
      Object.assign(box.style, { left: `${x(from)}px`, width: `${x(from + count - 1) - x(from)}px` });
      [input.min, input.max] = [from, from + count - 1];
    }
    move();
  }
  const draw = redraw(figure, paint);

  // What changes from frame to frame: the bars at the front, the line and its words.
  function move() {
    const found = state["back.flow"];
    if (!found || !place) return;
    const at = lossAt(found), lag = Math.min(at, state["back.lag"]), to = frontAt(found), { x, one, base } = place;
    for (const each of columns) {
      const grown = clamp(lag - (at - each.k) + 1, 0, 1);
      if (grown === each.grown) continue;
      each.grown = grown;
      each.bar.style.transform = `scaleY(${grown})`;
      each.yet.style.opacity = grown < 1 ? 1 : 0;
      if (each.s) each.s.style.opacity = grown < 1 ? 0 : 1;
    }
    const px = Math.max(x(at - lag), LEFT), g = figures(found.h(at, to)), k = to + found.begin + 1, rest = left(share(found, at, to));
    mark.front.setAttribute("d", `M${px} ${TOP}V${base + 30}`);
    if (shown !== (shown = `${at} ${to} ${g}`)) {
      put(mark.label, t("back.plate", { k, g, share: rest }));
      rail.input.value = at;
      rail.input.setAttribute("aria-valuetext", t("back.railText", { t: at + found.begin + 1, now: glyph(found.pieces[at]), next: glyph(found.pieces[at + 1]) }));
      front.input.value = to;
      front.input.setAttribute("aria-valuetext", t("back.frontText", { k, lag: at - to, g, share: rest }));
    }
    const right = px < LEFT + 190 || px < x(at) - 16 * one;
    for (const [name, value] of [["x", px + (right ? 7 : -7)], ["y", TOP + 14], ["text-anchor", right ? "start" : "end"]]) mark.label.setAttribute(name, value);
  }

  made.update = (changed) => {
    const found = state["back.flow"];
    if (["back.flow", "back.scale"].some((key) => changed.has(key))) {
      scale.update(found);
      keyS.hidden = !found?.s;
      put(made.note, state["back.scale"] === 1 ? (frozen ? "" : t("back.unscaled")) : t("back.scaledNote", { x: fixed(state["back.scale"]) }));
    }
    if (changed.has("back.flow") || changed.has("t")) draw();
    else if (changed.has("back.lag")) move();
    if (["back.flow", "t", "playing"].some((key) => changed.has(key)) || (!state.playing && changed.has("back.lag"))) made.refresh();
  };
  return made;
}
