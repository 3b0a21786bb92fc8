// The graph, folded and pulled open: the picture that the server draws, made to answer to pointer and keys.
import { panel } from "../charts/panel.js";
import { clamp, el, put } from "../dom.js";
import { figures, fixed } from "../format.js";
import { set, state } from "../state.js";
import { t } from "../words.js";

export const norm = (values) => (values ? Math.hypot(...values) : NaN);
export const nodeNow = () => state["unfold.graph"]?.nodes.find((each) => each.id === state["unfold.node"]) ?? null;
export const nameOf = (node) => `${node.symbol}(${node.t})`;
const labelOf = (parameter) => parameter.symbol.replace(/_/g, "");

const HEAD = 66; // pixels of the picture with its own title and legend, which the panel says in its language

// Styles as attributes are refused by the page's policy: set them one by one.
function parsed(source) {
  const made = new DOMParser().parseFromString(source.replace(/ style="/g, ' data-style="'), "image/svg+xml").documentElement;
  const node = document.importNode(made, true);
  for (const each of node.querySelectorAll("[data-style]")) {
    const cell = /rgba\((\d+),\d+,\d+,([\d.]+)\)/.exec(each.dataset.style);
    if (cell) {
      each.classList.add(Number(cell[1]) < 100 ? "minus" : "plus");
      each.style.fillOpacity = cell[2];
    } else for (const rule of each.dataset.style.split(";")) each.style.setProperty(...rule.split(":"));
    delete each.dataset.style;
  }
  delete node.dataset.style;
  return node;
}

export function graphPanel(most) {
  const sheet = el("div", { class: "sheet-of-graph" });
  const frame = el("div", { class: "graph", role: "application", tabindex: "0", onclick: pick, onkeydown: keyed }, sheet);
  const pull = el("input", { type: "range", id: "unfold-tau", min: 0, max: most, step: 1, "aria-label": t("unfold.pullLabel"), oninput: () => set({ "unfold.tau": pull.valueAsNumber, playing: false }) });
  const pulled = el("output", { for: "unfold-tau", class: "scale-value" });
  const made = panel({
    name: "unfolded", title: t("unfold.graph"), controls: [el("span", { class: "scale" }, el("label", { for: "unfold-tau", text: t("unfold.pull") }), pull, pulled)], figure: [frame], note: "\u00a0",
    csv: { route: "/api/unfold", name: "nodes", body: () => state["unfold.asked"] },
    table: () => {
      const nodes = state["unfold.graph"]?.nodes;
      return nodes && { caption: t("unfold.tableGraph"), head: [t("unfold.nodeHead"), t("unfold.equation"), t("unfold.shape"), t("unfold.norm"), t("unfold.gradientNorm")], count: nodes.length, on: nodes.indexOf(nodeNow()),
        row: (i) => [nameOf(nodes[i]), nodes[i].equation + (nodes[i].number ? ` (${nodes[i].number})` : ""), nodes[i].shape.join(" × "), figures(norm(nodes[i].value), 3), figures(norm(nodes[i].gradient), 3)] };
    },
  });
  let picture = null, folded = 0;

  function pick(event) {
    const group = event.target.closest("[data-node]"), label = event.target.closest("text.halo");
    if (group) set({ "unfold.node": group.dataset.node });
    const parameter = label && state["unfold.graph"].parameters.find((each) => labelOf(each) === label.textContent);
    if (parameter) set({ "unfold.parameter": parameter.name, "unfold.index": "0,0" });
  }

  made.move = (down, right) => {
    const nodes = state["unfold.graph"]?.nodes, now = nodeNow();
    if (!now) return;
    const place = ({ id }) => picture.querySelector(`[data-node="${CSS.escape(id)}"]`)?.getBBox();
    const same = down ? nodes.filter((each) => each.t === now.t).sort((a, b) => (place(a)?.y ?? 0) - (place(b)?.y ?? 0) || (place(a)?.x ?? 0) - (place(b)?.x ?? 0)) : nodes.filter((each) => each.name === now.name).sort((a, b) => a.t - b.t);
    set({ "unfold.node": same[clamp(same.indexOf(now) + down + right, 0, same.length - 1)].id });
  };

  function keyed(event) {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    made.move(...way);
  }

  function mark() {
    const now = nodeNow();
    picture?.querySelector(".chosen")?.classList.remove("chosen");
    const group = now && picture?.querySelector(`[data-node="${CSS.escape(now.id)}"]`);
    group?.classList.add("chosen");
    frame.setAttribute("aria-label", `${t("unfold.graphLabel", { tau: state["unfold.graph"]?.tau ?? 0 })}. ${now ? `${nameOf(now)} ${now.equation}` : ""}`);
    if (!group || frame.scrollWidth <= frame.clientWidth) return;
    const [a, b] = [group.getBoundingClientRect(), frame.getBoundingClientRect()];
    if (a.left < b.left || a.right > b.right) frame.scrollLeft += a.left - b.left - b.width / 2;
  }

  function draw(graph) {
    picture = parsed(graph.svg);
    const [, , width, tall] = picture.getAttribute("viewBox").split(" ").map(Number), height = tall - HEAD;
    for (const each of picture.querySelectorAll(":scope > text")) if (Number(each.getAttribute("y")) < HEAD) each.remove();
    picture.setAttribute("viewBox", `0 ${HEAD} ${width} ${height}`);
    const arrow = [...picture.querySelectorAll(".soft")].find((each) => each.textContent === "unfold");
    folded = arrow ? Number(arrow.getAttribute("x")) - 40 : 400;
    if (arrow) arrow.textContent = t("common.unfold").toLowerCase();
    const scale = Math.min(1, 560 / height);
    [picture.style.width, picture.style.height] = [`${width * scale}px`, `${height * scale}px`];
    folded *= scale;
    sheet.replaceChildren(picture);
    const open = () => (sheet.style.width = `${state["unfold.tau"] ? width * scale : folded}px`);
    requestAnimationFrame(open);
    put(made.note, t("unfold.note", { loss: fixed(graph.loss, 4) }));
  }

  made.update = (changed) => {
    const graph = state["unfold.graph"];
    if (changed.has("unfold.tau")) {
      pull.value = state["unfold.tau"];
      put(pulled, state["unfold.tau"] ? t("unfold.pulled", { tau: state["unfold.tau"] }) : t("unfold.folded"));
      if (!state["unfold.tau"] && folded) sheet.style.width = `${folded}px`;
    }
    if (graph && (changed.has("unfold.graph") || !picture)) draw(graph);
    if (graph && ["unfold.graph", "unfold.node"].some((key) => changed.has(key))) {
      mark();
      made.refresh();
    }
  };
  return made;
}
