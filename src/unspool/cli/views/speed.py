"""The speed of a training as a terminal shows it: time left, tokens per second, and lasting changes of the plan."""

from dataclasses import dataclass

from unspool.training.events import RunConfig
from unspool.training.recipe import tokens_to_beat_ngrams

LARGE = 0.2
"""A change of the number of updates by this share is reported,"""
LASTING = 0.1
"""if it still holds after this share of the updates that were left."""


@dataclass
class Speed:
    """Follows the updates of a run.

    >>> speed = Speed(total=1000, tokens=1024)
    >>> speed.line(1, 10.0), speed.line(3, 10.5)
    ('', ' 249 s left      4,096 tokens/s')
    """

    total: int
    """How many updates there will be."""
    tokens: int
    """How many tokens an update reads."""
    stated: int = 0
    """The number of updates that was printed last."""
    begun: tuple[int, float] | None = None
    """Step and seconds of the first update: it allocates, and is not counted."""
    report_at: float | None = None
    """The update after which a change of the plan has lasted."""

    def __post_init__(self) -> None:
        self.stated = self.total

    def line(self, step: int, seconds: float) -> str:
        """Return the time left and the speed after an update; nothing until two updates have been timed."""
        self.begun = self.begun or (step, seconds)
        made, spent = step - self.begun[0], seconds - self.begun[1]
        if made < 2 or spent <= 0:
            return ""
        return (
            f"{spent / made * (self.total - step):4.0f} s left  {made * self.tokens / spent:9,.0f} tokens/s"
        )

    def change(self, step: int, total: int) -> None:
        """Take over another number of updates, decided after this one."""
        self.total = total
        large = abs(total - self.stated) >= LARGE * self.stated
        self.report_at = step + LASTING * (total - step) if large else None

    def lasting_change(self, step: int) -> str | None:
        """Return one line about a change of the plan that was large and has lasted; once."""
        if self.report_at is None or step < self.report_at:
            return None
        speed, before = ("slower" if self.total < self.stated else "faster"), self.stated
        self.stated, self.report_at = self.total, None
        return (
            f"this machine is {speed} than measured at the start: {self.total:,} updates fit into the time, "
            f"not {before:,}"
        )


def too_short_line(config: RunConfig, vocabulary: int, tokens: int, per_update: int) -> str:
    """Return a warning if the network will read too few tokens to predict better than n-grams; else nothing."""
    read, needed = config.fixed.steps * per_update, tokens_to_beat_ngrams(vocabulary, tokens)
    if read >= needed:
        return ""
    steps = -(-needed // per_update)
    more = (
        f"--steps {steps}" if "steps" in config.given else f"--minutes {config.minutes * needed / read:.2g}"
    )
    return (
        f"{read:,} tokens are too few: with this vocabulary, n-grams will predict better than the network; it needs about "
        f"{needed:,} ({more}); their mixture is better than both: unspool generate RUN --model mixture"
    )
