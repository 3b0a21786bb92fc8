// The text that is read: a field to type in, over the same text coloured by surprise.
import { panel } from "../charts/panel.js";
import { legend } from "../charts/heat.js";
import { clamp, el, put } from "../dom.js";
import { fixed, glyph } from "../format.js";
import { frozen } from "../frozen.js";
import { asked, editedText, followCaret, refreshReading } from "../reading.js";
import { currentRun, set, state } from "../state.js";
import { t } from "../words.js";
import { piece } from "./read_vocabulary.js";

const MOST = 7; // nats at the end of the scale
const STEPS = 15;
const LIMIT = 5000;

export const level = (nats) => (nats > 0 ? clamp(Math.round((nats / MOST) * STEPS), 0, STEPS) : 0);

export function textPanel() {
  const mirror = el("div", { class: "mirror", "aria-hidden": "true" });
  const area = el("textarea", { id: "text", class: "typed", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": t(frozen ? "read.text" : "read.typeHere"), value: editedText(), readonly: Boolean(frozen) });
  const box = el("div", { class: "reader" }, mirror, area);
  const mean = el("p", { class: "note" });
  const clear = el("button", { class: "small", text: t("read.clear"), "aria-label": t("read.clearLabel"), onclick: () => set({ text: t("read.sample"), edits: [], t: 0 }) });
  const made = panel({
    name: "text", title: t("read.text"), controls: [legend("seq", "0", t("read.surpriseScale"), 7 / 16), !frozen && clear], figure: [box, mean],
    csv: { route: "/api/read", name: "surprise", body: () => asked() }, table,
  });
  const spans = []; // {node, text, name of its colour}: what the page holds, so that it need not be asked
  const tail = new Text("\n");
  mirror.append(tail);
  let marked = []; // [class, node]
  let typed = ""; // what was typed and is not read yet: the cursor follows the caret when the answer comes

  area.addEventListener("input", () => {
    typed = area.value;
    set({ text: area.value, edits: state.edits.filter((each) => each.kind !== "character"), playing: false });
    paintText();
    refreshReading();
  });
  // the caret is the cursor through time: what stands before it has been read
  const stepAt = (reading) => {
    const step = reading.spans.findIndex(([, end]) => end >= area.selectionStart);
    return step < 0 ? reading.T - 1 : step;
  };
  const follow = () => {
    const reading = state.reading;
    if (document.activeElement !== area || !reading || reading.text !== area.value) return;
    set({ t: stepAt(reading), playing: false });
  };
  for (const name of ["keyup", "click", "select"]) area.addEventListener(name, follow);

  // where the cursor will be when the answer comes, to ask for this step at once: exact where tokens are characters
  const typing = (text) => typed !== "" && typed === text && area.value === text && area.isConnected;
  followCaret({
    before: (text) => (typing(text) && currentRun()?.token_kind === "char" ? Math.max(0, Array.from(text.slice(0, area.selectionStart)).length - 1) : null),
    after: (reading) => (typing(reading.text) ? stepAt(reading) : null),
  });

  // The letters of the mirror: one span a token, in the colour of its surprise.
  function paintText() {
    const reading = state.reading;
    const text = area.value;
    const fits = reading && reading.text === text;
    const cuts = fits ? reading.spans : carried(reading, text);
    for (const { node } of spans.splice(cuts.length)) node.remove();
    tail.remove();
    while (spans.length < cuts.length) spans.push({ node: mirror.appendChild(document.createElement("s")), text: "", name: "" });
    mirror.append(tail);
    for (let i = 0; i < cuts.length; i++) {
      const [from, to, old = i] = cuts[i], span = spans[i], words = text.slice(from, to);
      const name = `q${old >= 0 && reading ? level(reading.surprise[old]) : 0}`;
      if (span.text !== words) span.node.textContent = span.text = words;
      if (span.name !== name) span.node.className = span.name = name;
    }
    const end = cuts.length ? cuts.at(-1)[1] : 0;
    const rest = `${text.slice(end)}\n`;
    if (tail.data !== rest) tail.data = rest;
    mark();
  }

  // The outlines of the cursor and of what-ifs.
  function mark() {
    const edited = state.reading ? state.edits.filter((each) => each.kind !== "weight" && each.t !== null).map((each) => each.t) : [];
    const now = [...edited.map((t) => ["edited", spans[t]?.node]), ["on", state.reading ? spans[state.t]?.node : undefined]].filter(([, node]) => node);
    for (const [name, node] of marked) if (!now.some(([other, same]) => other === name && same === node)) node.classList.remove(name);
    for (const [name, node] of now) node.classList.add(name);
    marked = now;
  }

  function table() {
    const reading = state.reading;
    if (!reading) return null;
    return {
      caption: t("read.tableText"), head: [t("read.step"), t("read.token"), t("read.surprise"), t("read.given"), t("read.expected")], count: reading.T, on: state.t,
      row: (i) => [String(i + 1), glyph(reading.pieces[i]), fixed(reading.surprise[i], 3), i ? Math.exp(-reading.surprise[i]).toFixed(4) : "–", i ? [0, 1, 2].map((k) => glyph(piece(reading.expected[6 * i + k], reading))).join(" ") : "–"],
    };
  }

  made.update = (changed) => {
    if (changed.has("text") || changed.has("edits")) {
      const text = editedText();
      if (area.value !== text) area.value = text;
    }
    if (["reading", "text", "edits"].some((key) => changed.has(key))) {
      paintText();
      const reading = state.reading;
      put(mean, reading ? t("read.mean", { nats: fixed(reading.nats), perplexity: fixed(reading.perplexity, 1), n: reading.T }) : state.problem || "\u00a0");
      if (Array.from(state.text).length > LIMIT) put(mean, `${t("read.limit")} ${state.problem}`);
    }
    if (typed && state.reading?.text === area.value) typed = "";
    if (changed.has("t")) mark();
    if (["reading", "t", "vocabulary"].some((key) => changed.has(key))) made.refresh();
  };
  return made;
}

// While an answer is on its way: the tokens before and after the typed place keep their colours.
function carried(reading, text) {
  const old = reading ? reading.spans : [];
  const was = reading?.text ?? "";
  let head = 0;
  while (head < old.length && text.startsWith(was.slice(...old[head]), old[head][0])) head++;
  const made = old.slice(0, head).map(([from, to], i) => [from, to, i]);
  const shift = text.length - was.length;
  let tail = old.length;
  const start = head ? old[head - 1][1] : 0;
  while (tail > head && old[tail - 1][0] + shift >= start && text.startsWith(was.slice(...old[tail - 1]), old[tail - 1][0] + shift)) tail--;
  const end = tail < old.length ? old[tail][0] + shift : text.length;
  for (let at = start; at < end;) {
    const size = text.codePointAt(at) > 0xffff ? 2 : 1;
    made.push([at, at + size, -1]);
    at += size;
  }
  for (let i = tail; i < old.length; i++) made.push([old[i][0] + shift, old[i][1] + shift, i]);
  return made;
}
