// One connection for all tabs of a browser (it allows six for one server). A tab gets the next frame when it has
// painted the last one, with all that is newer: nothing queues up.
import { Follower } from "./follower.js";

const tabs = new Set();
const follower = new Follower(() => tabs.forEach(serve));

function serve(tab) {
  if (!tab.ready || tab.sent === follower.version) return;
  const from = tab.begun === follower.begun ? tab.count : 0;
  const rows = follower.rows.slice(5 * from, 5 * follower.count);
  Object.assign(tab, { ready: false, sent: follower.version, begun: follower.begun, count: follower.count });
  tab.port.postMessage({ online: follower.online, whole: follower.whole, from, rows });
}

self.onconnect = ({ ports: [port] }) => {
  const tab = { port, ready: true, sent: 0, begun: -1, count: 0 };
  tabs.add(tab);
  port.onmessage = ({ data }) => {
    if (data.closed) return void tabs.delete(tab);
    if (data.headers) follower.start(data.headers);
    if (data.painted) tab.ready = true;
    serve(tab);
  };
  port.start();
};
