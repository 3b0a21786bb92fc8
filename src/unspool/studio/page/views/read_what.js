// What if: another character, another value of a unit, another weight; undo.
import { call } from "../api.js";
import { panel } from "../charts/panel.js";
import { el, put, select } from "../dom.js";
import { decode, fixed, glyph, signed } from "../format.js";
import { frozen } from "../frozen.js";
import { undo } from "../keys.js";
import { editedText, modelFields } from "../reading.js";
import { set, state, updateShown } from "../state.js";
import { toast } from "../toast.js";
import { t } from "../words.js";

// A what-if is about one update: a training that goes on does not carry it along.
const add = (edit) => set({ edits: [...state.edits, edit].slice(-64), u: updateShown(), playing: false });

export function describe(edit) {
  if (edit.kind === "character") return t("read.editCharacter", { t: edit.t + 1, value: glyph(edit.value) });
  if (edit.kind === "weight") return t("read.editWeight", { name: edit.name, index: edit.index.join(", "), value: signed(edit.value, 3) });
  return edit.t === null ? t("read.editUnitAll", { name: edit.name, value: fixed(edit.value) }) : t("read.editUnit", { name: edit.name, value: fixed(edit.value), t: edit.t + 1 });
}

// A line of the form: words and fields, and a button that sets.
function line(fields, act) {
  const wrong = el("span", { class: "bad", role: "alert" });
  return el("form", { class: "what-line", novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    put(wrong, act() ?? "");
  } }, ...fields, el("button", { class: "small", type: "submit", text: t("read.do") }), wrong);
}

function characterLine() {
  const which = el("span");
  const letter = el("input", { id: "what-letter", class: "short mono", maxlength: "2", "aria-label": t("read.becomes"), autocomplete: "off" });
  const made = line([which, el("span", { text: t("read.becomes") }), letter], () => {
    const [value, more] = Array.from(letter.value);
    if (value === undefined || more !== undefined) return t("read.oneToken");
    const at = place();
    add({ kind: "character", t: at, value });
    return null;
  });
  // the character that ends with the token at the cursor
  const place = () => Array.from(editedText().slice(0, state.reading?.spans[state.t]?.[1] ?? state.t + 1)).length - 1;
  made.update = () => put(which, t("read.whatCharacter", { t: place() + 1 }));
  return made;
}

function unitLine() {
  const name = el("input", { id: "what-unit", class: "name mono", "aria-label": t("read.whatUnit"), spellcheck: "false", autocomplete: "off" });
  const value = el("input", { id: "what-unit-value", class: "short", type: "number", step: "any", value: "0", "aria-label": t("read.value") });
  const when = select([["all", t("read.everyStep")], ["one", t("read.thisStep", { t: 1 })]], "all", { "aria-label": t("read.at") });
  let typed = false;
  name.addEventListener("input", () => (typed = true));
  const made = line([el("label", { for: "what-unit", text: t("read.whatUnit") }), name, el("span", { text: t("read.is") }), value, when], () => {
    if (value.value === "" || !Number.isFinite(value.valueAsNumber)) return t("read.badNumber");
    add({ kind: "unit", name: name.value.trim(), t: when.value === "all" ? null : state.t, value: value.valueAsNumber });
    typed = false;
    return null;
  });
  made.update = () => {
    if (!typed && document.activeElement !== name) name.value = state.unit || `${Object.keys(state.reading?.states ?? {})[0] ?? "layer0.h"}0`;
    put(when.options[1], t("read.thisStep", { t: state.t + 1 }));
  };
  return made;
}

