// One node with its numbers; one weight by the hand formula, by finite differences and by the engine.
import { newest } from "../api.js";
import { columnChart } from "../charts/bars.js";
import { heatMap } from "../charts/heat.js";
import { panel } from "../charts/panel.js";
import { chips, clamp, el, put, select } from "../dom.js";
import { decode, figures, signed } from "../format.js";
import { set, state } from "../state.js";
import { t } from "../words.js";
import { nameOf, nodeNow } from "./unfold_graph.js";

const ask = newest("/api/weight");
const largest = (values) => Math.max(1e-12, ...Array.from(values, Math.abs));
// The end of a symmetric axis: 1, 2 or 5 times a power of ten.
const symmetric = (values) => {
  const most = largest(values), power = 10 ** Math.floor(Math.log10(most));
  return power * [1, 2, 5, 10].find((each) => each * power >= most * 0.999);
};

export function nodePanel() {
  const charts = ["value", "gradient"].map((name) => columnChart({ label: t("unfold.values"), yTitle: t(`unfold.${name}`), left: 52 }));
  const facts = el("p", { class: "facts-line" });
  const made = panel({
    name: "node", title: t("unfold.node"), figure: [facts, ...charts],
    table: () => {
      const node = nodeNow();
      return node?.value && { caption: t("unfold.tableNode", { node: nameOf(node) }), head: [t("unfold.unit"), t("unfold.value"), t("unfold.gradient")], count: node.value.length, row: (i) => [String(i), figures(node.value[i], 5), node.gradient ? figures(node.gradient[i], 5) : "–"] };
    },
  });
  made.update = (changed) => {
    const node = nodeNow();
    if (!node || !["unfold.graph", "unfold.node"].some((key) => changed.has(key))) return;
    put(facts, `${nameOf(node)}${node.equation ? ` · ${node.equation}` : ""}${node.number ? ` · (${node.number})` : ""} · ${t("unfold.shape")} ${node.shape.join(" × ") || "–"}${node.gradient_number ? ` · ∇ (${node.gradient_number})` : ""}`);
    [node.value, node.gradient].forEach((values, i) => {
      charts[i].querySelector("svg").setAttribute("aria-label", t(i ? "unfold.gradientsLabel" : "unfold.valuesLabel", { node: nameOf(node) }));
      const most = symmetric(values ?? [1]);
      charts[i].show({ values: values ?? [], y: [-most, most], names: (k) => ((values?.length ?? 0) <= 16 || k % 16 === 0 ? String(k) : null) });
    });
    made.refresh();
  };
  return made;
}

