// One line that says what has just happened, and fades.
import { el } from "./dom.js";

const node = el("div", { class: "toast", role: "status" });
let fading = 0;

export function toast(text) {
  if (!node.isConnected) document.body.append(node);
  requestAnimationFrame(() => {
    node.textContent = text;
    node.classList.add("on");
  });
  clearTimeout(fading);
  fading = setTimeout(() => node.classList.remove("on"), 2500 + 40 * text.length);
}
