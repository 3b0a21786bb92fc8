// The strip that is always there: the run, its training, the slider over all its updates.
import { call } from "./api.js";
import { linear } from "./charts/axes.js";
import { pathOf } from "./charts/lines.js";
import { el, icon, put, svg, turnIcon } from "./dom.js";
import { fixed, grouped } from "./format.js";
import { frozen, whole } from "./frozen.js";
import { openFork, openNew, openText } from "./forms.js";
import { currentRun, set, state, updateShown } from "./state.js";
import { redraw } from "./theme.js";
import { toast } from "./toast.js";
import { t } from "./words.js";

let noted = -1; // serial of the last note that was shown
const SLOW = 0.5; // seconds after an update in slow motion
export const CELLS = { elman: "Elman", gru: "GRU", lstm: "LSTM", lnlstm: "LN-LSTM" };

// Ask for something of a run; a refusal becomes a line at the foot of the page.
export const request = (route, body) => call(route, body).catch((refusal) => toast(refusal.message || t("common.goneShort")));

// The last value of the points or the curve at or before an update.
export function lastBefore(u) {
  const { rows, count } = state.curve;
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[5 * middle] <= u) low = middle + 1;
    else high = middle;
  }
  const valid = state.points.filter(([at, , loss]) => at <= u && loss !== null).at(-1);
  return { train: low ? rows[5 * (low - 1) + 2] : null, valid: valid ? valid[2] : null };
}

// Low and high of what the curves show, in nats.
export function lossRange() {
  const { rows, count } = state.curve;
  const run = currentRun();
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < count; i++) {
    const value = rows[5 * i + 2];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  for (const [, , valid] of state.points) if (valid !== null) [low, high] = [Math.min(low, valid), Math.max(high, valid)];
  const grams = (run?.baselines ?? []).map((each) => each.nats).filter((nats) => nats !== null);
  const best = Math.min(...grams, low);
  if (!(low < Infinity)) return grams.length ? [best - 0.2, Math.max(...grams) + 0.1] : [0, 1];
  const room = 0.06 * (high - best || 1);
  return [best - room, high + room];
}

export function strip() {
  const name = el("b"), facts = el("span");
  const picker = el("button", { class: "run", id: "run-button", popovertarget: "run-menu" }, el("span", { class: "run-name" }, name, icon("more")), facts);
  const menu = runMenu(picker);
  const go = el("button", { class: "go-update", id: "go", onclick: () => request("/api/train", { action: currentRun()?.status === "training" ? "stop" : "start" }) }, icon("play"), el("span", { class: "word" }));
  const one = el("button", { id: "one", "aria-label": t("strip.one"), title: t("strip.one"), text: t("strip.oneShort"), onclick: () => {
    set({ u: null });
    request("/api/train", { action: "one" });
  } });
  const slow = el("button", { id: "slow", "aria-pressed": "false", "aria-label": t("strip.slow"), title: t("strip.slow"), text: t("strip.slowShort"), onclick: () => request("/api/train", { pace: currentRun()?.pace ? 0 : SLOW }) });
  const fork = el("button", { id: "fork", text: t("strip.fork"), onclick: openFork });
  const updates = updateSlider();
  const [which, at, train, valid] = [el("dt", { text: t("strip.update") }), el("dd"), el("dd"), el("dd")];
  const newest = el("button", { class: "small go-update", id: "newest", text: t("strip.newest"), "aria-label": t("strip.newestLabel"), onclick: () => set({ u: null }) });
  const said = el("p", { class: "unseen", role: "status" });
  const made = el("section", { class: `strip${frozen ? " still" : ""}`, "aria-label": t("strip.label") },
    el("div", { class: "run-box" }, picker, menu), el("div", { class: "transport" }, go, one, slow), updates,
    el("dl", { class: "now" }, el("div", { class: "at" }, which, at), el("div", { class: "train" }, el("dt", { text: t("strip.train") }), train), el("div", {}, el("dt", { text: t("strip.valid") }), valid)),
    el("div", { class: "ends" }, newest, fork), said);

  made.update = (changed) => {
    const run = currentRun();
    const status = run?.status;
    put(name, run ? run.name : t("strip.noRun"));
    picker.setAttribute("aria-label", t("strip.pick", { name: run?.name ?? "" }));
    const message = messageOf(run);
    put(said, message);
    facts.title = message;
    picker.disabled = Boolean(frozen);
    put(facts, message ? message : run?.cell ? t("strip.facts", { cell: CELLS[run.cell] ?? run.cell, hidden: run.hidden, rate: Number(run.learning_rate.toPrecision(6)), seed: run.seed }) : run ? t(`strip.status_${status}`) : "");
    const moves = status === "training";
    const may = state.online === "live" && (moves || status === "paused");
    const word = t(moves ? "strip.stop" : run?.step ? "strip.resume" : "strip.start");
    put(go.querySelector(".word"), word);
    go.setAttribute("aria-label", word);
    turnIcon(go, moves ? "pause" : "play");
    go.disabled = !may;
    one.disabled = !may;
    slow.disabled = state.online !== "live" || !run;
    slow.setAttribute("aria-pressed", String(Boolean(run?.pace)));
    fork.disabled = state.online !== "live" || !run?.step || status === "viewed" || status === "stored";
    const u = updateShown();
    const now = lastBefore(u);
    put(at, `${grouped(u)} / ${run?.steps ? grouped(run.steps) : "–"}`);
    put(train, fixed(now.train, 3));
    put(valid, fixed(now.valid, 3));
    newest.classList.toggle("hushed", state.u === null);
    newest.disabled = state.u === null;
    if (state.note && state.note.serial !== noted && state.online === "live") {
      if (noted >= 0) toast(state.note.message);
      noted = state.note.serial;
    } else if (!state.note && state.online === "live") noted = 0;
    if (["runs", "current", "curve", "points", "u", "lang"].some((key) => changed.has(key))) updates.update(run, u, now);
    if (changed.has("runs") || changed.has("current")) menu.update();
  };
  return made;
}

