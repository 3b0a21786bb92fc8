// Elements. No style attributes (the CSP refuses them): `style` sets properties through CSSOM.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, about, inside) {
  for (const [key, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key === "style") for (const [name, each] of Object.entries(value)) node.style.setProperty(name, each);
    else if (key === "value" || key === "checked") node[key] = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...inside.filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}

export const el = (name, about = {}, ...inside) => fill(document.createElement(name), about, inside);
export const svg = (name, about = {}, ...inside) => fill(document.createElementNS(SVG, name), about, inside);

const ICONS = {
  play: "M3 1.5v11l9.5-5.5z",
  pause: "M2.5 1.5h3.2v11H2.5zM8.3 1.5h3.2v11H8.3z",
  step: "M2 2v10l6-5zM9.4 2h2.4v10H9.4z",
  theme: "M7 1a6 6 0 1 0 0 12zM7 1v12a6 6 0 0 0 0-12z",
  more: "M2 4.5l5 5 5-5z",
  close: "M2.6 1.4 7 5.8l4.4-4.4 1.2 1.2L8.2 7l4.4 4.4-1.2 1.2L7 8.2l-4.4 4.4-1.2-1.2L5.8 7 1.4 2.6z",
};

export const icon = (name) => svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true", class: "icon" }, svg("path", { d: ICONS[name] }));
export const turnIcon = (node, name) => node.querySelector(".icon path").setAttribute("d", ICONS[name]);

// Set text only where it differs: a text node that is not replaced keeps a selection and costs no layout.
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A row of choices (radio buttons of one look): choices are [value, words].
let groups = 0;
export function chips({ label, choices, value, onpick }) {
  const name = `chips-${++groups}`;
  const set = el("fieldset", { class: "chips" }, el("legend", { class: "unseen", text: label }));
  for (const [each, words] of choices) {
    const input = el("input", { type: "radio", name, value: each, checked: each === value, onchange: () => onpick(each) });
    set.append(el("label", {}, input, words));
  }
  set.pick = (each) => {
    for (const input of set.querySelectorAll("input")) input.checked = input.value === String(each);
  };
  return set;
}

export function field(label, control, note) {
  control.id ||= `field-${++groups}`;
  return [el("label", { for: control.id, text: label }), note ? el("span", { class: "with-note" }, control, el("span", { class: "note", text: note })) : control];
}

export function select(choices, value, about = {}) {
  return el("select", about, ...choices.map(([each, words]) => {
    const option = el("option", { value: each, text: words });
    option.selected = each === value;
    return option;
  }));
}
