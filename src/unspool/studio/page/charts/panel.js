// A panel: a title, a figure, its table twin and its numbers as CSV.
import { csv, download } from "../api.js";
import { el } from "../dom.js";
import { t } from "../words.js";

const ROWS = 50;

/* panel({
     name       class of the panel and name of the CSV file
     title      words
     controls   elements beside the title
     figure     elements
     table      () => {caption, head: [words], count, row: (i) => [cells], on: i of the row at the cursor} or null
     csv        {route (or a function), name, body: () => object | undefined}: the server writes it; without it the table is taken
     note       words under the figure; panel.note.textContent may change
   }) → element with .refresh() (call it after a change: an open table is filled again) and .note */
export function panel({ name, title, controls = [], figure, table, csv: source, note }) {
  const id = `panel-${name}`;
  const twin = el("div", { class: "twin", hidden: true, tabindex: "0", role: "region", "aria-label": title });
  const shown = el("div", { class: "figure" }, ...figure);
  const toggle = el("button", { class: "quiet small", "aria-pressed": "false", "aria-label": t("common.tableOf", { title }), text: t("common.table"), onclick: turn });
  const take = el("button", { class: "quiet small", "aria-label": t("common.csvOf", { title }), text: t("common.csv"), onclick: save });
  const made = el("section", { class: `panel ${name}`, "aria-labelledby": id },
    el("div", { class: "head" }, el("h2", { id, text: title }), ...controls, el("div", { class: "twins" }, toggle, take)), shown, twin);
  made.note = el("p", { class: "note", text: note ?? "" });
  if (note !== undefined) made.append(made.note);
  let page = null;

  function turn() {
    twin.hidden = !twin.hidden;
    shown.hidden = !twin.hidden;
    toggle.setAttribute("aria-pressed", String(!twin.hidden));
    page = null;
    made.refresh();
  }

  async function save() {
    if (source) return csv(typeof source.route === "function" ? source.route() : source.route, source.name, source.body?.()).catch(() => fromTable());
    fromTable();
  }

  function fromTable() {
    const data = table();
    if (!data) return;
    const cell = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : value);
    const lines = [data.head, ...Array.from({ length: data.count }, (_, i) => data.row(i))];
    download(`${name}.csv`, lines.map((line) => line.map(cell).join(",")).join("\r\n"));
  }

  made.refresh = () => {
    if (twin.hidden) return;
    const data = table();
    if (!data) return twin.replaceChildren(el("p", { class: "note", text: t("common.nothing") }));
    const last = Math.max(0, Math.ceil(data.count / ROWS) - 1);
    const at = Math.min(last, page ?? Math.floor((data.on ?? 0) / ROWS));
    const first = at * ROWS;
    const body = el("tbody");
    for (let i = first; i < Math.min(data.count, first + ROWS); i++)
      body.append(el("tr", { class: i === data.on ? "on" : "" }, ...data.row(i).map((text, column) => el(column ? "td" : "th", { text, ...(column ? {} : { scope: "row" }) }))));
    const go = (to) => () => {
      page = to;
      made.refresh();
    };
    const pages = el("div", { class: "pages" },
      el("button", { class: "small", text: t("common.earlier"), disabled: at === 0, onclick: go(at - 1) }),
      el("span", { class: "note", text: t("common.rows", { from: data.count ? first + 1 : 0, to: Math.min(data.count, first + ROWS), count: data.count }) }),
      el("button", { class: "small", text: t("common.later"), disabled: at === last, onclick: go(at + 1) }));
    const held = twin.contains(document.activeElement) ? [...twin.querySelectorAll("button")].indexOf(document.activeElement) : -1;
    twin.replaceChildren(el("table", {}, el("caption", { text: data.caption }), el("thead", {}, el("tr", {}, ...data.head.map((text) => el("th", { text, scope: "col" })))), body), ...(last ? [pages] : []));
    twin.querySelectorAll("button")[held]?.focus();
  };
  return made;
}

