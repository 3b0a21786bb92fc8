// The path of the state in the plane of its two principal components.
import { pointer, sharp } from "../charts/axes.js";
import { panel } from "../charts/panel.js";
import { el, svg } from "../dom.js";
import { fixed, glyph, percent } from "../format.js";
import { asked } from "../reading.js";
import { set, state } from "../state.js";
import { redraw } from "../theme.js";
import { t } from "../words.js";

const TRAIL = 24;
const LETTERS = 3000; // more tokens than this are drawn as dots

export function pathPanel() {
  const cloud = el("canvas", { class: "cloud", "aria-hidden": "true" }); // thousands of signs: too many for SVG
  const thread = svg("g"), here = svg("g"), ground = svg("g"), was = svg("path", { class: "path-was" });
  const plot = svg("svg", { role: "img", "aria-label": t("read.pathLabel"), class: "path-plot" }, ground, was, thread, here);
  const box = el("div", { class: "plane" }, cloud, plot);
  const made = panel({
    name: "path", title: t("read.path"), figure: [box], note: t("read.pathNote"), csv: { route: "/api/read", name: "path", body: asked },
    table: () => {
      const reading = state.reading;
      if (!reading?.path) return null;
      const { positions, shares } = reading.path;
      return { caption: t("read.tablePath"), head: [t("read.step"), t("read.token"), ...[1, 2].map((n) => t("read.direction", { n, share: percent(shares[n - 1]) }))], count: reading.T, on: state.t, row: (i) => [String(i + 1), glyph(reading.pieces[i]), fixed(positions[2 * i], 3), fixed(positions[2 * i + 1], 3)] };
    },
  });
  let places = null;
  let extent = { key: "", x: 1, y: 1 };

  // The scale stays while the same text is read: it only grows.
  function scale(reading) {
    const { positions } = reading.path;
    const key = `${reading.version.run} ${state.text.length > 400 ? state.text.length : state.text}`;
    if (extent.key !== key) extent = { key, most: 1e-6 };
    for (const value of positions) if (Math.abs(value) > extent.most) extent.most = Math.abs(value);
    return extent.most * 1.06;
  }

  function paint(width, height) {
    const reading = state.reading;
    if (!reading?.path) return;
    const { positions, shares } = reading.path;
    const most = scale(reading), left = 20, below = 20;
    const cx = left + (width - left) / 2, cy = (height - below) / 2;
    const size = Math.min((width - left) / 2 - 10, (height - below) / 2 - 10);
    const wide = Math.min((width - left) / 2 - 10, size * 1.5);
    places = (xy, i) => [cx + (xy[2 * i] / most) * wide, cy - (xy[2 * i + 1] / most) * size];
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    ground.replaceChildren(svg("path", { class: "grid", d: `M${left} ${cy}H${width}M${cx} 0V${height - below}` }), svg("path", { class: "axis", d: `M${left} 0V${height - below}H${width}` }),
      svg("text", { class: "plot-text", x: cx, y: height - 5, "text-anchor": "middle", text: t("read.direction", { n: 1, share: percent(shares[0]) }) }),
      svg("text", { class: "plot-text", "text-anchor": "middle", transform: `translate(11 ${cy}) rotate(-90)`, text: t("read.direction", { n: 2, share: percent(shares[1]) }) }));
    const pen = sharp(cloud, width, height), style = getComputedStyle(cloud);
    Object.assign(pen, { font: `11px ${style.fontFamily}`, fillStyle: style.color, textAlign: "center", textBaseline: "middle" });
    for (let i = 0; i < reading.T; i++) pen.fillText(reading.T > LETTERS ? "·" : glyph(reading.pieces[i]), ...places(positions, i));
    walk();
  }
  const draw = redraw(box, paint);

  function walk() {
    const reading = state.reading;
    if (!reading?.path || !places) return;
    const { positions } = reading.path, at = Math.min(state.t, reading.T - 1), first = Math.max(0, at - TRAIL);
    thread.replaceChildren(...Array.from({ length: at - first }, (_, k) => {
      const [x1, y1] = places(positions, first + k), [x2, y2] = places(positions, first + k + 1);
      return svg("line", { class: "thread", x1, y1, x2, y2, "stroke-opacity": (0.1 + (0.9 * (k + 1)) / (at - first)).toFixed(2) });
    }));
    const base = state.base?.T === reading.T ? state.base.path.positions : null;
    was.setAttribute("d", base ? Array.from({ length: at - first + 1 }, (_, k) => `${k ? "L" : "M"}${places(base, first + k).map((v) => v.toFixed(1)).join(" ")}`).join("") : "");
    const [x, y] = places(positions, at);
    here.replaceChildren(svg("circle", { class: "ring", cx: x, cy: y, r: 11 }), svg("text", { class: "letter here", transform: `translate(${x} ${y})`, text: glyph(reading.pieces[at]) }));
    plot.setAttribute("aria-label", `${t("read.pathLabel")}. ${at + 1}: ${fixed(positions[2 * at])}, ${fixed(positions[2 * at + 1])}`);
  }

  pointer(box, ({ x, y }) => {
    const reading = state.reading;
    if (!places || !reading) return;
    let best = -1, far = 30;
    for (let i = 0; i < reading.T; i++) {
      const [px, py] = places(reading.path.positions, i);
      const d = Math.hypot(px - x, py - y);
      if (d < far) [best, far] = [i, d];
    }
    if (best >= 0) set({ t: best, playing: false });
  });

  made.update = (changed) => {
    if (["reading", "base"].some((key) => changed.has(key))) {
      draw();
      if (!state.reading) {
        for (const group of [thread, here]) group.replaceChildren();
        cloud.width = 0;
      }
    } else if (changed.has("t")) walk();
    if (["reading", "t"].some((key) => changed.has(key))) made.refresh();
  };
  return made;
}
