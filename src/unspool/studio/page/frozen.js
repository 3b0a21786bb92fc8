// A page that was saved as a file: its numbers are in a block of JSON, and there is no server to ask.

function read() {
  const node = document.getElementById("frozen");
  return node ? JSON.parse(node.textContent) : null;
}

// null on a page with a server. `whole`: written by unspool inspect, so that only what it holds is offered.
export const frozen = read();
export const whole = Boolean(frozen?.whole);

// Requests that differ in these fields alone have the same answer.
const OWN = ["serial", "reading", "plane", "after", "at", "unfolding"];
export const keyOf = (route, body) => `${route} ${JSON.stringify(Object.entries(body ?? {}).filter(([key]) => !OWN.includes(key)).sort(([a], [b]) => (a < b ? -1 : 1)))}`;

export function answerOf(route, body) {
  if (route === "/api/at" && frozen.next?.[body.t]) return { t: body.t, next: { dtype: "f4", data: frozen.next[body.t] } };
  return frozen.answers[keyOf(route, body)];
}

// A page without an address of its own may remember nothing.
export function remembered(key) {
  try {
    return localStorage.getItem(`unspool-${key}`);
  } catch {
    return null;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(`unspool-${key}`, value);
  } catch {
    // for this visit only
  }
}
