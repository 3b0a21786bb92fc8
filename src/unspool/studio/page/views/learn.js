// Learn: the curves crossing the n-gram lines, the gradient norm, the pace, what the model writes.
import { lineChart } from "../charts/lines.js";
import { panel } from "../charts/panel.js";
import { el, put } from "../dom.js";
import { duration, figures, fixed, glyph, grouped } from "../format.js";
import { sayLine, strong } from "../say.js";
import { currentRun, set, state, updateShown } from "../state.js";
import { lastBefore, lossRange } from "../strip.js";
import { rich, t } from "../words.js";

const row = (i, column) => state.curve.rows[5 * i + column];
const nats = (x) => fixed(x, 3);

function pick(x) {
  const run = currentRun();
  if (!run) return;
  const to = Math.max(run.first, Math.round(x));
  set({ u: to >= run.step ? null : to });
}

function rank(run, valid) {
  const grams = (run.baselines ?? []).filter((each) => each.nats !== null).sort((a, b) => a.nats - b.nats);
  if (!grams.length) return "";
  const passed = valid === null ? undefined : grams.find((each) => valid < each.nats);
  if (passed === grams[0]) return t("learn.rankAll", { name: passed.name, nats: nats(passed.nats) });
  return passed ? t("learn.rankSome", { name: passed.name, nats: nats(passed.nats) }) : t("learn.rankNone", { name: grams[0].name, nats: nats(grams[0].nats) });
}

const key = (kind, words) => el("span", { class: `key key-${kind}`, text: words });

function lossPanel() {
  const chart = lineChart({ label: t("learn.curvesLabel"), xTitle: t("learn.updates"), yTitle: t("learn.loss"), onpick: pick });
  const made = panel({
    name: "curves", title: t("learn.curves"), figure: [chart],
    controls: [key("main", t("learn.validKey")), key("soft", t("learn.trainKey")), key("gram", t("learn.gramKey"))],
    csv: { route: () => `/api/learn?run=${state.current}`, name: "curve" },
    table: () => ({ caption: t("learn.tableCurve"), head: [t("learn.updates"), t("learn.loss"), t("learn.train"), t("learn.normTitle"), t("learn.seconds")], count: state.curve.count,
      on: Math.max(0, updateShown() - (state.curve.count ? row(0, 0) : 0)), row: (i) => [row(i, 0), nats(row(i, 1)), nats(row(i, 2)), figures(row(i, 3), 3), fixed(row(i, 4), 2)].map(String) }),
  });
  made.draw = (run) => {
    const { count } = state.curve, points = state.points;
    chart.show({
      x: [0, run?.steps || 1], y: lossRange(), lines: (run?.baselines ?? []).filter((each) => each.nats !== null).map((each) => ({ name: `${each.name} ${fixed(each.nats, 2)}`, value: each.nats })),
      curves: [
        { kind: "soft", count, xs: (i) => row(i, 0), ys: (i) => row(i, 2) },
        { kind: "main", count: points.length, xs: (i) => points[i][0], ys: (i) => points[i][2] ?? NaN, dots: true, exact: true },
      ],
    });
    chart.cursor(run ? updateShown() : null);
  };
  return made;
}

function normPanel() {
  const chart = lineChart({ label: t("learn.normLabel"), yTitle: t("learn.normTitle"), log: true, onpick: pick });
  const made = panel({ name: "norm", title: t("learn.norm"), figure: [chart], csv: { route: () => `/api/learn?run=${state.current}`, name: "curve" },
    table: () => ({ caption: t("learn.tableCurve"), head: [t("learn.updates"), t("learn.normTitle")], count: state.curve.count, on: updateShown(), row: (i) => [String(row(i, 0)), figures(row(i, 3), 3)] }) });
  made.draw = (run) => {
    const { count } = state.curve;
    let low = Infinity, high = 0;
    for (let i = 0; i < count; i++) {
      const value = row(i, 3);
      if (value > 0 && value < low) low = value;
      if (value > high && value < Infinity) high = value;
    }
    if (run?.clip) high = Math.max(high, run.clip);
    const ends = low < Infinity ? [Math.min(low / 1.2, high / 12), high * 1.3] : [0.1, 10];
    chart.show({ x: [0, run?.steps || 1], y: ends, lines: run?.clip ? [{ name: t("learn.clipped", { clip: figures(run.clip) }), value: run.clip }] : [], curves: [{ kind: "soft", count, xs: (i) => row(i, 0), ys: (i) => (row(i, 3) > 0 ? row(i, 3) : NaN) }] });
    chart.cursor(run ? updateShown() : null);
  };
  return made;
}

