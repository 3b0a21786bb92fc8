// All losses of the window at once: row t, column k.
import { heatMap } from "../charts/heat.js";
import { panel } from "../charts/panel.js";
import { chips, el } from "../dom.js";
import { figures, glyph, ten } from "../format.js";
import { part, set, state } from "../state.js";
import { t } from "../words.js";
import { frontAt, lossAt, request } from "./back_model.js";

export function matrixPanel() {
  part("back.kind", "h");
  const kind = () => (state["back.kind"] === "s" && state["back.flow"]?.s ? "s" : "h");
  const value = (row, column) => state["back.flow"][kind()](row, column);
  const say = (row, column) => {
    const found = state["back.flow"];
    if (!found || column > row) return t("back.nothing");
    return t("back.cell", { t: row + found.begin + 1, k: column + found.begin + 1, kind: kind(), g: figures(value(row, column), 3) });
  };
  const heat = heatMap({ label: t("back.matrixLabel"), map: "seq", say, ramp: { from: "", to: "" }, onpick: ({ row, column }) => {
    set({ t: row + state["back.flow"].begin, playing: false });
    requestAnimationFrame(() => set({ "back.lag": Math.max(0, row - column) })); // after the one that a new loss begins with
  } });
  const kinds = chips({ label: t("back.kind"), choices: [["h", "h"], ["s", "s"]], value: state["back.kind"], onpick: (each) => set({ "back.kind": each }) });
  const ends = [el("span"), el("span")];
  const made = panel({
    name: "matrix", title: t("back.matrix"), controls: [kinds],
    figure: [el("div", { class: "map-square" }, heat, el("div", { class: "inset note" }, heat.legend, el("span", { text: t("back.nothing") }))), el("div", { class: "under note" }, ends[0], el("span", { text: t("back.losses") }), el("span", { text: t("back.arrives") }), ends[1])],
    csv: { route: "/api/back", get name() { return kind() === "s" ? "matrix_s" : "matrix"; }, body: () => request({ parts: ["flow"] }) },
    table: () => {
      const found = state["back.flow"];
      if (!found) return null;
      const steps = Array.from({ length: found.tau }, (_, k) => k);
      return { caption: t("back.tableMatrix"), head: [t("back.step"), t("back.token"), ...steps.map((k) => String(k + found.begin + 1))], count: found.tau, on: lossAt(found),
        row: (i) => [String(i + found.begin + 1), glyph(found.pieces[i]), ...steps.map((k) => (k > i ? "" : figures(value(i, k))))] };
    },
  });

  made.update = (changed) => {
    const found = state["back.flow"];
    if (!found) return;
    const again = changed.has("back.flow") || changed.has("back.kind");
    if (again) {
      kinds.hidden = !found.s;
      heat.legend.ends(ten(found.low), ten(found.high));
      heat.show({ rows: found.tau, columns: found.tau, at: (row, column) => (column > row || !(value(row, column) > 0) ? NaN : 0.06 + 0.94 * found.height(value(row, column))) });
      [ends[0].textContent, ends[1].textContent] = [found.begin + 1, found.begin + found.tau];
    }
    if (again || changed.has("t") || changed.has("back.lag")) heat.cursor({ row: lossAt(found), column: frontAt(found) });
    if (again || changed.has("t")) made.refresh();
  };
  return made;
}
