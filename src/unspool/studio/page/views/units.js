// Units: the text coloured by one unit or gate, what it tells, and what the model loses without it.
import { newest } from "../api.js";
import { barList } from "../charts/bars.js";
import { lineChart } from "../charts/lines.js";
import { panel } from "../charts/panel.js";
import { clamp, el, put } from "../dom.js";
import { decode, fixed, glyph, percent, signed } from "../format.js";
import { frozen } from "../frozen.js";
import { unread } from "../reading.js";
import { sayLine, strong, token } from "../say.js";
import { part, set, state } from "../state.js";
import { rich, t } from "../words.js";
import { choosePanel, propertyName, short, validUnit } from "./units_choose.js";

const STRETCHES = 6;
const askAll = newest("/api/units"), askOne = newest("/api/unit");
let wantedAll = "", wantedOne = "";
const body = () => ({ reading: state.reading?.id, name: state["units.one"]?.name ?? state.unit, stretches: STRETCHES });
const pick = (at) => state.reading && set({ t: clamp(Math.round(at), 0, state.reading.T - 1), playing: false });

async function fetchAll(reading) {
  if (wantedAll === reading.id) return;
  wantedAll = reading.id;
  const answer = await askAll({ reading: reading.id, count: 32 }).catch(() => null);
  if (answer && state.reading) set({ "units.all": answer });
}

async function fetchOne(reading, name) {
  const key = `${reading.id} ${name}`;
  if (!name || wantedOne === key) return;
  wantedOne = key;
  try {
    const answer = await askOne({ reading: reading.id, name, stretches: STRETCHES, off: true });
    if (!answer) return void (wantedOne === key && (wantedOne = ""));
    const off = answer.off && { ...answer.off, surprise: decode(answer.off.surprise) };
    set({ "units.one": { ...answer, reading, off, activation: decode(answer.activation), most: Math.max(0.01, Math.abs(answer.low), Math.abs(answer.high)) }, "units.problem": "" });
  } catch (refusal) {
    if (wantedOne === key) set({ "units.problem": refusal.message });
  }
}

// ---- the panels; each has update(one, changed)

function valuesTable() {
  const one = state["units.one"];
  return one && { caption: t("units.tableText", { name: short(one.name) }), head: [t("units.step"), t("units.token"), t("units.value")], count: one.activation.length, on: state.t, row: (i) => [String(i + 1), glyph(one.reading.pieces[i]), signed(one.activation[i], 3)] };
}

function textPanel() {
  const letters = el("p", { class: "tint", tabindex: "0", onclick: (event) => event.target.dataset?.at && pick(Number(event.target.dataset.at)) });
  const made = panel({
    name: "tinted", title: " ", figure: [letters], note: "", csv: { route: "/api/unit", name: "activation", body },
    table: valuesTable,
  });
  let spans = [], on = null;
  made.draw = (one, changed) => {
    if (changed.has("units.one")) {
      const { spans: cuts, text, pieces } = one.reading;
      put(made.querySelector("h2"), t("units.text", { name: short(one.name) }));
      put(made.note, t("units.textNote", { most: fixed(one.most) }));
      if (spans.length !== cuts.length) {
        spans = cuts.map((_, i) => el("s", { "data-at": i }));
        letters.replaceChildren(...spans);
        on = null;
      }
      cuts.forEach(([from, to], i) => {
        const words = text.slice(from, to) || pieces[i], v = clamp(one.activation[i] / one.most, -1, 1);
        put(spans[i], words === "\n" ? "↵\n" : words);
        spans[i].style.setProperty("--v", Math.abs(v).toFixed(3));
        const kind = v < 0 ? "minus" : "plus";
        if (!spans[i].classList.contains(kind)) spans[i].className = kind;
      });
    }
    on?.classList.remove("on");
    (on = spans[state.t])?.classList.add("on");
    made.refresh();
  };
  return made;
}