function weightLine() {
  const matrix = select([], "", { id: "what-matrix", "aria-label": t("read.matrix"), class: "name mono" });
  const [row, column] = ["row", "column"].map((key) => el("input", { type: "number", class: "short", min: "0", step: "1", value: "0", "aria-label": t(`read.${key}`), title: t(`read.${key}`) }));
  const value = el("input", { id: "what-weight", type: "number", class: "short", step: "any", value: "0", "aria-label": t("read.value") });
  const was = el("span", { class: "note" });
  let run = "", names = [];
  const shape = () => names.find((each) => each.name === matrix.value)?.shape ?? [];
  const look = async () => {
    column.hidden = shape().length < 2;
    const body = { ...modelFields(), matrix: matrix.value };
    const answer = await call("/api/parameters", body).catch(() => null);
    if (!answer?.matrix) return;
    const values = decode(answer.matrix);
    const [rows, columns = 1] = values.shape;
    row.max = rows - 1;
    column.max = columns - 1;
    put(was, t("read.was", { value: signed(values[row.valueAsNumber * columns + (column.hidden ? 0 : column.valueAsNumber)], 3) }));
  };
  for (const each of [matrix, row, column]) each.addEventListener("change", look);
  const made = line([el("label", { for: "what-matrix", text: t("read.whatWeight") }), matrix, row, column, el("span", { text: t("read.is") }), value, was], () => {
    const index = shape().length < 2 ? [row.valueAsNumber] : [row.valueAsNumber, column.valueAsNumber];
    if (!index.every(Number.isInteger) || !Number.isFinite(value.valueAsNumber)) return t("read.badNumber");
    add({ kind: "weight", name: matrix.value, index, value: value.valueAsNumber });
    return null;
  });
  made.update = () => {
    const id = state.reading?.version.run ?? "";
    if (!id || id === run) return;
    run = id;
    call("/api/parameters", { run: id }).then((answer) => {
      names = answer.names;
      matrix.replaceChildren(...names.map((each) => el("option", { value: each.name, text: `${each.name} ${each.shape.join("×")}` })));
      matrix.value = names.find((each) => each.name.endsWith(".W"))?.name ?? names[0].name;
      return look();
    }).catch(() => (run = ""));
  };
  return made;
}

function writeLine() {
  const temperature = el("input", { type: "number", class: "short", min: "0", step: "0.1", value: "0.8", "aria-label": t("read.temperature"), title: t("read.temperature") });
  const out = el("p", { class: "sample", hidden: true });
  const caption = el("p", { class: "note", hidden: true });
  let seed = 0;
  const go = async () => {
    const reading = state.reading;
    if (!reading) return;
    const prompt = reading.text.slice(0, reading.spans[Math.min(state.t, reading.T - 1)][1]);
    try {
      const { text } = await call("/api/generate", { ...modelFields(), prompt, length: 240, temperature: temperature.valueAsNumber || 0, seed: seed++ });
      caption.hidden = out.hidden = false;
      put(caption, t("read.written", { t: state.t + 1, temperature: temperature.value, seed: seed - 1 }));
      put(out, Array.from(text, (each) => (each === " " || each === "\n" ? each : glyph(each))).join(""));
    } catch (refusal) {
      toast(refusal.message || t("common.goneShort"));
    }
  };
  return el("div", { class: "write" }, el("div", { class: "what-line" }, el("button", { class: "small", text: t("read.writesDo"), onclick: go }), el("label", {}, el("span", { text: `${t("read.temperature")} ` }), temperature)), caption, out);
}

export function whatPanel() {
  const list = el("ol", { class: "edits" });
  const effect = el("p", { class: "note effect" });
  const back = el("button", { class: "small", id: "undo", text: t("read.undo"), onclick: undo });
  const reset = el("button", { class: "small", id: "undo-all", text: t("read.reset"), onclick: () => set({ edits: [] }) });
  const lines = [characterLine(), unitLine(), weightLine()];
  const made = panel({
    name: "what", title: t("read.what"), controls: frozen ? [] : [back, reset], figure: frozen ? [list, effect] : [...lines, list, effect, writeLine()],
    table: () => {
      const { reading, base } = state;
      if (!reading) return null;
      const other = base?.T === reading.T ? base : null;
      return { caption: t("read.tableText"), head: [t("read.step"), t("read.token"), t("read.surprise"), t("read.base")], count: reading.T, on: state.t, row: (i) => [String(i + 1), glyph(reading.pieces[i]), fixed(reading.surprise[i], 3), other ? fixed(other.surprise[i], 3) : "–"] };
    },
  });
  made.update = (changed) => {
    if (["reading", "t", "unit"].some((key) => changed.has(key))) for (const each of lines) each.update();
    if (changed.has("edits")) list.replaceChildren(...state.edits.map((edit) => el("li", { text: describe(edit) })));
    back.disabled = reset.disabled = !state.edits.length;
    if (["reading", "base", "edits"].some((key) => changed.has(key))) {
      put(effect, effectOf());
      made.refresh();
    }
  };
  return made;
}

// What the what-ifs cost: surprise with them and without, where the tokens are the same in number.
function effectOf() {
  const { reading, base, edits } = state;
  if (!edits.length) return t("read.whatNone");
  if (!reading || !base || base.T !== reading.T || base.version.update !== reading.version.update) return "\u00a0";
  let change = 0, count = 0;
  for (let i = 1; i < reading.T; i++) {
    change += reading.surprise[i] - base.surprise[i];
    count += reading.surprise[i] !== base.surprise[i];
  }
  return `${t("read.effect", { change: signed(change), after: fixed(reading.nats, 3), before: fixed(base.nats, 3) })} ${t("read.effectBits", { count, n: reading.T })}`;
}