function pacePanel() {
  const names = ["rate", "left", "spent", "best", "score", "tokens", "vocabulary", "parameters", "recipe", "optimiser"];
  const values = Object.fromEntries(names.map((name) => [name, el("dd")]));
  const command = el("code", { tabindex: "0" });
  const made = el("section", { class: "panel pace", "aria-labelledby": "panel-pace" }, el("div", { class: "head" }, el("h2", { id: "panel-pace", text: t("learn.pace") })),
    el("dl", { class: "facts" }, ...names.map((name) => el("div", { class: name }, el("dt", { text: t(`learn.${name}`) }), values[name]))),
    el("p", { class: "note", text: t("learn.command") }), command);
  made.draw = (run) => {
    const { count } = state.curve;
    put(values.rate, run?.rate ? grouped(run.rate) : "–");
    put(values.left, duration(run?.left));
    put(values.spent, count ? duration(row(count - 1, 4)) : "–");
    put(values.best, run?.best ? `${nats(run.best.valid)} · ${t("learn.atUpdate", { u: grouped(run.best.update) })}` : "–");
    put(values.score, run?.scores ? `${nats(run.scores.nats)} · ${t("learn.perplexity")} ${fixed(run.scores.perplexity, 2)}` : "–");
    put(values.tokens, run?.tokens ? [run.tokens.train, run.tokens.valid, run.tokens.test].map(grouped).join(" · ") : "–");
    put(values.vocabulary, run?.vocabulary ? `${grouped(run.vocabulary)} (${run.token_kind})` : "–");
    put(values.parameters, grouped(run?.parameters));
    put(values.recipe, run?.batch_size ? `${run.batch_size} · ${run.window} · ${run.bptt}` : "–");
    put(values.optimiser, run?.optimiser ? `${run.optimiser} · ${run.schedule}` : "–");
    put(command, run?.command ?? run?.resume ?? "–");
  };
  return made;
}

function samplesPanel() {
  const list = el("ol", { class: "samples" });
  const none = el("p", { class: "note", text: t("learn.samplesNone") });
  const made = panel({ name: "samples", title: t("learn.samples"), figure: [none, list],
    table: () => ({ caption: t("learn.sampleTable"), head: [t("learn.updates"), t("learn.sample")], count: state.samples.length, row: (i) => [String(state.samples[i][0]), Array.from(state.samples[i][1], glyph).join("")] }) });
  made.draw = () => {
    const u = updateShown();
    none.hidden = state.samples.length > 0;
    const before = state.samples.filter(([at]) => at <= u);
    list.replaceChildren(...(before.length ? before : state.samples.slice(0, 1)).slice(-6).reverse().map(([at, text]) =>
      el("li", {}, el("span", { class: "note", text: t("learn.sampleAt", { u: grouped(at) }) }), el("p", { class: "sample", dir: "auto", text: visible(text) }))));
  };
  return made;
}

// A sample as it is, its lines kept, other control characters as signs.
const visible = (text) => text.split("\n").map((line) => Array.from(line, (each) => (each === " " ? each : glyph(each))).join("")).join("\n");

export const view = {
  name: "learn",
  mount(root) {
    const say = sayLine({ play: false });
    const panels = [lossPanel(), normPanel(), pacePanel(), samplesPanel()];
    root.append(say, ...panels);
    return {
      update(changed) {
        const run = currentRun();
        const u = updateShown();
        const now = lastBefore(u);
        if (!run || run.status === "preparing") say.show([t(run ? "learn.preparing" : state.online === "live" ? "learn.none" : "common.connecting")]);
        else if (!run.step) say.show([t("learn.none")]);
        else say.show(rich("learn.says", { u: strong(grouped(u)), n: grouped(run.steps), train: strong(nats(now.train)), valid: strong(nats(now.valid)), rank: rank(run, now.valid) }));
        if (!["runs", "current", "curve", "points", "samples", "u", "online"].some((each) => changed.has(each))) return;
        for (const each of panels) {
          each.draw(run);
          each.refresh?.();
        }
      },
    };
  },
};
