// Scales, ticks and the parts of an SVG plot that charts share.
import { svg } from "../dom.js";
import { ten } from "../format.js";

export const linear = (low, high, from, to) => {
  const slope = high === low ? 0 : (to - from) / (high - low);
  return Object.assign((x) => from + (x - low) * slope, { low, high, back: (px) => (slope ? low + (px - from) / slope : low) });
};

export const logarithmic = (low, high, from, to) => {
  const inner = linear(Math.log10(low), Math.log10(high), from, to);
  return Object.assign((x) => inner(Math.log10(Math.max(x, low))), { low, high, log: true, back: (px) => 10 ** inner.back(px) });
};

// Some `count` round values between two numbers.
export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((each) => each * power >= raw * 0.999) * power;
  const made = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) made.push(i * step);
  return made;
}

export function powers(low, high, most = 6) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const made = [];
  for (let power = last; power >= first; power -= step) made.unshift(10 ** power);
  return made;
}

export function tickText(value, step) {
  if (Math.abs(value) >= 1e6 || (step !== undefined && step < 1e-4)) return value === 0 ? "0" : value.toExponential(0);
  const digits = Math.max(0, -Math.floor(Math.log10(step || Math.abs(value) || 1) + 1e-9));
  return (value < 0 ? "−" : "") + Math.abs(value).toFixed(Math.min(4, digits)).replace(/\B(?=(\d{3})+$)/g, value >= 10000 && digits === 0 ? "\u202f" : "");
}

// Gridlines, ticks and titles of a plot: x and y are scales; box is {left, top, right, bottom} in pixels.
export function axes({ x, y, box, xTitle, yTitle, xTicks, yTicks, xText, yText }) {
  const made = svg("g", { "aria-hidden": "true" });
  const across = xTicks ?? (x.log ? powers(x.low, x.high) : ticks(x.low, x.high, Math.max(2, Math.floor((box.right - box.left) / 80))));
  const up = yTicks ?? (y.log ? powers(y.low, y.high, Math.max(2, Math.floor((box.bottom - box.top) / 26))) : ticks(y.low, y.high, Math.max(2, Math.floor((box.bottom - box.top) / 40))));
  const named = (scale, list, text) => text ?? ((value) => (scale.log ? ten(Math.round(Math.log10(value))) : tickText(value, list.length > 1 ? Math.abs(list[1] - list[0]) : undefined)));
  const xName = named(x, across, xText);
  const yName = named(y, up, yText);
  for (const value of up) {
    const at = Math.round(y(value)) + 0.5;
    made.append(svg("path", { class: "grid", d: `M${box.left} ${at}H${box.right}` }), svg("text", { class: "plot-text", x: box.left - 6, y: at + 3.5, "text-anchor": "end", text: yName(value) }));
  }
  made.append(svg("path", { class: "axis", d: `M${box.left} ${Math.round(box.bottom) + 0.5}H${box.right}` }));
  for (const value of across) made.append(svg("text", { class: "plot-text", x: x(value), y: box.bottom + 15, "text-anchor": "middle", text: xName(value) }));
  if (xTitle) made.append(svg("text", { class: "plot-text", x: (box.left + box.right) / 2, y: box.bottom + 30, "text-anchor": "middle", text: xTitle }));
  if (yTitle) made.append(svg("text", { class: "plot-text", x: 0, y: box.top - 8, text: yTitle }));
  return made;
}

// A canvas with as many pixels as the screen has; drawing is in CSS pixels.
export function sharp(node, width, height) {
  const scale = Math.min(3, devicePixelRatio || 1);
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (node.width !== w) node.width = w;
  if (node.height !== h) node.height = h;
  const pen = node.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Press or drag on a node: pick({x, y}) in its CSS pixels. Hovering: over({x, y}) or over(null).
export function pointer(node, pick, over) {
  const at = (event) => {
    const area = node.getBoundingClientRect();
    return { x: event.clientX - area.left, y: event.clientY - area.top };
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    node.setPointerCapture(event.pointerId);
    pick(at(event));
  });
  node.addEventListener("pointermove", (event) => {
    if (event.buttons & 1 && node.hasPointerCapture(event.pointerId)) pick(at(event));
    else if (over && event.pointerType !== "touch") over(at(event));
  });
  if (over) node.addEventListener("pointerleave", () => over(null));
}
