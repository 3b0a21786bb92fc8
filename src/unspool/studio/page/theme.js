// Light or dark, and the colours of the two maps as numbers that a canvas can paint with.
import { el } from "./dom.js";
import { inFrame, set, state, watch } from "./state.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
let table = null;

export const isDark = () => (state.theme ? state.theme === "dark" : dark.matches);
export const otherTheme = () => set({ theme: isDark() ? "light" : "dark" });

export function applyTheme() {
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  table = null;
  for (const draw of drawn.keys()) draw();
}

export function startTheme() {
  dark.addEventListener("change", applyTheme);
  watch((changed) => changed.has("theme") && applyTheme());
  applyTheme();
}

function read() {
  const probe = el("span", { style: { "forced-color-adjust": "none" } }); // the maps are numbers: they stay where the system forces colours
  document.body.append(probe);
  const one = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  };
  const ramp = (name) => {
    const stops = Array.from({ length: 17 }, (_, i) => one(`${name}-${i}`));
    return Uint32Array.from({ length: 256 }, (_, i) => {
      const at = (i / 255) * 16;
      const low = Math.min(15, Math.floor(at));
      const [r, g, b] = stops[low].map((v, c) => Math.round(v + (stops[low + 1][c] - v) * (at - low)));
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    });
  };
  table = { seq: ramp("seq"), div: ramp("div") };
  probe.remove();
}

// 256 colours of the map "seq" (0 … 1) or "div" (−1 … 1), each as ABGR in one number, as ImageData wants it.
export function colours(map) {
  if (!table) read();
  return table[map];
}

export const css = (abgr) => `rgb(${abgr & 255} ${(abgr >> 8) & 255} ${(abgr >> 16) & 255})`;
const clamp = (x) => Math.max(0, Math.min(255, Math.round(x)));
export const seqColour = (share) => css(colours("seq")[clamp(255 * share)]);
export const divColour = (value) => css(colours("div")[clamp(127.5 * (1 + value))]);

// Draw in this frame, and again when the size of a node or the theme changes, until the node has left the page. Sizes come from
// the observer: asking an element for its own would make the browser lay out the page first.
const drawn = new Map(); // draw → its node
const sizes = new WeakMap();
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    sizes.set(target, [target.clientWidth, target.clientHeight]);
    for (const [draw, node] of drawn) if (node === target) draw();
  }
});

export function redraw(node, paint) {
  let pending = false;
  let seen = false;
  const draw = () => {
    if (pending) return;
    pending = true;
    inFrame(() => {
      pending = false;
      if (node.isConnected) {
        seen = true;
        const [width, height] = sizes.get(node) ?? [0, 0];
        if (width) paint(width, height);
      } else if (seen) {
        drawn.delete(draw);
        observer.unobserve(node);
      }
    });
  };
  drawn.set(draw, node);
  observer.observe(node);
  return draw;
}
