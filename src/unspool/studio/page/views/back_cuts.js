// The gradient of the window by lag, and what full, truncated and random BPTT make of it.
import { linear, tickText, ticks } from "../charts/axes.js";
import { columnChart } from "../charts/bars.js";
import { lineChart } from "../charts/lines.js";
import { panel } from "../charts/panel.js";
import { clamp, el, put, svg } from "../dom.js";
import { decode, figures, percent } from "../format.js";
import { frozen } from "../frozen.js";
import { set, state } from "../state.js";
import { redraw } from "../theme.js";
import { t } from "../words.js";
import { cutsRequest, request, TAU } from "./back_model.js";

const FRAME = 3; // the farthest distance that is drawn, in norms of the full gradient

export function lagsPanel() {
  const pick = (K) => set({ "back.K": clamp(Math.round(K), 1, data?.tau ?? TAU) });
  const parts = columnChart({ label: t("back.lagsLabel"), yTitle: t("back.part"), cursor: "lag", onpick: pick });
  const missed = lineChart({ label: t("back.missedLabel"), xTitle: t("back.lagAxis"), yTitle: t("back.missed"), log: true, cursor: "lag", onpick: pick });
  const K = el("input", { type: "range", id: "back-K", min: 1, max: TAU, step: 1, value: state["back.K"], "aria-label": t("back.KLabel"), oninput: () => pick(K.valueAsNumber) }), shown = el("output", { for: "back-K", class: "scale-value" });
  const made = panel({
    name: "lags", title: t("back.lags"), controls: [el("span", { class: "scale" }, el("label", { for: "back-K", class: "math", text: t("back.K") }), K, shown)], figure: [parts, missed], note: "\u00a0",
    csv: { route: "/api/back", name: "lags", body: () => request({ parts: ["lags"] }) },
    table: () => data && { caption: t("back.tableLags"), head: [t("back.lag"), ...data.names.map((name) => `‖∇${name}‖`), t("back.missed")], count: data.tau, on: state["back.K"],
      row: (i) => [String(i), ...data.names.map((_, n) => figures(data.norms[n * data.tau + i], 3)), percent(data.bias[i])] },
  });
  let data = null;

  function open({ lags, tau }) {
    const norms = decode(lags.norms), bias = decode(lags.bias), own = Array.from(norms.slice(-tau));
    data = { tau, names: lags.names, norms, bias, own };
    parts.show({ values: own, y: [0, Math.max(...own) * 1.05 || 1], names: (i) => (i % 8 === 0 ? String(i) : null) });
    missed.show({ x: [-0.5, tau - 0.5], y: [0.001, Math.max(1, ...bias.slice(0, tau))], lines: [], curves: [{ kind: "main", exact: true, count: tau, xs: (i) => i, ys: (i) => (bias[i] >= 0.001 ? bias[i] : NaN) }] });
    K.max = tau;
  }

  function needed(most) {
    let n = data.tau;
    while (n > 1 && data.bias[n - 1] <= most) n--;
    return n;
  }

  made.update = (changed) => {
    if (changed.has("back.lags") && state["back.lags"]) open(state["back.lags"]);
    if (!data || !(changed.has("back.lags") || changed.has("back.K"))) return;
    const at = Math.min(state["back.K"], data.tau);
    K.value = at;
    put(shown, String(at));
    for (const chart of [parts, missed]) chart.cursor(Math.min(at, data.tau - 1));
    put(made.note, t("back.lagsSay", { K: at, bias: percent(data.bias[at]), a: needed(0.1), b: needed(0.05), c: needed(0.01) }));
    made.refresh();
  };
  return made;
}

