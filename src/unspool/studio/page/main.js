// Boot: the bar, the strip, one view at a time, and the frame loop of what moves by itself.
import { takeToken } from "./api.js";
import { bar } from "./bar.js";
import { calm, el } from "./dom.js";
import { startDrop } from "./forms.js";
import { frozen, remember, remembered } from "./frozen.js";
import { startKeys } from "./keys.js";
import { rememberView, restoreView, VIEWS } from "./link.js";
import { refreshReading, startReading } from "./reading.js";
import { frozenState } from "./save.js";
import { set, state, watch } from "./state.js";
import { startStream } from "./stream.js";
import { strip } from "./strip.js";
import { startTheme } from "./theme.js";
import { startTour } from "./tour.js";
import { view as back } from "./views/back.js";
import { view as learn } from "./views/learn.js";
import { view as read } from "./views/read.js";
import { view as steps } from "./views/steps.js";
import { view as unfold } from "./views/unfold.js";
import { view as units } from "./views/units.js";
import { t } from "./words.js";

const views = { learn, read, units, back, unfold, steps };
const REMEMBERED = ["lang", "theme"];
let mounted = null;
let shownView = "";
let parts = [];

function build() {
  const held = document.activeElement?.id;
  document.documentElement.lang = state.lang === "en" ? "en" : "zh-Hans";
  mounted?.unmount?.();
  const main = el("main", { id: "main", tabindex: "-1" });
  parts = frozen?.steps ? [bar()] : [bar(), strip()];
  const skip = el("a", { class: "skip", href: "#main", text: t("common.skip"), onclick: (event) => {
    event.preventDefault();
    main.focus();
  } });
  document.querySelectorAll(".page").forEach((node) => node.remove());
  document.body.prepend(el("div", { class: "page" }, skip, ...parts, main));
  show(main);
  document.getElementById(held)?.focus();
}

function show(main) {
  shownView = state.view;
  main.className = `view-${state.view}`;
  main.replaceChildren();
  document.title = `${t(`common.${state.view}`)} · ${frozen?.title ?? "unspool studio"}`;
  mounted = views[state.view].mount(main);
  update(new Set(Object.keys(state)));
}

function update(changed) {
  for (const part of parts) part.update(changed);
  mounted.update(changed);
}

function changedState(changed) {
  for (const key of REMEMBERED) if (changed.has(key)) remember(key, state[key]);
  if (changed.has("lang")) return build();
  if (changed.has("view") && state.view !== shownView) {
    mounted?.unmount?.();
    set({ playing: false });
    show(document.getElementById("main"));
    scrollTo(0, 0);
  } else update(changed);
  if (changed.has("playing") && state.playing) requestAnimationFrame(play);
  if (!frozen) rememberView();
}

let last = 0;
let owed = 0;
function play(time) {
  const pace = views[state.view].pace;
  if (!state.playing || !pace) return void (last = 0);
  if (last) owed += (Math.min(200, time - last) / 1000) * pace;
  last = time;
  const ticks = Math.floor(owed);
  owed -= ticks;
  if (ticks) mounted.tick?.(ticks);
  requestAnimationFrame(play);
}

function preferences() {
  const lang = remembered("lang") ?? (navigator.language?.startsWith("zh") ? "zh" : "en");
  set({ lang: lang === "zh" ? "zh" : "en", theme: ["light", "dark"].find((each) => each === remembered("theme")) ?? "" });
}

function start() {
  preferences();
  const token = !frozen && takeToken();
  set({ text: t("read.sample") });
  if (frozen) set(frozenState());
  else restoreView();
  startTheme();
  build();
  watch(changedState);
  startKeys(() => mounted);
  if (!frozen) startDrop();
  startTour();
  startReading(() => views[state.view].reads);
  if (frozen) refreshReading();
  else if (token) startStream();
  else set({ online: "refused" });
  if (state.view === "read" && !calm() && !state.t && !frozen) set({ playing: true });
}

start();
