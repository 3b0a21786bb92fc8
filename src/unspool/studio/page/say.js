// The one sentence on what is at the cursor, with the button that lets the view move by itself.
import { el, icon, turnIcon } from "./dom.js";
import { set, state } from "./state.js";
import { t } from "./words.js";

/* sayLine({play: whether there is a button, count: most lines the sentence takes}) → element with
     .show(nodes)   strings and elements, as rich() gives them
     .update()      the button's picture */
export function sayLine({ play = true } = {}) {
  const words = el("p");
  const button = play && el("button", { class: "go-time", onclick: () => set({ playing: !state.playing }) }, icon("play"));
  const made = el("div", { class: "say" }, button, words);
  let shown = "";
  made.show = (nodes) => {
    const key = nodes.map((each) => each.outerHTML ?? each).join("");
    if (key !== shown) words.replaceChildren(...nodes);
    shown = key;
  };
  made.update = () => {
    if (!button) return;
    turnIcon(button, state.playing ? "pause" : "play");
    button.setAttribute("aria-label", t(state.playing ? "common.pause" : "common.play"));
  };
  made.update();
  return made;
}

// A number or token inside the sentence.
export const strong = (text) => el("b", { text });
export const token = (text, here = false) => el("q", { text, class: here ? "here" : "" });
export const math = (text) => el("i", { class: "math", text });
