// A line chart in SVG: curves over one x, horizontal lines to compare with, one cursor.
import { clamp, el, svg } from "../dom.js";
import { redraw } from "../theme.js";
import { axes, linear, logarithmic, pointer } from "./axes.js";

// The points of a curve as a path; of many points a pixel, the lowest and the highest.
export function pathOf(curve, x, y) {
  const { count, xs, ys } = curve;
  let made = "";
  let pixel = NaN, low = 0, high = 0, last = 0, some = false, pen = "M";
  const flush = () => {
    if (!some) return;
    made += `${pen}${pixel} ${low.toFixed(1)}`;
    if (high !== low) made += `L${pixel} ${high.toFixed(1)}`;
    if (last !== high) made += `L${pixel} ${last.toFixed(1)}`;
    pen = "L";
  };
  for (let i = 0; i < count; i++) {
    const value = ys(i);
    if (value !== value || value === null) {
      flush();
      some = false;
      pen = "M";
      continue;
    }
    const px = curve.exact ? x(xs(i)).toFixed(1) : Math.round(2 * x(xs(i))) / 2, py = y(value);
    if (some && px === pixel) {
      low = Math.min(low, py);
      high = Math.max(high, py);
    } else {
      flush();
      low = high = py;
      some = true;
    }
    pixel = px;
    last = py;
  }
  flush();
  return made;
}

/* lineChart({
     label          what it shows, for screen readers
     xTitle, yTitle
     log            whether y is logarithmic
     cursor         "update" (rust) or "time" (green)
     onpick         (x) => …, by pointer
     left           pixels for the y ticks
   }) → element with
     .show({x: [low, high], y: [low, high], curves: [{name, kind, count, xs: (i) => x, ys: (i) => y, dots}], lines: [{name, value}]})
        kind: "main", "soft", "other" (CSS classes curve-main …)
     .cursor(x)     moves the cursor; null hides it */
export function lineChart({ label, xTitle = "", yTitle = "", log = false, cursor = "update", onpick, left = 44 }) {
  const plot = svg("svg", { role: "img", "aria-label": label });
  const mark = el("div", { class: `${cursor}-line`, hidden: true });
  const made = el("div", { class: "lines" }, plot, mark);
  let data = null, place = null, at = null;

  function paint(width, height) {
    if (!data) return;
    const beside = width > 480 && data.lines?.some(({ name }) => name); // names of lines beside the plot: they cover no curve
    const box = { left, top: yTitle ? 20 : 8, right: width - (beside ? 82 : 10), bottom: height - (xTitle ? 36 : 20) };
    const x = linear(data.x[0], data.x[1], box.left, box.right);
    const y = (log ? logarithmic : linear)(data.y[0], data.y[1], box.bottom, box.top);
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    plot.replaceChildren(axes({ x, y, box, xTitle, yTitle }));
    const taken = [], names = [];
    for (const { name, value } of data.lines ?? []) {
      if (value < y.low || value > y.high) continue;
      const py = Math.round(y(value)) + 0.5;
      plot.append(svg("path", { class: "gram", d: `M${box.left} ${py}H${box.right}` }));
      if (taken.some((other) => Math.abs(other - py) < 13)) continue;
      taken.push(py);
      names.push(svg("text", { class: "plot-text haloed", x: box.right + (beside ? 8 : -2), y: py + (beside ? 3.5 : -3), "text-anchor": beside ? "start" : "end", text: name }));
    }
    for (const curve of data.curves) {
      plot.append(svg("path", { class: `curve-${curve.kind}`, d: pathOf(curve, x, y) }));
      if (curve.dots) for (let i = 0; i < curve.count; i++) plot.append(svg("circle", { class: `dot-${curve.kind}`, cx: x(curve.xs(i)), cy: y(curve.ys(i)), r: 2.5 }));
    }
    plot.append(...names);
    place = { x, box };
    move();
  }
  const draw = redraw(made, paint);

  function move() {
    mark.hidden = at === null || !place;
    if (mark.hidden) return;
    mark.style.left = `${clamp(place.x(at), place.box.left, place.box.right)}px`;
    mark.style.top = `${place.box.top - 4}px`;
    mark.style.height = `${place.box.bottom - place.box.top + 4}px`;
  }
  if (onpick) pointer(made, (point) => place && onpick(clamp(place.x.back(point.x), place.x.low, place.x.high)));
  made.show = (next) => {
    data = next;
    draw();
  };
  made.cursor = (x) => {
    at = x;
    move();
  };
  return made;
}
