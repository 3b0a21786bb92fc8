// The list of units by what they tell, and fields for any other unit or gate.
import { panel } from "../charts/panel.js";
import { clamp, el, put, select } from "../dom.js";
import { percent } from "../format.js";
import { whole } from "../frozen.js";
import { set, state } from "../state.js";
import { dictionaries, t } from "../words.js";

// "layer0.h17" as h17, of a model with one layer.
export const short = (name) => (state.reading?.state_names.some((each) => !each.startsWith("layer0")) ? name : name.split(".").at(-1));
export const propertyName = (property) => {
  const { en } = dictionaries.units, key = Object.keys(en).find((each) => en[each] === property);
  return key ? t(`units.${key}`) : property ?? t("units.none");
};
const parsed = (name) => [name.replace(/\d+$/, ""), Number(/\d+$/.exec(name)?.[0] ?? -1)];

// The chosen unit; where this model has none of that name, the most informative one, or "" until that is known.
export function validUnit(reading) {
  const [group, number] = parsed(state.unit);
  if (number >= 0 && number < reading.hidden && [...reading.state_names, ...reading.gate_names].includes(group)) return state.unit;
  return state["units.all"]?.units[0]?.name ?? "";
}

export function choosePanel() {
  const groups = select([], "", { "aria-label": t("units.group"), onchange: other });
  const number = el("input", { type: "number", min: 0, step: 1, "aria-label": t("units.number"), onchange: other });
  const list = el("fieldset", { class: "choices" }, el("legend", { class: "unseen", text: t("units.list") }));
  const made = panel({
    name: "choose", title: t("units.choose"), controls: whole ? [] : [groups, number], figure: [list],
    csv: { route: "/api/units", name: "units", body: () => ({ reading: state.reading?.id, count: 32 }) },
    table: () => {
      const units = state["units.all"]?.units;
      return units && { caption: t("units.tableUnits"), head: [t("units.column"), t("units.property"), t("units.share"), t("units.chance")], count: units.length, row: (i) => [short(units[i].name), propertyName(units[i].property), percent(units[i].share), percent(units[i].chance)] };
    },
  });
  let rows = [];

  function other() {
    if (state.reading && number.value !== "") set({ unit: groups.value + clamp(number.valueAsNumber || 0, 0, state.reading.hidden - 1) });
  }

  function fill({ units }) {
    while (rows.length < units.length) {
      const row = { input: el("input", { type: "radio", name: "unit", onchange: () => set({ unit: row.unit }) }), name: el("b"), bar: el("span"), share: el("span", { class: "share" }), words: el("span", { class: "property" }) };
      row.node = el("label", {}, row.input, row.name, row.words, el("span", { class: "track", "aria-hidden": "true" }, row.bar), row.share);
      rows.push(row);
      list.append(row.node);
    }
    for (const row of rows.splice(units.length)) row.node.remove();
    units.forEach((unit, i) => {
      rows[i].unit = unit.name;
      rows[i].name.textContent = short(unit.name);
      put(rows[i].words, propertyName(unit.property));
      put(rows[i].share, percent(unit.share));
      rows[i].bar.style.width = `${100 * clamp(unit.share, 0, 1)}%`;
    });
  }

  made.move = (by) => {
    const { reading } = state;
    if (!reading || !rows.length) return;
    const now = rows.findIndex((row) => row.unit === validUnit(reading));
    const to = rows[clamp(now + by, 0, rows.length - 1)];
    set({ unit: to.unit });
    to.node.scrollIntoView({ block: "nearest" });
  };

  made.update = (changed) => {
    const { reading } = state;
    if (changed.has("units.all") && state["units.all"]) fill(state["units.all"]);
    if (!reading || !["units.all", "units.one", "unit", "reading"].some((key) => changed.has(key))) return;
    const names = [...reading.state_names, ...reading.gate_names];
    if (names.join() !== Array.from(groups.options, (each) => each.value).join()) groups.replaceChildren(...names.map((each) => el("option", { value: each, text: each })));
    const [group, index] = parsed(validUnit(reading) || `${names[0]}0`);
    groups.value = group;
    number.max = reading.hidden - 1;
    if (document.activeElement !== number) number.value = index;
    for (const row of rows) row.input.checked = row.unit === validUnit(reading);
    made.refresh();
  };
  return made;
}
