// A heat map on a canvas: rows are units (or losses), columns are steps of time.
import { clamp, el } from "../dom.js";
import { colours, redraw } from "../theme.js";
import { pointer, sharp } from "./axes.js";

/* heatMap({
     label      what it shows, for screen readers
     map        "div" (values −1 … 1) or "seq" (0 … 1)
     say        (row, column) => words of one cell: the tip and the screen reader's line
     onpick     ({row, column}) => …, by pointer or arrow keys
     ramp       {from: words, to: words} of the legend
   }) → element with
     .show({rows, columns, at: (row, column) => value | NaN, from})   paints; NaN stays empty; columns before `from` are as before
     .cursor({row, column})                                     moves the lines, paints nothing
     .legend                                                    an element for the panel's head */
export function heatMap({ label, map, say, onpick, ramp }) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const line = el("div", { class: "time-line" });
  const band = el("div", { class: "row-band" });
  const tip = el("div", { class: "tip", hidden: true });
  const made = el("div", { class: "heat", role: "application", tabindex: "0", "aria-roledescription": label, "aria-label": label }, canvas, band, line, tip);
  let data = { rows: 0, columns: 0, at: () => NaN };
  let at = { row: 0, column: 0 };
  let size = [0, 0]; // as it was painted: asking the element would make the browser lay out the page

  // One pixel a cell, kept from one painting to the next: columns before data.from are those of the data before.
  const picture = document.createElement("canvas");
  let image = null;
  let filled = { columns: 0, table: null };
  function fill() {
    const { rows, columns, at } = data;
    const table = colours(map);
    if (!image || image.height !== rows || image.width < columns) {
      picture.width = Math.ceil(columns / 256) * 256;
      picture.height = rows;
      image = new ImageData(picture.width, rows);
      filled.columns = 0;
    }
    const from = filled.table === table ? Math.min(data.from ?? 0, filled.columns) : 0;
    filled = { columns, table };
    data.from = columns;
    if (from >= columns) return;
    const pixels = new Uint32Array(image.data.buffer);
    const [slope, offset] = map === "div" ? [127.5, 128] : [255, 0.5];
    for (let row = 0; row < rows; row++)
      for (let column = from, i = row * image.width + from; column < columns; column++, i++) {
        const value = at(row, column) * slope + offset;
        pixels[i] = value === value ? table[value <= 0 ? 0 : value >= 255 ? 255 : value | 0] : 0;
      }
    picture.getContext("2d").putImageData(image, 0, 0, from, 0, columns - from, rows);
  }

  function paint(width, height) {
    const pen = sharp(canvas, width, height);
    size = [width, height];
    if (!data.rows || !data.columns) return;
    fill();
    pen.imageSmoothingEnabled = data.columns > width || data.rows > height;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(picture, 0, 0, data.columns, data.rows, 0, 0, width, height);
    place();
  }
  const draw = redraw(made, paint);

  function place() {
    const width = size[0] / data.columns;
    const height = size[1] / data.rows;
    line.hidden = !(at.column >= 0 && at.column < data.columns);
    band.hidden = !(at.row >= 0 && at.row < data.rows);
    line.style.left = `${(at.column + 0.5) * width}px`;
    band.style.top = `${at.row * height - 1}px`;
    band.style.height = `${Math.max(3, height + 2)}px`;
  }

  const cell = ({ x, y }) => ({
    row: clamp(Math.floor((y / made.clientHeight) * data.rows), 0, data.rows - 1),
    column: clamp(Math.floor((x / made.clientWidth) * data.columns), 0, data.columns - 1),
  });
  pointer(made, (point) => data.rows && onpick(cell(point)), (point) => {
    tip.hidden = !point || !data.rows;
    if (tip.hidden) return;
    const { row, column } = cell(point);
    tip.textContent = say(row, column);
    tip.style.left = `${clamp(point.x + 12, 0, Math.max(0, made.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${point.y > 40 ? point.y - 32 : point.y + 20}px`;
  });
  made.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 10 : 1;
    const [down, right] = { ArrowUp: [-far, 0], ArrowDown: [far, 0], ArrowLeft: [0, -far], ArrowRight: [0, far], Home: [0, -1e9], End: [0, 1e9], PageUp: [-16, 0], PageDown: [16, 0] }[event.key] ?? [];
    if (down === undefined || !data.rows) return;
    event.preventDefault();
    event.stopPropagation();
    onpick({ row: clamp(at.row + down, 0, data.rows - 1), column: clamp(at.column + right, 0, data.columns - 1) });
  });

  made.show = (next) => {
    data = next;
    draw();
  };
  made.cursor = (next) => {
    at = next;
    if (!data.rows || !data.columns) return;
    place();
    made.setAttribute("aria-label", `${label}. ${say(clamp(at.row, 0, data.rows - 1), clamp(at.column, 0, data.columns - 1))}`);
  };
  made.legend = legend(map, ramp.from, ramp.to);
  return made;
}

// The ramp of a colour map with words at both ends; part: the share of the map that is used.
export function legend(map, from, to, part = 1) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const [low, high] = [el("span", { text: from }), el("span", { text: to })];
  const made = el("span", { class: "legend" }, low, canvas, high);
  redraw(canvas, (width, height) => {
    const pen = sharp(canvas, width, height);
    const table = colours(map);
    for (let x = 0; x < width; x++) {
      const abgr = table[Math.round(255 * part * (x / (width - 1)))];
      pen.fillStyle = `rgb(${abgr & 255} ${(abgr >> 8) & 255} ${(abgr >> 16) & 255})`;
      pen.fillRect(x, 0, 1.5, height);
    }
  });
  made.ends = (a, b) => {
    low.textContent = a;
    high.textContent = b;
  };
  return made;
}
