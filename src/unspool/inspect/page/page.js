"use strict";
// What a report does when it is pointed at: one cursor for the text, the curve and the path of the state.
const data = JSON.parse(document.getElementById("data").textContent);
const text = document.getElementById("text-tokens");
const tokens = [...text.children].filter((e) => e.tagName === "S");
const card = document.getElementById("card");
const curve = document.querySelector("#surprise svg");
const path = document.querySelector("#path svg");
const modes = [...document.querySelectorAll(".modes button")];
let mode = -1; // the surprise; otherwise a unit
let now = -1;

function element(name, inside, className) {
  const made = document.createElement(name);
  if (inside !== undefined) made.textContent = inside;
  if (className) made.className = className;
  return made;
}

function colour(i) {
  if (mode < 0) {
    const s = data.surprise[i];
    return s === null ? "transparent" : `rgba(194,52,77,${(0.75 * Math.min(1, s / data.most)).toFixed(2)})`;
  }
  const unit = data.units[mode];
  const v = Math.max(-1, Math.min(1, (unit.values[i] / 100 - unit.middle) / unit.half));
  return `rgba(${v > 0 ? "222,96,16" : "31,111,180"},${(0.9 * Math.abs(v)).toFixed(2)})`;
}

function paint(which) {
  mode = which;
  modes.forEach((button, i) => button.setAttribute("aria-pressed", String(i - 1 === which)));
  tokens.forEach((token, i) => token.style.setProperty("--c", colour(i)));
  const unit = data.units[which];
  document.getElementById("low").textContent = unit ? (unit.middle - unit.half).toFixed(2) : "0";
  document.getElementById("high").textContent = unit ? (unit.middle + unit.half).toFixed(2) : data.most.toFixed(1) + " nats";
  document.getElementById("ramp").className = "ramp " + (unit ? "two" : "one");
  document.getElementById("what").textContent = unit ? unit.label : "surprise −log p of each token";
}

function row(candidate) {
  const [piece, share, hit] = candidate;
  const made = element("tr", undefined, hit ? "hit" : "");
  const bar = element("td");
  const inside = element("span");
  inside.style.width = Math.max(1, 100 * share) + "%";
  bar.append(inside);
  made.append(element("td", piece), bar, element("td", share >= 0.0995 ? (100 * share).toFixed(0) + " %" : (100 * share).toFixed(1) + " %"));
  return made;
}

function tell(i) {
  card.textContent = "";
  card.append(element("b", data.shown[i]), element("span", `  t = ${i + 1}`, "soft"));
  const s = data.surprise[i];
  card.append(element("div", s === null ? "the first token: nothing was expected" : `p = ${Math.exp(-s).toPrecision(2)}, surprise ${s.toFixed(2)} nats`, "soft"));
  if (mode >= 0) card.append(element("div", `activation ${(data.units[mode].values[i] / 100).toFixed(2)}`, "soft"));
  const table = element("table");
  data.expected[i].forEach((candidate) => table.append(row(candidate)));
  card.append(table);
}

function place(i) {
  const box = tokens[i].getBoundingClientRect();
  const high = card.offsetHeight;
  const top = box.bottom + 8 + high > innerHeight ? box.top - high - 8 : box.bottom + 8;
  card.style.left = Math.max(8, Math.min(innerWidth - 250, box.left - 20)) + "px";
  card.style.top = Math.max(8, top) + "px";
}

function go(i, pointed) {
  if (i < 0 || i >= tokens.length) return;
  if (now >= 0) tokens[now].classList.remove("on");
  now = i;
  tokens[i].classList.add("on");
  const x = 44 + ((i) / Math.max(1, tokens.length - 1)) * (curve.viewBox.baseVal.width - 60);
  const cursor = curve.querySelector(".cursor");
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  cursor.setAttribute("stroke-opacity", 1);
  const from = Math.max(0, i - 12);
  const way = path.querySelector(".way");
  way.setAttribute("d", "M" + data.places.slice(from, i + 1).map((p) => p.join(" ")).join("L"));
  const dot = path.querySelector(".now");
  dot.setAttribute("cx", data.places[i][0]);
  dot.setAttribute("cy", data.places[i][1]);
  document.getElementById("read").textContent = data.shown.slice(Math.max(0, i - 60), i + 1).join("");
  if (pointed) {
    tell(i);
    place(i);
  }
  card.classList.toggle("on", Boolean(pointed));
}

text.addEventListener("pointerover", (event) => {
  const i = tokens.indexOf(event.target);
  if (i >= 0) go(i, true);
});
text.addEventListener("pointerleave", () => card.classList.remove("on"));
text.addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by) {
    event.preventDefault();
    go(now + by, true);
  }
});
curve.addEventListener("pointermove", (event) => {
  const box = curve.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * curve.viewBox.baseVal.width;
  go(Math.round(((x - 44) / (curve.viewBox.baseVal.width - 60)) * (tokens.length - 1)), false);
});
modes.forEach((button, i) => button.addEventListener("click", () => paint(i - 1)));

let playing = 0;
const play = document.getElementById("play");
play.addEventListener("click", () => {
  if (playing) {
    clearInterval(playing);
    playing = 0;
    play.textContent = "▶ read";
    return;
  }
  play.textContent = "❚❚ pause";
  playing = setInterval(() => go((now + 1) % tokens.length, false), 90);
});

document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() === data.dark;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
paint(-1);
