// Reads the server's stream of frames with fetch (the token travels in a header) and keeps what they add up to.

const SILENCE = 15000;
const AGAIN = 1500;

export class Follower {
  // tell() is called after every change
  constructor(tell) {
    this.tell = () => {
      this.version++;
      tell();
    };
    this.version = 0;
    this.whole = null; // the newest frame, without its curve
    this.rows = new Float64Array(5 * 1024);
    this.count = 0;
    this.curveRun = null;
    this.begun = 0; // rises whenever the curve begins again
    this.headers = null;
    this.online = "connecting";
  }

  // Connect with these headers, or connect again if they are others.
  start(headers) {
    const other = !this.headers || this.headers["X-Unspool-Token"] !== headers["X-Unspool-Token"];
    if (!other && this.online !== "refused") return;
    this.headers = headers;
    this.stop?.abort();
    this.run();
  }

  async run() {
    const stop = (this.stop = new AbortController());
    while (this.stop === stop) {
      const refused = await this.read(stop).catch(() => false);
      if (this.stop !== stop) return;
      this.say(refused ? "refused" : "gone");
      if (refused) return void (this.stop = null);
      await new Promise((done) => setTimeout(done, AGAIN));
    }
  }

  say(online) {
    if (online === this.online) return;
    this.online = online;
    this.tell();
  }

  // One connection; true if the server does not take the token.
  async read(stop) {
    const connection = new AbortController();
    stop.signal.addEventListener("abort", () => connection.abort());
    const response = await fetch("/api/stream", { headers: this.headers, signal: connection.signal, cache: "no-store" });
    if (!response.ok) return response.status === 401;
    const reader = response.body.getReader();
    const text = new TextDecoder();
    let left = "";
    let watch = 0;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => connection.abort(), SILENCE);
    };
    try {
      for (;;) {
        alive();
        const { done, value } = await reader.read();
        if (done) return false;
        left += text.decode(value, { stream: true });
        const events = left.split("\n\n");
        left = events.pop();
        for (const event of events) this.take(event);
      }
    } finally {
      clearTimeout(watch);
    }
  }

  take(event) {
    const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
    if (!data) return;
    const frame = JSON.parse(data);
    const curve = frame.curve;
    delete frame.curve;
    if (curve) this.append(curve);
    this.whole = frame;
    this.online = "live";
    this.tell();
  }

  append({ run, from, rows }) {
    const added = new Float64Array(Uint8Array.from(atob(rows.data), (letter) => letter.charCodeAt(0)).buffer);
    if (from === 0 || run !== this.curveRun) {
      this.begun++;
      this.curveRun = run;
      from = 0;
    }
    const end = 5 * from + added.length;
    if (end > this.rows.length) {
      const larger = new Float64Array(2 * end);
      larger.set(this.rows.subarray(0, 5 * from));
      this.rows = larger;
    }
    this.rows.set(added, 5 * from);
    this.count = end / 5;
  }
}
