// The bar: the name, the views, the tour, sharing, language, theme, keys; and the line that says what is wrong.
import { el, icon, put, svg } from "./dom.js";
import { frozen, whole } from "./frozen.js";
import { fragment, openView, VIEWS } from "./link.js";
import { otherLanguage, showKeys } from "./keys.js";
import { saveView } from "./save.js";
import { currentRun, giveParts, set, state } from "./state.js";
import { otherTheme } from "./theme.js";
import { toast } from "./toast.js";
import { openTour } from "./tour.js";
import { t } from "./words.js";

const THREAD = "M11 12a1.6 1.6 0 0 1 3.2 0 3.4 3.4 0 0 1-6.8 0 5.2 5.2 0 0 1 10.4 0 7 7 0 0 1-14 0 8.8 8.8 0 0 1 8.8-8.8M12.6 20.8H29";

async function copy() {
  const text = fragment(true);
  try {
    await navigator.clipboard.writeText(text);
    toast(t("common.copied"));
  } catch {
    ask(t("common.copy"), t("common.copyFailed"), text);
  }
}

// A dialog with one field of text; `done` gives an error to show, or null.
function ask(title, help, value, label, done) {
  const area = el("textarea", { rows: "5", "aria-label": title, value, spellcheck: "false" });
  const wrong = el("p", { class: "bad", role: "alert" });
  const act = async () => {
    const problem = await done(area.value);
    if (problem) put(wrong, problem);
    else dialog.close();
  };
  const dialog = el("dialog", { class: "sheet", "aria-label": title, onclose: () => dialog.remove() }, el("h2", { text: title }), el("p", { text: help }), area, wrong,
    el("p", { class: "row" }, done && el("button", { class: "main", text: label, onclick: act }), el("button", { text: t("common.close"), onclick: () => dialog.close() })));
  document.body.append(dialog);
  dialog.showModal();
}

async function open(text) {
  const found = await openView(text).catch((refusal) => ({ message: refusal.message || t("common.goneShort") }));
  if (found.message) return found.message;
  if (found.bad) return t("common.openBad");
  if (found.noText !== undefined) return t("common.openNoText", { name: found.noText });
  if (found.trains) toast(t("common.openTrains", { u: found.u ?? 0 }));
  set({ playing: false });
  setTimeout(() => { // after the frame that tells of the other run
    set(found.changes);
    giveParts(found.parts);
  }, 150);
  return null;
}

function sharing() {
  const menu = el("div", { popover: "auto", id: "share-menu", class: "menu" });
  const item = (name, action) => el("button", { class: "quiet", text: t(`common.${name}`), onclick: () => {
    menu.hidePopover();
    action();
  } });
  menu.append(item("copy", copy), item("open", () => ask(t("common.openTitle"), t("common.openHelp"), "", t("common.openDo"), open)), item("save", saveView));
  const button = el("button", { class: "quiet", id: "share", popovertarget: "share-menu" }, t("common.share"), icon("more"));
  menu.addEventListener("toggle", () => {
    const area = button.getBoundingClientRect();
    menu.style.top = `${area.bottom + 4}px`;
    menu.style.right = `${Math.max(8, document.documentElement.clientWidth - area.right)}px`;
  });
  return [button, menu];
}

export function bar() {
  const links = new Map(VIEWS.map((name) => [name, el("a", { href: `#view=${name}`, text: t(`common.${name}`), onclick: (event) => {
    event.preventDefault();
    set({ view: name });
  } })]));
  const wrong = el("p", { class: "wrong", role: "status" });
  const quiet = (id, label, action, ...inside) => el("button", { class: "quiet", id, "aria-label": t(label), title: t(label), onclick: action }, ...inside);
  const made = el("header", { class: "bar" },
    el("span", { class: "brand" }, svg("svg", { viewBox: "0 0 30 24", "aria-hidden": "true" }, svg("path", { d: THREAD })), "unspool"),
    el("nav", { class: "views", "aria-label": t("common.views") }, ...links.values()),
    el("div", { class: "tools" }, ...(frozen ? [] : [el("button", { class: "quiet", id: "tour", text: t("common.tour"), onclick: openTour }), ...sharing()]),
      quiet("language", "common.languageName", otherLanguage, t("common.language")), quiet("theme", "common.theme", otherTheme, icon("theme")), quiet("keys", "common.keys", showKeys, "?")),
    wrong);
  made.update = () => {
    for (const [name, link] of links) {
      if (name === state.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const text = trouble();
    put(wrong, text);
    wrong.hidden = !text;
    wrong.classList.toggle("plain", state.online === "frozen");
  };
  return made;
}

function trouble() {
  if (whole) return [`${frozen.title}.`, t("common.written"), !frozen.steps && t("common.inspected"), frozen.cut && t("common.cut", frozen.cut)].filter(Boolean).join(" ");
  if (frozen) return t("common.frozen", { date: frozen.date });
  if (state.online === "refused") return t("common.refused");
  if (state.online === "gone") {
    const command = currentRun()?.resume;
    return command ? t("common.gone", { command }) : t("common.goneShort");
  }
  const run = currentRun();
  return run?.status === "failed" ? run.message : "";
}
