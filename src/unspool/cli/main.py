"""The command line: one module per command, imported only when that command runs.

Every failure is one line on standard error and an exit code (`unspool.cli.failures`); no traceback is ever printed.
"""

import sys

from cyclopts import App, CycloptsError

from unspool import __version__
from unspool.cli import failures
from unspool.cli.config_file import note_former_names, read_config_file
from unspool.cli.convert import STRICT
from unspool.cli.streams import settle, settle_environment
from unspool.cli.usage_errors import explain, refuse_absurd_numbers
from unspool.cli.wording import for_commands
from unspool.errors import UnspoolError
from unspool.kernels.native import heed_environment

app = App(
    name="unspool",
    help="Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside.",
    version=f"unspool {__version__}",
    suppress_keyboard_interrupt=False,
    config=[read_config_file, note_former_names, refuse_absurd_numbers],
    help_format="plaintext",  # <unk> and [default: …] are printed as they are written
    default_parameter=STRICT,
)
app.command(
    "unspool.cli.commands.demo:demo",
    name="demo",
    help="The whole walk in about a minute: text, tokens, minibatches, training, baselines, samples.",
)
app.command(
    "unspool.cli.commands.train:train",
    name="train",
    help="Train a language model on your text, in minutes, and keep it in a run.",
)
app.command(
    "unspool.cli.commands.resume:resume",
    name="resume",
    help="Go on with a run that was stopped, to the same bits as if it never had been.",
)
app.command(
    "unspool.cli.commands.evaluate:evaluate_command",
    name="evaluate",
    help="Judge a model by a text: nats, perplexity, bits per character and byte, beside n-grams.",
)
app.command(
    "unspool.cli.commands.generate:generate",
    name="generate",
    help="Let a model write on from a prompt, as it comes.",
)
app.command(
    "unspool.cli.commands.compress:compress_command",
    name="compress",
    help="A file in as many bits as the model promises, beside gzip, bzip2 and xz.",
)
app.command(
    "unspool.cli.commands.decompress:decompress_command",
    name="decompress",
    help="A compressed file back, to the byte.",
)
app.command(
    "unspool.cli.commands.classify:app",
    name="classify",
    help="A sequence to a class: learn it from a table, a folder, .npz or .ts, and use it.",
)
app.command(
    "unspool.cli.commands.regress:app",
    name="regress",
    help="Predict numbers from a sequence or a vector: a table, .npz or .ts.",
)
app.command(
    "unspool.cli.commands.tag:app",
    name="tag",
    help="A label for every step of a sequence, from columns or a table.",
)
app.command(
    "unspool.cli.commands.translate:app",
    name="translate",
    help="A text to a text of another length, learned from pairs.",
)
app.command(
    "unspool.cli.commands.generate_from:app",
    name="generate-from",
    help="Generate text from a class or a vector, learned from examples.",
)
app.command(
    "unspool.cli.commands.forecast:app",
    name="forecast",
    help="What a series of numbers does next, with intervals, beside simple baselines.",
)
app.command(
    "unspool.cli.commands.stats:stats",
    name="stats",
    help="Count a text: sizes, frequent tokens, Zipf's law, how well n-grams predict it.",
)
app.command(
    "unspool.cli.commands.inspect:inspect_command",
    name="inspect",
    help="Look inside a model while it reads a text: a page with its surprise, units, states, gradients, graph.",
)
app.command(
    "unspool.cli.commands.graph:graph",
    name="graph",
    help="Draw a recurrent network folded and unfolded, or write it as JSON, DOT or Mermaid.",
)
app.command(
    "unspool.cli.commands.check_gradients:check_command",
    name="check-gradients",
    help="Prove the gradients of a model: hand formulas, finite differences, PyTorch, side by side.",
)
app.command(
    "unspool.cli.commands.turing:turing",
    name="turing",
    help="Compile a Turing machine or an automaton into a recurrent network, and run both exactly, side by side.",
)


def main() -> None:
    """Run the command line; every way it ends is an exit code and at most one line on standard error."""
    late = failures.collect_late()
    try:
        settle()
        settle_environment()
        heed_environment()
        run_command()
        if late:
            raise late[0]
        sys.stdout.flush()
        sys.exit(0)
    except CycloptsError as error:
        failures.leave(explain(error), failures.USAGE)
    except UnspoolError as error:
        failures.leave(for_commands(str(error)), failures.USAGE)
    except SystemExit as end:
        pipe = isinstance(end.__context__, BrokenPipeError)  # Rich turns it into an exit of its own
        failures.leave("", failures.PIPE) if pipe else failures.discard_unwritten()
        raise
    except BaseException as error:
        failures.leave(*failures.ending(error))


def run_command(tokens: list[str] | None = None) -> None:
    """Run the command of a command line, by default that of this process; return where it ends well."""
    given = [] if tokens is None else [tokens]
    try:
        app(*given, exit_on_error=False, print_error=False)
    except SystemExit as end:
        if end.code or isinstance(end.__context__, BrokenPipeError):
            raise