function strip(each, most) {
  const plot = svg("svg", { "aria-hidden": "true" });
  const node = el("div", { class: "strip-plot" }, plot);
  const draws = each.draws && decode(each.draws);
  redraw(node, (width, height) => {
    const x = linear(0, most, 8, width - 10), middle = height / 2, add = (name, about) => plot.append(svg(name, about));
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    plot.replaceChildren(svg("path", { class: "grid", d: ticks(0, most, 3).map((v) => `M${x(v)} 0V${height}`).join("") + `M0 ${height - 0.5}H${width}` }));
    draws?.forEach((value, i) => {
      const py = middle + ((((i * 7) % 5) - 2) * height) / 7;
      add(...(value > most ? ["path", { class: "beyond", d: `M${width - 7} ${py - 3}l6 3l-6 3z` }] : ["circle", { class: "draw", cx: x(value), cy: py, r: 2.6 }]));
    });
    const at = x(Math.min(each.bias, most));
    if (each.error !== null) add("path", { class: "mean", d: `M${at - 6} ${middle}h12M${at} ${middle - 6}v12M${x(Math.max(0, each.bias - each.error))} ${middle}H${x(Math.min(most, each.bias + each.error))}` });
    else add("path", { class: each.kind === "full" ? "whole" : "cut", d: each.kind === "full" ? `M${at - 6} ${middle}l6 -6l6 6l-6 6z` : `M${at - 4.5} ${middle - 4.5}h9v9h-9z` });
  });
  return node;
}

function scaleRow(most) {
  const plot = svg("svg", { "aria-hidden": "true" }), node = el("div", { class: "strip-plot scale-row" }, plot);
  redraw(node, (width, height) => {
    const x = linear(0, most, 8, width - 10), values = ticks(0, most, 3);
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    plot.replaceChildren(...values.map((v) => svg("text", { class: "plot-text", x: x(v), y: 12, "text-anchor": v ? (x(v) > width - 24 ? "end" : "middle") : "start", text: `${tickText(100 * v)}\u202f%` })));
  });
  return node;
}

export function cutsPanel() {
  const list = el("div", { class: "strips" });
  const again = el("button", { class: "small", text: t("back.again"), onclick: () => set({ "back.seed": state["back.seed"] + 1 }) });
  const made = panel({
    name: "cuts", title: t("back.cuts"), controls: frozen ? [] : [again], figure: [list], note: t("back.computing"), csv: { route: "/api/back", name: "truncations", body: cutsRequest },
    table: () => {
      const rows = state["back.truncations"]?.truncations;
      return rows && { caption: t("back.tableCuts"), head: [t("back.method"), t("back.biasHead"), t("back.error"), t("back.spreadHead"), t("back.norm")], count: rows.length,
        row: (i) => [rows[i].kind, percent(rows[i].bias), rows[i].error === null ? "–" : percent(rows[i].error), percent(rows[i].spread), figures(rows[i].norm, 3)] };
    },
  });

  made.update = (changed) => {
    const found = state["back.truncations"]?.truncations;
    if (!found || !changed.has("back.truncations")) return;
    const draws = found.flatMap((each) => (each.draws ? Array.from(decode(each.draws)) : []));
    const most = clamp(Math.max(...draws, ...found.map((each) => each.bias)) * 1.05, 1, FRAME), beyond = draws.filter((each) => each > most).length;
    const number = (each) => [`${t("back.bias", { x: percent(each.bias) })}${each.error === null ? "" : ` ± ${percent(each.error)}`}`, t("back.spread", { x: percent(each.spread) })];
    list.replaceChildren(...found.flatMap((each) => {
      const [bias, spread] = number(each);
      return [el("span", { class: "kind", text: each.kind }), strip(each, most), el("span", { class: "numbers" }, el("span", { text: bias }), el("span", { text: spread }))];
    }), el("span"), scaleRow(most), el("span"));
    const n = found.find((each) => each.draws)?.draws.shape[0] ?? 0;
    put(made.note, `${t("back.cutsSay", { n, outside: beyond ? t("back.outside", { n: beyond }) : "" })} ${t("back.differs")}`);
    made.refresh();
  };
  return made;
}
