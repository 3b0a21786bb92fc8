// Unfold: the folded graph pulled open, every node with its numbers, and one weight by three computations.
import { newest } from "../api.js";
import { chips, clamp, el, put } from "../dom.js";
import { figures } from "../format.js";
import { frozen, whole } from "../frozen.js";
import { editedText, modelFields, unread } from "../reading.js";
import { math, sayLine, strong } from "../say.js";
import { currentRun, part, set, state } from "../state.js";
import { rich, t } from "../words.js";
import { graphPanel, nameOf, nodeNow, norm } from "./unfold_graph.js";
import { nodePanel, weightPanel } from "./unfold_weight.js";

const CELLS = [["elman", "Elman"], ["gru", "GRU"], ["lstm", "LSTM"]], PATTERNS = ["10.3", "10.4", "10.5"];
const ask = newest("/api/unfold");
let wanted = "", lately = 0, timer = 0;

function declare() {
  for (const [name, first] of Object.entries({ of: "demo", cell: "elman", pattern: "10.3", text: "hello there", hidden: 4, tau: 3, node: "layer0.h(1)", parameter: "", index: "0,1", shows: "value" })) part(`unfold.${name}`, first);
  for (const name of ["graph", "weight", "asked"]) part(`unfold.${name}`, null, false);
  part("unfold.problem", "", false);
}

function request() {
  const tau = Math.max(1, state["unfold.tau"]);
  if (state["unfold.of"] === "run") return { ...modelFields(), of: "run", text: editedText(), tau };
  return { of: "demo", cell: state["unfold.cell"], pattern: state["unfold.pattern"], hidden: state["unfold.hidden"], text: state["unfold.text"], tau };
}

async function refresh() {
  const body = request(), run = currentRun(), why = body.of === "run" && unread();
  if (why) return set({ "unfold.problem": t(`read.${why}`) });
  const key = JSON.stringify([body, body.of === "run" ? body.update ?? run.step : 0]);
  if (key === wanted) return;
  const wait = body.of === "run" && run.status === "training" ? lately + 700 - performance.now() : 0;
  clearTimeout(timer);
  if (wait > 0 && state["unfold.graph"]) return void (timer = setTimeout(refresh, wait));
  lately = performance.now();
  wanted = key;
  try {
    const answer = await ask(body);
    if (!answer) return void (wanted === key && (wanted = ""));
    const held = answer.nodes.some((each) => each.id === state["unfold.node"]);
    set({ "unfold.graph": answer, "unfold.asked": body, "unfold.problem": "", ...(held ? {} : { "unfold.node": (answer.nodes.find((each) => each.name === "layer0.h" && each.t === 1) ?? answer.nodes[0]).id }) });
  } catch (refusal) {
    if (wanted === key) set({ "unfold.problem": refusal.message || t(frozen ? "common.unavailable" : "common.goneShort") });
  }
}

function sentence(say) {
  const node = nodeNow();
  if (state["unfold.problem"] || !node) return say.show([state["unfold.problem"] || t(state["unfold.graph"] ? "unfold.noNode" : "common.waiting")]);
  const equation = node.equation ? math(node.equation) : t(node.kind === "state" ? "unfold.start" : "unfold.input");
  const count = node.shape[0] > 1 ? t("unfold.many", { n: node.shape[0] }) : t("unfold.one");
  say.show(rich(node.gradient ? "unfold.says" : "unfold.saysNo", {
    node: strong(nameOf(node)), count, t: String(node.t), equation: el("span", {}, equation, node.number ? ` ${t("unfold.symbolOf", { number: node.number })}` : ""),
    norm: strong(figures(norm(node.gradient), 3)), number: node.gradient_number ? ` ${t("unfold.symbolOf", { number: node.gradient_number })}` : "",
  }));
}

function controls() {
  const own = (name, choices, label) => chips({ label: t(`unfold.${label}`), choices, value: state[`unfold.${name}`], onpick: (value) => set({ [`unfold.${name}`]: value }) });
  const of = own("of", [["demo", t("unfold.demo")], ["run", t("unfold.run")]], "of");
  const cell = own("cell", CELLS, "cell"), pattern = own("pattern", PATTERNS.map((each) => [each, each]), "pattern");
  const text = el("input", { id: "unfold-text", maxlength: 13, spellcheck: "false", autocomplete: "off", value: state["unfold.text"], oninput: () => Array.from(text.value).length > 1 && set({ "unfold.text": text.value }) });
  const hidden = el("input", { id: "unfold-hidden", type: "number", min: 1, max: 8, step: 1, value: state["unfold.hidden"], onchange: () => set({ "unfold.hidden": clamp(Math.round(hidden.valueAsNumber) || 4, 1, 8) }) });
  const labelled = (id, node) => el("span", { class: "scale" }, el("label", { for: id, text: t(`unfold.${id.slice(7)}`) }), node);
  const demo = el("span", { class: "scale demo" }, cell, pattern, labelled("unfold-hidden", hidden), labelled("unfold-text", text)), only = el("span", { class: "note" });
  const made = el("div", { class: "choose-graph" }, of, demo, only);
  made.update = () => {
    demo.hidden = state["unfold.of"] === "run";
    const plain = state["unfold.cell"] === "elman";
    pattern.querySelector('[value="10.4"]').disabled = !plain;
    if (!plain && state["unfold.pattern"] === "10.4") set({ "unfold.pattern": "10.3" });
    for (const [name, set_] of [["of", of], ["cell", cell], ["pattern", pattern]]) set_.pick(state[`unfold.${name}`]);
    put(only, plain || demo.hidden ? "" : t("unfold.only"));
  };
  return made;
}

const ASKS = ["of", "cell", "pattern", "text", "hidden", "tau"].map((name) => `unfold.${name}`);
const MOST = whole ? 3 : 12; // steps that can be pulled open
const setTau = (tau) => set({ "unfold.tau": clamp(tau, 0, MOST) });

export const view = {
  name: "unfold",
  pace: 2,
  mount(root) {
    declare();
    const say = sayLine(), choices = controls(), graph = graphPanel(MOST), parts = [graph, nodePanel(), ...(whole ? [] : [weightPanel()])];
    root.append(say, ...(frozen ? [] : [choices]), ...parts);
    return {
      update(changed) {
        if (changed.has("playing")) {
          say.update();
          if (state.playing && state["unfold.tau"] >= MOST) setTau(0);
        }
        if (ASKS.some((key) => changed.has(key))) choices.update();
        for (const each of parts) each.update(changed);
        if (["unfold.graph", "unfold.node", "unfold.problem"].some((key) => changed.has(key))) sentence(say);
        const of = state["unfold.of"] === "run" ? ["runs", "current", "u", "text", "edits"] : [];
        if (state.online !== "connecting" && [...ASKS, ...of, "online", "view"].some((key) => changed.has(key))) refresh();
      },
      tick(count) {
        setTau(state["unfold.tau"] + count);
        if (state["unfold.tau"] >= MOST) set({ playing: false });
      },
      keys: {
        ArrowLeft: () => graph.move(0, -1), ArrowRight: () => graph.move(0, 1), ArrowUp: () => graph.move(-1, 0), ArrowDown: () => graph.move(1, 0),
        "-": () => setTau(state["unfold.tau"] - 1), "+": () => setTau(state["unfold.tau"] + 1),
      },
      help: [[["↑", "↓", "←", "→"], t("unfold.moveNode")], [["−", "+"], t("unfold.keyTau")]],
      unmount: () => clearTimeout(timer),
    };
  },
};
