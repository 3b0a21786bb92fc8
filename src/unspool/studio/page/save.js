// "Save this view": this page with its numbers as one HTML file that opens from disk, its scripts allowed by their hash.
import { answers, download, frozenPage } from "./api.js";
import { el } from "./dom.js";
import { encode } from "./format.js";
import { currentRun, giveParts, linked, state } from "./state.js";
import { toast } from "./toast.js";
import { t } from "./words.js";

const KEPT = ["lang", "theme", "view", "u", "t", "text", "edits", "unit", "runs", "current", "points", "samples", "texts"];
const read = async (path) => (await fetch(path)).text();

// All modules in one script: each becomes a function that returns what it exports, in the order of their imports.
async function bundle(entry) {
  const made = [];
  const seen = new Set();
  async function add(path) {
    if (seen.has(path)) return;
    seen.add(path);
    const source = await read(path);
    const names = [...source.matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)].map((found) => found[1]);
    const at = (from) => new URL(from, `http://x${path}`).pathname;
    for (const [, from] of source.matchAll(/^import \{.*?\} from "(.*?)";$/gm)) await add(at(from));
    const body = source.replace(/^import \{(.*?)\} from "(.*?)";$/gm, (_, list, from) => `const {${list.replace(/ as /g, ": ")}} = modules["${at(from)}"];`).replace(/^export /gm, "");
    made.push(`modules["${path}"] = (() => {\n${body}\nreturn { ${names.join(", ")} };\n})();`);
  }
  await add(entry);
  return `"use strict";\nconst modules = {};\n${made.join("\n")}`.replace(/<\/script/gi, "<\\/script");
}

async function hash(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...bytes))}'`;
}

// What the frozen page needs: the state, the curve, the answers on screen.
function numbers() {
  const { rows, count } = state.curve;
  const kept = Object.fromEntries(KEPT.map((key) => [key, state[key]]));
  const parts = Object.fromEntries([...linked.keys()].map((key) => [key, state[key]]));
  return { date: new Date().toISOString().slice(0, 16).replace("T", " "), state: kept, parts, curve: [...rows.subarray(0, 5 * count)].map((x) => (Number.isFinite(x) ? x : null)), answers: Object.fromEntries(answers()) };
}

export async function saveView() {
  const styles = await Promise.all([...document.querySelectorAll("link[rel=stylesheet]")].map((link) => read(new URL(link.href).pathname)));
  const style = styles.join("\n");
  const script = await bundle("/main.js");
  const csp = `default-src 'none'; script-src ${await hash(script)}; style-src ${await hash(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const data = JSON.stringify(numbers(), encode).replace(/</g, "\\u003c");
  const page = el("html", { lang: document.documentElement.lang });
  page.append(
    el("head", {}, el("meta", { charset: "utf-8" }), el("meta", { "http-equiv": "Content-Security-Policy", content: csp }), el("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }), el("title", { text: document.title }), el("link", { rel: "icon", href: "data:," }), "STYLE"),
    el("body", {}, "DATA", "SCRIPT"));
  const html = page.outerHTML.replace("STYLE", () => `<style>${style}</style>`).replace("DATA", () => `<script type="application/json" id="frozen">${data}</script>`).replace("SCRIPT", () => `<script>${script}</script>`);
  const name = `${currentRun()?.name ?? "unspool"}-${state.view}.html`;
  download(name, `<!doctype html>\n${html}`, "text/html");
  toast(t("common.saved", { name }));
}

// The state that a saved page begins with.
export function frozenState() {
  const { state: kept, parts, curve } = frozenPage();
  giveParts(parts);
  const rows = Float64Array.from(curve, (x) => (x === null ? NaN : x));
  return { ...kept, curve: { rows, count: rows.length / 5 }, online: "frozen" };
}
