// Single keys, everywhere but in fields of their own; they can be switched off (WCAG 2.1.4).
import { call } from "./api.js";
import { clamp, el } from "./dom.js";
import { frozen, remember, remembered } from "./frozen.js";
import { VIEWS } from "./link.js";
import { currentRun, set, state, updateShown } from "./state.js";
import { otherTheme } from "./theme.js";
import { t } from "./words.js";

const OFF = "keys-off";
let mounted = () => null;
const lettersOn = () => remembered(OFF) !== "1";

export const otherLanguage = () => set({ lang: state.lang === "en" ? "zh" : "en" });
export const undo = () => set({ edits: state.edits.slice(0, -1) });

export function moveUpdate(by) {
  const run = currentRun();
  if (!run) return;
  const to = clamp(updateShown() + by, run.first, run.step);
  set({ u: to >= run.step ? null : to });
}

function moveTime(to) {
  set({ t: clamp(to, 0, mounted()?.last?.() ?? Math.max(0, (state.reading?.T ?? 1) - 1)), playing: false });
}

const train = (action) => call("/api/train", { action }).catch(() => {});
const starts = () => !frozen && ["paused", "training"].includes(currentRun()?.status);

function actions(event) {
  const far = event.shiftKey ? 10 : 1;
  return {
    ArrowLeft: () => moveTime(state.t - far), ArrowRight: () => moveTime(state.t + far), Home: () => moveTime(0), End: () => moveTime(1e9),
    "[": () => moveUpdate(-10), "]": () => moveUpdate(10), "{": () => moveUpdate(-1), "}": () => moveUpdate(1),
    " ": () => set({ playing: !state.playing }), z: undo, d: otherTheme, l: otherLanguage, "?": showKeys,
    g: () => starts() && train(currentRun().status === "training" ? "stop" : "start"), n: () => starts() && train("one"),
    ...Object.fromEntries(VIEWS.map((name, i) => [String(i + 1), () => set({ view: name })])),
    ...mounted()?.keys,
  };
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, select, textarea, dialog, [popover], .twin")) return;
  if (event.key === " " && event.target.closest?.("button, a, summary")) return;
  if (event.key.length === 1 && event.key !== " " && !lettersOn()) return;
  const action = actions(event)[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

const dialog = el("dialog", { class: "sheet", "aria-labelledby": "keys-title" });

export function showKeys() {
  const rows = [
    [["←", "→"], t("common.keyTime")], [["Home", "End"], t("common.keyEnds")], [["Space"], t("common.keyPlay")],
    ...(frozen ? [] : [[["[", "]"], t("common.keyUpdate")], [["g"], t("common.keyTrain")], [["n"], t("common.keyOne")], [["z"], t("common.keyUndo")]]), ...(mounted()?.help ?? []),
    [["1", String(VIEWS.length)], t("common.keyViews")], [["d"], t("common.keyTheme")], [["l"], t("common.keyLanguage")], [["?"], t("common.keyHelp")],
  ];
  const list = el("dl", { class: "keys" });
  for (const [caps, words] of rows) list.append(el("dt", {}, ...caps.flatMap((cap, i) => [i ? " " : "", el("kbd", { text: cap })])), el("dd", { text: words }));
  const letters = el("input", { type: "checkbox", id: "letters", checked: lettersOn(), onchange: () => remember(OFF, letters.checked ? "0" : "1") });
  dialog.replaceChildren(el("h2", { id: "keys-title", text: t("common.keys") }), list,
    el("p", { class: "check" }, letters, el("label", { for: "letters", text: t("common.keyLetters") })),
    el("p", { class: "row" }, el("button", { text: t("common.close"), onclick: () => dialog.close() })));
  dialog.showModal();
}

// Listen; view() is what the mounted view returned.
export function startKeys(view) {
  mounted = view;
  document.body.append(dialog);
  addEventListener("keydown", pressed);
}

