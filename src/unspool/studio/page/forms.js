// The forms of the strip: a new run, a fork, a text.
import { call } from "./api.js";
import { el, field, put, select } from "./dom.js";
import { currentRun, set, state, updateShown } from "./state.js";
import { t } from "./words.js";

const LARGEST = 16 * 2 ** 20;
const BPTT = ["full", "truncated:8", "truncated:16", "truncated:8,32", "random:0.75", "random:0.9"];

// A dialog with fields; act() does what the button says, and what it throws is shown.
function form(title, inside, words, act) {
  const wrong = el("p", { class: "bad", role: "alert" });
  const submit = el("button", { class: "main", text: words, type: "submit" });
  const dialog = el("dialog", { class: "sheet", "aria-label": title, onclose: () => dialog.remove() },
    el("form", { method: "dialog", novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        await act();
        dialog.close();
      } catch (problem) {
        put(wrong, problem.message || t("common.goneShort"));
      }
      submit.disabled = false;
    } }, el("h2", { text: title }), ...inside, wrong, el("p", { class: "row" }, submit, el("button", { type: "button", text: t("common.cancel"), onclick: () => dialog.close() }))));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

const number = (value, about = {}) => el("input", { type: "number", value: value ?? "", placeholder: t("strip.auto"), min: "0", ...about });

export async function openNew(id) {
  const known = await call("/api/options").catch(() => ({}));
  while (!state.texts.length && state.online === "connecting") await new Promise(requestAnimationFrame); // the first frame brings the texts
  const run = currentRun();
  const textId = id ?? run?.text ?? state.texts[0]?.id;
  const kinds = (list, value) => select([["", t("strip.auto")], ...(list ?? []).map((each) => [each, each])], value ?? "");
  const controls = {
    cell: kinds(known.cells, run?.cell), hidden: number(run?.hidden), learning_rate: number("", { step: "any" }), seed: number(run?.seed ?? 0), steps: number(run?.steps ?? 2000),
    layers: number(""), batch_size: number(""), window: number(""), dropout: number("", { step: "any" }), bptt: el("input", { list: "bptt-kinds", value: "", placeholder: t("strip.full"), spellcheck: "false" }),
    optimiser: kinds(known.optimisers), schedule: kinds(known.schedules), activation: kinds(known.activations), pattern: kinds(known.patterns), tokens: kinds(known.tokens ?? ["char", "word", "byte"]),
  };
  const labels = { cell: "cell", hidden: "hidden", learning_rate: "rate", seed: "seed", steps: "steps", layers: "layers", batch_size: "batch", window: "windowSize", dropout: "dropout", bptt: "bptt", optimiser: "optimiser", schedule: "schedule", activation: "activation", pattern: "pattern", tokens: "tokens" };
  const rows = (names) => el("div", { class: "fields" }, ...names.flatMap((name) => field(t(`strip.${labels[name]}`), controls[name])));
  const text = select(state.texts.map((each) => [each.id, each.name]), textId);
  const main = ["cell", "hidden", "learning_rate", "seed", "steps"];
  form(t("strip.newTitle"), [
    el("div", { class: "fields" }, ...field(t("strip.text"), text)), rows(main),
    el("details", {}, el("summary", { text: t("strip.more") }), rows(Object.keys(controls).filter((name) => !main.includes(name))), el("datalist", { id: "bptt-kinds" }, ...BPTT.map((each) => el("option", { value: each })))),
    el("p", { class: "note", text: t("strip.newNote") }),
  ], t("strip.newDo"), async () => {
    const options = {};
    for (const [name, control] of Object.entries(controls)) {
      const value = control.value.trim();
      if (value !== "") options[name] = control.type === "number" ? Number(value) : value;
    }
    await call("/api/new", { text: text.value, options, start: true });
    set({ u: null, edits: [] });
  });
}

export function openFork() {
  const run = currentRun();
  if (!run) return;
  const u = updateShown();
  const rate = number(run.learning_rate, { step: "any" });
  const clip = number(run.clip, { step: "any" });
  const bptt = el("input", { list: "bptt-kinds-fork", value: run.bptt ?? "full", spellcheck: "false" });
  form(t("strip.forkTitle", { u }), [
    el("div", { class: "fields" }, ...field(t("strip.rate"), rate), ...field(t("strip.bptt"), bptt), ...field(t("strip.clip"), clip)),
    el("datalist", { id: "bptt-kinds-fork" }, ...BPTT.map((each) => el("option", { value: each }))), el("p", { class: "note", text: t("strip.forkNote") }),
  ], t("strip.forkDo"), async () => {
    const options = {};
    if (rate.value !== "" && Number(rate.value) !== run.learning_rate) options.learning_rate = Number(rate.value);
    if (bptt.value.trim() && bptt.value.trim() !== run.bptt) options.bptt = bptt.value.trim();
    if (clip.value !== "" && Number(clip.value) !== run.clip) options.clip = Number(clip.value);
    await call("/api/fork", { run: run.id, update: u, options, start: true });
    set({ u: null, edits: [] });
  });
}

// Send a text to the server, then offer a run of it.
async function send(name, content) {
  if (!content.trim()) throw new Error(t("strip.textEmpty"));
  const { text } = await call("/api/texts", { name, content });
  if (!state.texts.some((each) => each.id === text.id)) set({ texts: [...state.texts, text] });
  openNew(text.id);
}

async function readFile(file) {
  if (file.size > LARGEST) throw new Error(t("strip.textLarge", { name: file.name, size: (file.size / 2 ** 20).toFixed(0) }));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(t("strip.notText", { name: file.name }));
  }
}

export function openText(given = "", problem = "") {
  let named = "";
  const area = el("textarea", { id: "pasted", rows: "7", value: given, spellcheck: "false" });
  const name = el("input", { id: "pasted-name", value: t("strip.pasted") });
  const file = el("input", { type: "file", accept: ".txt,.md,.py,.csv,text/*", "aria-label": t("strip.choose"), onchange: async () => {
    if (!file.files.length) return;
    try {
      area.value = await readFile(file.files[0]);
      name.value = named = file.files[0].name;
    } catch (refused) {
      put(dialog.querySelector(".bad"), refused.message);
    }
  } });
  const dialog = form(t("strip.textTitle"), [
    el("p", { class: "note", text: t("strip.textNote") }), el("p", {}, file), el("label", { for: "pasted", text: t("strip.paste") }), area,
    el("div", { class: "fields" }, ...field(t("strip.name"), name)),
  ], t("strip.textDo"), () => send(name.value.trim() || named || t("strip.pasted"), area.value));
  put(dialog.querySelector(".bad"), problem);
}

// A file may be dropped anywhere on the page.
export function startDrop() {
  const veil = el("div", { class: "veil", hidden: true });
  document.body.append(veil);
  const holds = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    veil.hidden = false;
    put(veil, t("strip.drop"));
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && (veil.hidden = true));
  addEventListener("drop", async (event) => {
    veil.hidden = true;
    if (!holds(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (!file) return;
    try {
      await send(file.name, await readFile(file));
    } catch (refused) {
      openText("", refused.message);
    }
  });
}
