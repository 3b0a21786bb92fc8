// The tokens of the run's vocabulary by id, and the distribution after a step.
import { newest, call } from "../api.js";
import { decode } from "../format.js";
import { set, state } from "../state.js";

const known = new Map(); // run → pieces
const asked = new Set();
const ask = newest("/api/at");

export function vocabulary(reading) {
  const run = reading.version.run;
  if (!known.has(run) && !asked.has(run)) {
    asked.add(run);
    call("/api/vocabulary", { run }).then(({ pieces }) => {
      known.set(run, pieces);
      set({ vocabulary: run });
    }).catch(() => asked.delete(run));
  }
  return known.get(run) ?? null;
}

export const piece = (id, reading) => vocabulary(reading)?.[id] ?? "…";

// The likeliest token at a row of the reading; after the last row the answer of /api/at has it.
export function sharesAt(reading, row) {
  if (row < reading.T) return { id: reading.expected[6 * row], share: reading.shares[6 * row] };
  const here = state.here;
  if (!here || here.reading !== reading.id || here.t !== row - 1) return { id: -1, share: NaN };
  let best = 0;
  for (let i = 1; i < here.next.length; i++) if (here.next[i] > here.next[best]) best = i;
  return { id: best, share: here.next[best] };
}

// Ask for the exact values of one step; state.here is set when they come.
let wanted = "";
export async function askHere(reading, at) {
  const key = `${reading.id} ${at}`;
  if (key === wanted) return;
  wanted = key;
  const answer = await ask({ reading: reading.id, t: at }).catch(() => null);
  if (answer && key === wanted) show(reading, answer);
}

// The same where it came with the reading.
export function takeHere(reading, found) {
  wanted = `${reading.id} ${found.t}`;
  show(reading, found);
}

function show(reading, found) {
  const opened = (group) => Object.fromEntries(Object.entries(group ?? {}).map(([name, each]) => [name, decode(each)]));
  set({ here: { reading: reading.id, text: reading.text, t: found.t, next: decode(found.next), states: opened(found.states), gates: opened(found.gates) } });
}