function alongPanel() {
  const chart = lineChart({ label: t("units.alongLabel"), xTitle: t("units.step"), cursor: "time", onpick: (x) => pick(x - 1) });
  const made = panel({ name: "along", title: " ", figure: [chart], csv: { route: "/api/unit", name: "activation", body }, table: valuesTable });
  made.draw = (one, changed) => {
    if (changed.has("units.one")) {
      put(made.querySelector("h2"), t("units.along", { name: short(one.name) }));
      const a = one.activation, low = Math.min(0, ...a), high = Math.max(0, ...a), air = (high - low || 1) * 0.06;
      chart.show({ x: [1, a.length], y: [low - air, high + air], lines: [{ name: "", value: 0 }], curves: [{ kind: "main", exact: true, count: a.length, xs: (i) => i + 1, ys: (i) => a[i] }] });
    }
    chart.cursor(state.t + 1);
    made.refresh();
  };
  return made;
}

function tellsPanel() {
  const bars = barList(6);
  const made = panel({
    name: "tells", title: t("units.tells"), figure: [bars], note: t("units.tellsNote"),
    table: () => {
      const one = state["units.one"];
      return one && { caption: t("units.tableTells"), head: [t("units.property"), t("units.share"), t("units.chance")], count: one.informs.length, row: (i) => [propertyName(one.informs[i].property), percent(one.informs[i].share), percent(one.informs[i].chance)] };
    },
  });
  made.draw = (one, changed) => {
    if (!changed.has("units.one")) return;
    bars.show(one.informs.slice(0, 6).map((each) => ({ name: propertyName(each.property), share: each.share, text: percent(Math.max(0, each.share)), kind: "" })));
    made.refresh();
  };
  return made;
}

function stretchesPanel() {
  const list = el("ol", { class: "stretches" });
  const made = panel({
    name: "strong", title: t("units.strongest"), figure: [list], csv: { route: "/api/unit", name: "stretches", body },
    table: () => {
      const one = state["units.one"];
      return one && { caption: t("units.tableStretches"), head: [t("units.at"), t("units.value"), t("units.from"), t("units.to"), t("units.text_")], count: one.stretches.length,
        row: (i) => [one.stretches[i].at + 1, signed(one.stretches[i].value, 3), one.stretches[i].begin + 1, one.stretches[i].end, seen(one.reading.pieces.slice(one.stretches[i].begin, one.stretches[i].end))].map(String) };
    },
  });
  const seen = (pieces) => pieces.map(glyph).join("");
  made.draw = (one, changed) => {
    if (!changed.has("units.one")) return;
    const { pieces } = one.reading;
    list.replaceChildren(...one.stretches.map(({ begin, end, at, value }) => el("li", {},
      el("button", { class: "quiet", "aria-label": t("units.go", { text: seen(pieces.slice(begin, end)), value: signed(value), t: at + 1 }), onclick: () => pick(at) },
        el("span", { class: "amount", text: signed(value) }), el("span", { class: "snippet" }, seen(pieces.slice(Math.max(begin, at - 12), at)), el("b", { text: glyph(pieces[at]) }), seen(pieces.slice(at + 1, end)))))));
    made.refresh();
  };
  return made;
}

// The what-if of the whole page that switches this unit off, or undefined.
const offEdit = (name) => state.edits.find((each) => each.kind === "unit" && each.t === null && each.value === 0 && each.name === name);
const canBeOff = (name) => state.reading?.state_names.some((each) => name?.startsWith(each));

function toggleOff() {
  const name = state["units.one"]?.name, edit = offEdit(name);
  if (canBeOff(name)) set({ edits: edit ? state.edits.filter((each) => each !== edit) : [...state.edits, { kind: "unit", name, t: null, value: 0 }] });
}

