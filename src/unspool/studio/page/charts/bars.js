// Bars: a list with one bar a line (next token), and columns over an axis (by lag, back in time).
import { clamp, el, put, svg } from "../dom.js";
import { redraw, seqColour } from "../theme.js";
import { axes, linear, logarithmic, pointer } from "./axes.js";

/* barList(count) → element with .show([{name, share (0 … 1), text, tag, kind}]): kind "", "came" or "rest"; lines stay in place */
export function barList(count) {
  const made = el("dl", { class: "bars" });
  const lines = Array.from({ length: count }, () => {
    const parts = { name: el("dt"), bar: el("span"), text: el("dd", { class: "share" }), tag: el("dd", { class: "tag" }) };
    parts.line = el("div", {}, parts.name, el("dd", { class: "track", "aria-hidden": "true" }, parts.bar), parts.text, parts.tag);
    made.append(parts.line);
    return parts;
  });
  made.show = (items) => lines.forEach((line, i) => {
    const item = items[i];
    line.line.className = item ? item.kind || "" : "none";
    put(line.name, item?.name ?? "\u2007");
    put(line.text, item?.text ?? "\u2007");
    put(line.tag, item?.tag ?? "");
    line.bar.style.width = `${100 * clamp(item?.share ?? 0, 0, 1)}%`;
  });
  return made;
}

/* columnChart({label, xTitle, yTitle, log, onpick: (column) => …, cursor: "time", left})
   → element with .show({values, y: [low, high], names: (i) => x tick text or null, colour: (i) => share of "seq" or null})
     and .cursor(column) */
export function columnChart({ label, xTitle = "", yTitle = "", log = false, onpick, cursor = "time", left = 44 }) {
  const plot = svg("svg", { role: "img", "aria-label": label });
  const mark = el("div", { class: `${cursor}-line` });
  const made = el("div", { class: "columns" }, plot, mark);
  let data = null, place = null, at = null;

  function paint(width, height) {
    if (!data) return;
    const count = data.values.length;
    const box = { left, top: yTitle ? 20 : 8, right: width - 10, bottom: height - (xTitle ? 36 : 20) };
    const x = linear(-0.5, count - 0.5, box.left, box.right);
    const y = (log ? logarithmic : linear)(data.y[0], data.y[1], box.bottom, box.top);
    const one = (box.right - box.left) / count;
    const names = Array.from({ length: count }, (_, i) => i).filter((i) => data.names ? data.names(i) !== null : i % Math.ceil(30 / one) === 0);
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    plot.replaceChildren(axes({ x, y, box, xTitle, yTitle, xTicks: names, xText: (i) => (data.names ? data.names(i) : String(i)) }));
    data.values.forEach((value, i) => {
      if (!(value > 0) && !(value < 0)) return;
      const top = clamp(y(value), box.top, box.bottom), zero = log ? box.bottom : y(clamp(0, y.low, y.high));
      const bar = svg("rect", { class: "bar", x: x(i - 0.5) + Math.min(1, one / 6), y: Math.min(top, zero), width: Math.max(0.5, one - Math.min(2, one / 3)), height: Math.max(0.5, Math.abs(zero - top)) });
      const share = data.colour?.(i);
      if (share !== undefined && share !== null) bar.style.fill = seqColour(share);
      plot.append(bar);
    });
    place = { x, box };
    move();
  }
  const draw = redraw(made, paint);

  function move() {
    mark.hidden = at === null || !place;
    if (mark.hidden) return;
    mark.style.left = `${place.x(at)}px`;
    mark.style.top = `${place.box.top - 4}px`;
    mark.style.height = `${place.box.bottom - place.box.top + 4}px`;
  }
  if (onpick) pointer(made, (point) => place && onpick(clamp(Math.round(place.x.back(point.x)), 0, data.values.length - 1)));
  made.show = (next) => {
    data = next;
    draw();
  };
  made.cursor = (column) => {
    at = column;
    move();
  };
  return made;
}