function messageOf(run) {
  if (state.replay && state.replay.to > state.replay.at) return t("common.replay", { at: grouped(state.replay.at), to: grouped(state.replay.to) });
  if (run?.message) return run.message;
  if (run && !["training", "paused", "ended"].includes(run.status)) return t(`strip.status_${run.status}`);
  return "";
}

// The slider over all updates, laid over the curve.
function updateSlider() {
  const plot = svg("svg", { "aria-hidden": "true" });
  const later = el("div", { class: "later" }), line = el("div", { class: "line" });
  const slider = el("input", { type: "range", id: "updates", min: 0, max: 1, step: 1, "aria-label": t("strip.updates"), oninput: () => {
    const run = currentRun();
    if (!run) return;
    const to = Math.max(run.first, slider.valueAsNumber);
    set({ u: to >= run.step ? null : to, playing: false });
    if (to > run.step) slider.value = run.step;
  } });
  const made = el("div", { class: "updates" }, el("div", { class: "plot" }, plot, later, line), slider);
  let run = null;
  const draw = redraw(made, (width, height) => {
    if (!run) return plot.replaceChildren();
    const wide = width - 14, [low, high] = lossRange();
    const x = linear(0, run.steps || 1, 0, wide), y = linear(low, high, height - 3, 3);
    plot.setAttribute("viewBox", `0 0 ${wide} ${height}`);
    const grams = (run.baselines ?? []).filter(({ nats }) => nats !== null && nats >= low && nats <= high);
    const { rows, count } = state.curve;
    plot.replaceChildren(
      ...grams.map(({ nats }) => svg("path", { class: "gram", d: `M0 ${y(nats).toFixed(1)}H${wide}` })),
      svg("path", { class: "curve-soft", d: pathOf({ count, xs: (i) => rows[5 * i], ys: (i) => rows[5 * i + 2] }, x, y) }),
      svg("path", { class: "curve-main", d: pathOf({ count: state.points.length, xs: (i) => state.points[i][0], ys: (i) => state.points[i][2] ?? NaN, exact: true }, x, y) }));
  });
  made.update = (next, u, now) => {
    run = next;
    slider.max = run?.steps || 1;
    slider.min = 0;
    slider.value = u;
    slider.disabled = !run?.step || whole;
    const across = `${run?.steps ? (100 * u) / run.steps : 0}%`;
    line.style.left = later.style.left = across;
    slider.setAttribute("aria-valuetext", t("strip.updateText", { u, n: run?.steps ?? 0, train: fixed(now.train, 2), valid: fixed(now.valid, 2) }));
    draw();
  };
  return made;
}

function runMenu(button) {
  const menu = el("div", { popover: "auto", id: "run-menu", class: "menu runs" });
  menu.addEventListener("toggle", () => {
    const area = button.getBoundingClientRect();
    menu.style.top = `${area.bottom + 4}px`;
    menu.style.left = `${Math.max(8, area.left)}px`;
    menu.update();
  });
  const close = (action) => () => {
    menu.hidePopover();
    action();
  };
  menu.update = () => {
    if (!menu.matches(":popover-open")) return;
    const held = [...menu.querySelectorAll("button")].indexOf(document.activeElement);
    const names = new Map(state.runs.map((run) => [run.id, run.name]));
    const items = state.runs.map((run) => {
      const status = t("strip.atUpdate", { status: t(`strip.status_${run.status}`), step: grouped(run.step) });
      const origin = run.parent ? ` · ${t("strip.ofParent", { name: names.get(run.parent.run) ?? "?", update: run.parent.update })}` : "";
      return el("button", { class: "quiet item", "aria-current": run.id === state.current ? "true" : null, onclick: close(() => request("/api/show", { run: run.id })) },
        el("b", { text: run.name }), el("span", { text: (run.cell ? `${CELLS[run.cell] ?? run.cell} ${run.hidden} · ` : "") + (run.status === "stored" ? t("strip.status_stored") : status + origin) }));
    });
    menu.replaceChildren(el("h2", { text: t("strip.runs") }), el("div", { class: "items" }, ...items),
      el("p", { class: "row" }, el("button", { class: "main", text: t("strip.newRun"), onclick: close(() => openNew()) }), el("button", { text: t("strip.addText"), onclick: close(() => openText()) })));
    menu.querySelectorAll("button")[held]?.focus();
  };
  return menu;
}
