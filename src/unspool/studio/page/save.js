// "Save this view": the page with its numbers as one HTML file that opens from disk.
import { answers, download } from "./api.js";
import { encode } from "./format.js";
import { frozen } from "./frozen.js";
import { currentRun, giveParts, linked, state } from "./state.js";
import { toast } from "./toast.js";
import { t } from "./words.js";

const KEPT = ["lang", "theme", "view", "u", "t", "text", "edits", "unit", "runs", "current", "points", "samples", "texts"];

// What the frozen page needs: the state, the curve, the answers on screen.
function numbers() {
  const { rows, count } = state.curve;
  const kept = Object.fromEntries(KEPT.map((key) => [key, state[key]]));
  const parts = Object.fromEntries([...linked.keys()].map((key) => [key, state[key]]));
  return { date: new Date().toISOString().slice(0, 16).replace("T", " "), state: kept, parts, curve: [...rows.subarray(0, 5 * count)].map((x) => (Number.isFinite(x) ? x : null)), answers: Object.fromEntries(answers()) };
}

// The server has the page ready, with an empty block of numbers.
export async function saveView() {
  const page = await (await fetch("/frozen.html")).text();
  const data = JSON.stringify(numbers(), encode).replace(/</g, "\\u003c");
  const name = `${currentRun()?.name ?? "unspool"}-${state.view}.html`;
  download(name, page.replace('id="frozen">null<', () => `id="frozen">${data}<`), "text/html");
  toast(t("common.saved", { name }));
}

// The state that a saved page begins with.
export function frozenState() {
  const { state: kept, parts, curve } = frozen;
  giveParts(parts);
  const rows = Float64Array.from(curve, (x) => (x === null ? NaN : x));
  return { ...kept, curve: { rows, count: rows.length / 5 }, online: "frozen" };
}
