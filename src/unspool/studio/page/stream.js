// The server's frames into the state: through a SharedWorker, or directly where the browser has none.
import { headers, theToken } from "./api.js";
import { Follower } from "./follower.js";
import { set, state, touch } from "./state.js";

function take({ online, whole, from, rows }) {
  set({ online });
  if (!whole) return;
  const curve = state.curve;
  const end = 5 * from + rows.length;
  if (end > curve.rows.length) {
    const larger = new Float64Array(2 * end);
    larger.set(curve.rows.subarray(0, 5 * from));
    curve.rows = larger;
  }
  curve.rows.set(rows, 5 * from);
  curve.count = end / 5;
  if (rows.length || from === 0) touch("curve");
  const { runs, current, points, samples, replay, note, texts } = whole;
  if (current !== state.current) set({ u: null, edits: [], reading: null, base: null });
  set({ runs, current, points, samples, replay, note, texts });
}

export function startStream() {
  if (typeof SharedWorker === "undefined") return direct();
  const worker = new SharedWorker("/stream-worker.js", { type: "module", name: `unspool ${theToken().slice(0, 8)}` });
  worker.onerror = () => state.online === "connecting" && direct();
  worker.port.onmessage = ({ data }) => {
    take(data);
    requestAnimationFrame(() => worker.port.postMessage({ painted: true }));
  };
  worker.port.start();
  worker.port.postMessage({ headers: headers() });
  addEventListener("pagehide", () => worker.port.postMessage({ closed: true }));
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function direct() {
  let begun = -1;
  let count = 0;
  const follower = new Follower(() => {
    const from = begun === follower.begun ? count : 0;
    const rows = follower.rows.slice(5 * from, 5 * follower.count);
    begun = follower.begun;
    count = follower.count;
    take({ online: follower.online, whole: follower.whole, from, rows });
  });
  follower.start(headers());
}
