// How far back the model looks over a longer window: measured when asked for, or held by a file.
import { newest } from "../api.js";
import { lineChart } from "../charts/lines.js";
import { panel } from "../charts/panel.js";
import { el, put } from "../dom.js";
import { figures, percent } from "../format.js";
import { whole } from "../frozen.js";
import { editedText, modelFields, unread } from "../reading.js";
import { part, set, state } from "../state.js";
import { t } from "../words.js";

const ask = newest("/api/memory");
const request = () => ({ ...modelFields(), text: editedText() });
const steps = (n, last) => (n === null ? t("back.beyond", { n: last }) : String(n));

export function memoryPanel() {
  part("back.memory", null, false);
  const influence = lineChart({ label: t("back.influenceLabel"), yTitle: t("back.influence"), xTitle: t("back.lag"), log: true });
  const missed = lineChart({ label: t("back.missedLabel"), yTitle: t("back.missed"), xTitle: t("back.lagAxis"), log: true });
  const charts = el("div", { class: "pair-of", hidden: true }, influence, missed); // nothing stands there before it is measured
  const measure = el("button", { class: "small", text: t("back.measure"), onclick: fetch });
  const made = panel({
    name: "memory", title: t("back.memory"), figure: [charts], note: t("back.memoryNote"),
    controls: [whole ? null : measure, el("span", { class: "key", text: t("back.trained") }), el("span", { class: "key key-soft", text: t("back.untrained") })],
    csv: { route: "/api/memory", name: "influence", body: request },
    table: () => {
      const found = state["back.memory"];
      return found && { caption: t("back.tableMemory"), head: [t("back.lag"), ...found.influence.map((_, i) => `${t("back.trained")} ${i + 1}`), t("back.untrained"), `‖∇${found.letter}‖`, t("back.missed")], count: found.lags.length,
        row: (i) => [String(found.lags[i]), ...found.influence.map((norms) => figures(norms[i], 3)), figures(found.untrained[i], 3), figures(found.parts[found.lags[i]], 3), percent(found.missed[found.lags[i]])] };
    },
  });

  async function fetch() {
    if (unread()) return;
    measure.disabled = true;
    try {
      const answer = await ask(request());
      if (answer) set({ "back.memory": answer });
    } catch (refusal) {
      if (!whole) put(made.note, refusal.message || t("common.goneShort"));
    }
    measure.disabled = false;
  }

  function draw(found) {
    const { lags, untrained } = found, last = lags.at(-1), from = found.influence.at(-1)[0] || 1;
    const over = (values) => (i) => (values[i] > 1e-5 * from ? values[i] : NaN);
    const most = Math.max(...found.influence.flat(), ...untrained);
    const curves = [untrained, ...found.influence].map((values, i) => ({ kind: i ? "main" : "soft", exact: true, count: lags.length, xs: (k) => lags[k], ys: over(values) }));
    influence.show({ x: [0, last], y: [1e-4 * from, 1.3 * most], lines: [{ name: "1 %", value: 0.01 * from }], curves });
    missed.show({ x: [0, found.missed.length - 1], y: [0.001, Math.max(1, ...found.missed)], lines: [], curves: [{ kind: "main", exact: true, count: found.missed.length, xs: (K) => K, ys: (K) => (found.missed[K] >= 0.001 ? found.missed[K] : NaN) }] });
    const [a, b, c] = found.steps.map((n) => steps(n, last));
    put(made.note, t("back.memorySay", { reach: found.horizons.map((n) => steps(n, last)).join(" · "), fresh: steps(found.untrained_horizon, last), a, b, c }));
  }

  made.update = (changed) => {
    if (whole && state.reading && !state["back.memory"]) fetch();
    if (!changed.has("back.memory") || !state["back.memory"]) return;
    charts.hidden = false;
    draw(state["back.memory"]);
    made.refresh();
  };
  return made;
}