function offPanel() {
  const chart = lineChart({ label: t("units.offLabel"), xTitle: t("units.step"), yTitle: t("units.change"), cursor: "time", onpick: (x) => pick(x - 1) });
  const button = el("button", { class: "small", onclick: toggleOff });
  const made = panel({
    name: "off", title: t("units.off"), controls: frozen ? [] : [button], figure: [chart], note: "\u00a0", csv: { route: "/api/unit", name: "off", body },
    table: () => {
      const one = state["units.one"];
      return one?.off && { caption: t("units.tableOff"), head: [t("units.step"), t("units.token"), t("units.before"), t("units.without"), t("units.change")], count: one.activation.length, on: state.t,
        row: (i) => [String(i + 1), glyph(one.reading.pieces[i]), fixed(one.reading.surprise[i], 3), fixed(one.off.surprise[i], 3), i ? signed(one.off.surprise[i] - one.reading.surprise[i], 3) : "–"] };
    },
  });
  made.draw = (one, changed) => {
    const { off, reading } = one;
    if (changed.has("units.one") || changed.has("edits")) {
      put(button, t(offEdit(one.name) ? "units.doOn" : "units.doOff"));
      button.disabled = !canBeOff(one.name);
      put(made.note, off ? t("units.offNote", { name: short(one.name), nats: fixed(off.nats, 3), before: fixed(reading.nats, 3), cost: signed(off.cost, 3) }) : t("units.offGate"));
      const change = (i) => (off && i ? off.surprise[i] - reading.surprise[i] : NaN);
      const values = Array.from({ length: reading.T }, (_, i) => change(i)).filter((x) => x === x), most = Math.max(0.1, ...values.map(Math.abs)) * 1.08;
      chart.show({ x: [1, reading.T], y: [-most, most], lines: [{ name: "", value: 0 }], curves: [{ kind: "main", exact: true, count: off ? reading.T : 0, xs: (i) => i + 1, ys: change }] });
    }
    chart.cursor(state.t + 1);
    made.refresh();
  };
  return made;
}

function sentence(say) {
  const one = state["units.one"], why = unread();
  if (!one || why) return say.show([state["units.problem"] || state.problem || (why ? t(`read.${why}`) : t("common.waiting"))]);
  const at = Math.min(state.t, one.activation.length - 1), best = one.informs[0];
  const cost = one.off ? rich("units.saysCost", { after: strong(fixed(one.off.nats, 3)), before: fixed(one.reading.nats, 3) }) : [t("units.saysGate")];
  const parts = rich(best?.share > 0 ? "units.says" : "units.saysNothing", {
    now: token(glyph(one.reading.pieces[at]), true), t: strong(String(at + 1)), name: strong(short(one.name)), value: strong(signed(one.activation[at])),
    property: best ? propertyName(best.property) : "", share: best ? strong(percent(best.share)) : "", cost,
  });
  say.show(parts.flat());
}

export const view = {
  name: "units",
  reads: true,
  pace: 9,
  mount(root) {
    for (const name of ["all", "one"]) part(`units.${name}`, null, false);
    part("units.problem", "", false);
    const say = sayLine();
    const choose = choosePanel(), panels = [textPanel(), tellsPanel(), stretchesPanel(), alongPanel(), offPanel()];
    root.append(say, panels[0], choose, ...panels.slice(1));
    return {
      update(changed) {
        const { reading } = state;
        if (changed.has("playing")) say.update();
        if (reading && ["reading", "unit", "view", "units.all"].some((key) => changed.has(key))) {
          fetchAll(reading);
          fetchOne(reading, validUnit(reading));
        }
        choose.update(changed);
        const one = state["units.one"];
        if (one && ["units.one", "t", "edits"].some((key) => changed.has(key))) for (const each of panels) each.draw(one, changed);
        if (["units.one", "units.problem", "t", "problem", "runs", "text", "reading"].some((key) => changed.has(key))) sentence(say);
      },
      tick(count) {
        const last = (state.reading?.T ?? 1) - 1, to = clamp(state.t + count, 0, last);
        set({ t: to, playing: to < last });
      },
      keys: { ArrowUp: () => choose.move(-1), ArrowDown: () => choose.move(1), ...(frozen ? {} : { o: toggleOff }) },
      help: [[["↑", "↓"], t("units.keyUnit")], ...(frozen ? [] : [[["o"], t("units.keyOff")]])],
    };
  },
};