export function weightPanel() {
  const parameters = () => state["unfold.graph"]?.parameters ?? [];
  const now = () => parameters().find((each) => each.name === state["unfold.parameter"]) ?? parameters().find((each) => each.symbol.startsWith("W")) ?? parameters()[0];
  const sized = ({ shape }) => (shape.length > 1 ? shape : [shape[0], 1]);
  const place = (one) => {
    const [rows, columns] = sized(one), [row, column] = state["unfold.index"].split(",").map(Number);
    return { row: clamp(row || 0, 0, rows - 1), column: clamp(column || 0, 0, columns - 1) };
  };
  const values = (one, key) => (one[`open_${key}`] ??= decode(one[key]));
  const say = (row, column) => {
    const one = now(), i = row * sized(one)[1] + column;
    return t("unfold.cellSays", { name: one.symbol, row, column, value: signed(values(one, "value")[i], 3), gradient: figures(values(one, "gradient")[i], 3) });
  };
  const heat = heatMap({ label: t("unfold.which"), map: "div", say, ramp: { from: "", to: "" }, onpick: ({ row, column }) => set({ "unfold.index": `${row},${column}` }) });
  const which = select([], "", { "aria-label": t("unfold.which"), onchange: () => set({ "unfold.parameter": which.value, "unfold.index": "0,0" }) });
  const shows = chips({ label: t("unfold.shows"), choices: [["value", t("unfold.value")], ["gradient", t("unfold.gradient")]], value: state["unfold.shows"], onpick: (value) => set({ "unfold.shows": value }) });
  const METHODS = ["formula", "difference", "engine"];
  const rows = Object.fromEntries(METHODS.map((name) => [name, { number: el("dd", { class: "number" }), note: el("dd", { class: "note" }) }]));
  const list = el("dl", { class: "three" }, ...METHODS.flatMap((name) => [el("dt", { text: t(`unfold.${name}`) }), rows[name].number, rows[name].note]));
  const parts = columnChart({ label: t("unfold.partsLabel"), xTitle: t("unfold.step"), yTitle: t("unfold.part"), left: 58 });
  const chosen = el("p", { class: "facts-line" });
  const made = panel({
    name: "weights", title: t("unfold.weight"), controls: [which, shows, heat.legend], figure: [el("div", { class: "pair-of" }, el("div", {}, heat, chosen), el("div", {}, list, parts))], note: "\u00a0",
    csv: { route: "/api/weight", name: "weight", body: () => asking },
    table: () => state["unfold.weight"] && { caption: t("unfold.tableWeight", { name: `${state["unfold.weight"].name}[${state["unfold.weight"].index}]` }), head: [t("unfold.method"), t("unfold.gradient")], count: 3, row: (i) => [t(`unfold.${METHODS[i]}`), state["unfold.weight"][METHODS[i]].toPrecision(9)] },
  });
  let asking = null, key = "";

  async function compare(one) {
    const { row, column } = place(one);
    const body = { unfolding: state["unfold.graph"].unfolding, name: one.name, index: one.shape.length > 1 ? [row, column] : [row] };
    if (JSON.stringify(body) === key) return;
    key = JSON.stringify(body);
    asking = body;
    try {
      const answer = await ask(body);
      if (answer) set({ "unfold.weight": answer });
    } catch (refusal) {
      put(made.note, refusal.message);
    }
  }

  function showWeight(found) {
    for (const name of METHODS) put(rows[name].number, found[name].toPrecision(7).replace("-", "−"));
    put(rows.formula.note, t("unfold.formulaNote", { equation: found.equation, number: found.number ? ` ${t("unfold.symbolOf", { number: found.number })}` : "" }));
    put(rows.difference.note, t("unfold.differenceNote", { epsilon: figures(found.epsilon, 1) }));
    put(rows.engine.note, t("unfold.engineNote"));
    const numbers = METHODS.map((name) => found[name]), most = Math.max(...numbers.map(Math.abs));
    put(made.note, most ? t("unfold.agree", { x: figures((Math.max(...numbers) - Math.min(...numbers)) / most) }) : t("unfold.agreeZero"));
    const steps = found.steps ? Array.from(decode(found.steps)) : [], high = symmetric(steps.length ? steps : [1]);
    parts.show({ values: steps, y: [-high, high], names: (i) => String(i + 1) });
  }

  made.update = (changed) => {
    const one = now();
    if (!one) return;
    if (changed.has("unfold.graph")) which.replaceChildren(...parameters().map((each) => el("option", { value: each.name, text: `${each.symbol}  ${each.shape.join(" × ")}` })));
    if (["unfold.graph", "unfold.parameter", "unfold.index", "unfold.shows"].some((name) => changed.has(name))) {
      const [height, width] = sized(one), shown = values(one, state["unfold.shows"]), most = largest(shown);
      which.value = one.name;
      if (!changed.has("unfold.index") || changed.size > 1) heat.show({ rows: height, columns: width, at: (row, column) => shown[row * width + column] / most });
      heat.legend.ends(`−${figures(most)}`, `+${figures(most)}`);
      const { row, column } = place(one);
      heat.cursor({ row, column });
      put(chosen, say(row, column));
      compare(one);
    }
    if (changed.has("unfold.weight") && state["unfold.weight"]) showWeight(state["unfold.weight"]);
    made.refresh();
  };
  return made;
}
