// Requests to the server. The token comes in the address and travels in a header.
import { openBinary } from "./format.js";
import { answerOf, frozen, keyOf } from "./frozen.js";

const TAB = Math.random().toString(36).slice(2, 12);
const KEY = "unspool-token";
let token = "";
let serial = 0;
const recorded = new Map(); // what was answered, for "save this view"

export const answers = () => recorded;

// Take the token out of the address; true if there is one.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) {
    token = given.get("token");
    sessionStorage.setItem(KEY, token);
    given.delete("token");
    history.replaceState(null, "", given.size ? `#${given}` : location.pathname);
  } else token = sessionStorage.getItem(KEY) ?? "";
  return token !== "";
}

export const headers = () => ({ "X-Unspool-Token": token, "X-Unspool-Tab": TAB });
export const theToken = () => token;

// What a request without its answer ends with: code, and one line for people.
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function ask(route, body, lane = "") {
  const own = { ...headers(), "X-Unspool-Tab": TAB + lane };
  const about = body === undefined ? { headers: own } : { method: "POST", headers: { ...own, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(route, { cache: "no-store", ...about });
  } catch {
    throw new Refusal("gone", "");
  }
  if (response.ok) return response;
  const found = await response.json().catch(() => ({}));
  throw new Refusal(found.error?.code ?? String(response.status), found.error?.message ?? response.statusText);
}

// GET without a body, POST with one; the answer is JSON, with arrays after it where there are some (see format.js).
// finish(answer) may complete it before it is recorded.
export async function call(route, body, lane, finish = (answer) => answer) {
  if (frozen) {
    const held = answerOf(route, body);
    if (held) return held;
    throw new Refusal("frozen", "");
  }
  const key = keyOf(route, body);
  const response = await ask(route, body, lane);
  const binary = response.headers.get("content-type") === "application/octet-stream";
  const answer = finish(binary ? openBinary(await response.arrayBuffer()) : await response.json());
  recorded.delete(key);
  recorded.set(key, answer);
  if (recorded.size > 40) recorded.delete(recorded.keys().next().value);
  return answer;
}

// A caller for one route that lets only the newest request through: one is under way, one waits, older ones give null.
// The server lets the newest of a tab and route win; two callers of one route need lanes of their own.
export function newest(route, lane = "") {
  let busy = false;
  let waiting = null;
  async function run(body, finish, done, failed) {
    busy = true;
    try {
      const mine = ++serial;
      const answer = await call(route, { ...body, serial: mine }, lane, finish);
      done(answer);
    } catch (refusal) {
      if (refusal.code === "superseded") done(null);
      else failed(refusal);
    }
    busy = false;
    const next = waiting;
    waiting = null;
    if (next) run(...next);
  }
  return (body, finish) => new Promise((done, failed) => {
    if (!busy) return void run(body, finish, done, failed);
    waiting?.[2](null);
    waiting = [body, finish, done, failed];
  });
}

// Save text as a file of the browser.
export function download(name, text, kind = "text/csv") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The numbers of a chart as the server writes them: GET without a body, POST with one.
export async function csv(route, name, body) {
  if (frozen) throw new Refusal("frozen", "");
  const response = await ask(`${route}${route.includes("?") ? "&" : "?"}csv=${name}`, body);
  download(`${name}.csv`, await response.text());
}
