"""Charts of the memory of a network: influence by lag, and the bias of a truncated gradient."""

from __future__ import annotations

from unspool.inspect.memory import FRACTION, MemoryReport
from unspool.inspect.page.axes import Axes
from unspool.plots.svg import Canvas

WIDTH, HEIGHT = 500.0, 330.0
LAYERS = ("blue", "purple", "green", "gold", "red")


def influence_chart(seen: MemoryReport) -> Canvas:
    """Draw ‖dh(t)/dh(t-k)‖ against k, for each layer and for an untrained network."""
    canvas = Canvas(WIDTH, HEIGHT, "The influence of the state, by lag")
    every = [value for each in (*seen.trained, seen.fresh) for value in each.norm]
    low = max(min(min(every), FRACTION / 3), 1e-12)
    farthest = seen.fresh.lags[-1]
    axes = Axes(
        canvas, (52, 34, WIDTH - 70, HEIGHT - 84), (0, farthest), (low, max(max(every), 1.5)), log_y=True
    )
    axes.frame("lag k, steps", "‖dh(t)/dh(t−k)‖, largest singular value")
    threshold = axes.y(FRACTION)
    canvas.line(52, threshold, WIDTH - 18, threshold, class_="axis", stroke_dasharray="5 4")
    canvas.text(58, threshold - 5, "a hundredth", class_="soft", font_size=11)
    axes.line(seen.fresh.lags, seen.fresh.norm, "soft", stroke_width=1.6, stroke_dasharray="2 3")
    for i, each in enumerate(seen.trained):
        axes.line(each.lags, each.norm, LAYERS[i % len(LAYERS)], stroke_width=2.2, stroke_linejoin="round")
    names = [("untrained", "soft")]
    for i, reach in enumerate(seen.horizons):
        colour = LAYERS[i % len(LAYERS)]
        names.insert(i, ("trained" if len(seen.trained) == 1 else f"layer {i + 1}", colour))
        if reach is not None:
            canvas.tag("circle", cx=axes.x(reach), cy=threshold, r=5, style=f"fill:var(--{colour})")
            end = reach > 0.7 * farthest
            canvas.text(axes.x(reach) + (-8 if end else 8), threshold + 16, f"memory length {reach}", text_anchor="end" if end else "start", font_size=12, class_="halo")  # fmt: skip
    _key(canvas, names)
    return canvas


def bias_chart(seen: MemoryReport) -> Canvas:
    """Draw the contribution of each lag to ∇W (or ∇U) as bars, and the bias of a gradient truncated after K steps as a line."""
    canvas = Canvas(WIDTH, HEIGHT, "What a truncated gradient misses")
    contributions = [
        sum(seen.by_lag.norms[name][lag] for name in seen.by_lag.norms)
        for lag in range(len(next(iter(seen.by_lag.norms.values()))))
    ]
    total = sum(contributions) or 1.0
    farthest = len(contributions) - 1
    axes = Axes(canvas, (52, 34, WIDTH - 70, HEIGHT - 84), (0, farthest), (0.0, 1.0))
    axes.frame("lag k, or steps looked back K", "share")
    wide = max(0.8, 0.8 * (WIDTH - 70) / len(contributions))
    most = max(contributions) / total or 1.0
    for lag, contribution in enumerate(contributions):
        top = axes.y(contribution / total / most)
        canvas.tag("rect", x=axes.x(lag) - wide / 2 + (wide / 2 if not lag else 0), y=top, width=wide, height=axes.y(0) - top, style="fill:var(--orange)", fill_opacity=0.55)  # fmt: skip
    bias = seen.by_lag.bias
    axes.line(range(len(bias)), bias, "blue", stroke_width=2.2, stroke_linejoin="round")
    for i, (allowed, steps) in enumerate(seen.advice.items()):
        if steps is not None:
            x, y, top = axes.x(steps), axes.y(bias[steps]), axes.y(0.5 - 0.09 * i)
            canvas.line(x, y, x, top, class_="axis")
            canvas.tag("circle", cx=x, cy=y, r=4.5, style="fill:var(--blue)")
            canvas.text(x + 5, top + 5, f"{allowed:.0%}: K = {steps}", font_size=12, class_="halo")
    _key(
        canvas,
        [
            ("bias(K), what is missed", "blue"),
            (f"‖G(k)‖ of ∇{seen.by_lag.letter}, scaled: the largest is {most:.0%}", "orange"),
        ],
    )
    return canvas


def _key(canvas: Canvas, names: list[tuple[str, str]]) -> None:
    for i, (name, colour) in enumerate(names):
        y = 50 + 18 * i
        canvas.line(WIDTH - 46, y - 4, WIDTH - 20, y - 4, style=f"stroke:var(--{colour})", stroke_width=3)
        canvas.text(WIDTH - 52, y, name, text_anchor="end", font_size=12, class_="halo")


def advice(back: MemoryReport) -> str:
    """Return, as HTML, the memory horizon and a recommended number of steps for truncated BPTT."""
    farthest = back.fresh.lags[-1]

    def reach(steps: int | None) -> str:
        return f"more than {farthest} steps" if steps is None else f"{steps} steps"

    layers = ", ".join(reach(each) for each in back.horizons)
    horizon = f"<b>Memory length</b>, the lag beyond which the influence stays below 1 %: {layers} (untrained: {reach(back.fresh_horizon)}). "
    enough = {bias: steps for bias, steps in back.advice.items() if steps is not None}
    if not enough:
        return (
            horizon
            + f"<b>Advice</b>: backpropagate through more than {farthest} steps, or in full (--bptt full)."
        )
    bias = 0.05 if 0.05 in enough else max(enough)
    others = "; ".join(f"{steps} for {each:.0%}" for each, steps in enough.items() if each != bias)
    return (
        horizon + f"<b>Advice</b>: backpropagation through {enough[bias]} steps has a bias of at most {bias:.0%}"
        + (f" ({others})" if others else "") + f": <code>--bptt truncated:{enough[bias]}</code>."
    )  # fmt: skip
