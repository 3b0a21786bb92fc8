// The guided tour along chapter 10: each stop shows a view, tells, and drives the real controls.
import { el } from "./dom.js";
import { currentRun, set, state, watch } from "./state.js";
import { t } from "./words.js";

const end = () => Math.max(0, (state.reading?.T ?? 1) - 1);
const press = (id) => document.getElementById(id)?.click();

const STOPS = [
  { name: "learn", view: "learn", number: "10.14", equation: "L = Σₜ L(t) = −Σₜ log p(y(t) | x(1), …, x(t))", show: () => press(currentRun()?.status === "paused" ? "one" : "go") },
  { name: "state", view: "read", number: "10.5", equation: "h(t) = f(h(t−1), x(t); θ)", show: () => set({ t: 0, playing: true }) },
  { name: "unfold", view: "unfold", number: "10.6, 10.7", equation: "h(t) = g(x(t), x(t−1), …, x(1)) = f(h(t−1), x(t); θ)" },
  { name: "forward", view: "read", number: "10.8 – 10.11", equation: "a(t) = b + W h(t−1) + U x(t),  h(t) = tanh a(t),  o(t) = c + V h(t),  ŷ(t) = softmax o(t)", show: () => {
    set({ t: end(), playing: false });
    document.getElementById("text")?.focus();
  } },
  { name: "loss", view: "read", number: "10.12 – 10.14", equation: "L(t) = −log p(y(t) | x(1), …, x(t))", show: () => set({ u: state.u === 0 ? null : currentRun()?.first ?? 0 }) },
  { name: "what", view: "read", number: "10.5", equation: "h(t) = f(h(t−1), x(t); θ)", show: () => set({ edits: [...state.edits, { kind: "character", t: 4, value: "q" }], t: 5 }) },
  { name: "bptt", view: "back", number: "10.26", equation: "∇W L = Σₜ diag(1 − h(t)²) (∇ₕ₍ₜ₎ L) h(t−1)ᵀ", show: () => set({ playing: true }) },
  { name: "long", view: "back", number: "10.36 – 10.39", equation: "h(t) = (Wᵗ)ᵀ h(0) = Qᵀ Λᵗ Q h(0)", show: () => set({ playing: true }) },
  { name: "gates", view: "units", number: "10.41", equation: "s(t) = f(t) s(t−1) + g(t) σ(b + U x(t) + W h(t−1))" },
  { name: "clip", view: "learn", number: "10.48, 10.49", equation: "‖g‖ > v:  g ← g v / ‖g‖", show: () => press("fork") },
];

let at = -1;
let dock = null;

function go(to) {
  at = to;
  if (at >= STOPS.length) return closeTour();
  set({ view: STOPS[at].view, playing: false });
  fill(true);
}

function fill(focus) {
  const stop = STOPS[at];
  const button = (key, action, about = {}) => el("button", { text: t(`tour.${key}`), onclick: action, ...about });
  dock.setAttribute("aria-label", t("tour.name"));
  const head = el("h2", { tabindex: "-1", text: t(`tour.${stop.name}Title`) });
  dock.replaceChildren(
    el("p", { class: "note", text: t("tour.stop", { at: at + 1, count: STOPS.length }) }), head, el("p", { text: t(`tour.${stop.name}Text`) }),
    el("p", { class: "equation" }, el("span", { class: "math", text: stop.equation }), el("span", { class: "note", text: t("tour.equation", { number: stop.number }) })),
    el("p", {}, el("b", { text: `${t("tour.tries")}: ` }), t(`tour.${stop.name}Try`)),
    el("p", { class: "row" }, stop.show && button("show", stop.show, { id: "tour-show" }), button("before", () => go(at - 1), { disabled: at === 0, id: "tour-before" }), button("next", () => go(at + 1), { class: "main", id: "tour-next" }), button("close", closeTour, { class: "quiet", id: "tour-close" })));
  if (focus) dock.querySelector("#tour-show, #tour-next").focus();
}

function closeTour() {
  at = -1;
  dock.hidden = true;
  document.getElementById("tour")?.focus();
}

export function openTour() {
  dock.hidden = false;
  go(0);
}

export function startTour() {
  dock = el("aside", { class: "tour", hidden: true, onkeydown: (event) => event.key === "Escape" && closeTour() });
  document.body.append(dock);
  watch((changed) => changed.has("lang") && at >= 0 && fill(false));
}
