"""The command line: one module a command, imported only when that command runs.

What a user did wrong is one line on standard error and exit code 2; Ctrl-C is a line and 130; a reader that
has seen enough (``unspool stats … | head``) is no error at all. Anything else is our fault and keeps its
traceback.
"""

import errno
import io
import os
import sys
from typing import NoReturn

from cyclopts import App, CoercionError, CycloptsError

from unspool import __version__
from unspool.cli.convert import STRICT
from unspool.cli.wording import for_commands
from unspool.errors import UnspoolError
from unspool.kernel.ops import heed_environment

app = App(
    name="unspool",
    help="Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside.",
    version=f"unspool {__version__}",
    suppress_keyboard_interrupt=False,
    default_parameter=STRICT,
)
app.command(
    "unspool.cli.demo:demo",
    name="demo",
    help="The whole walk in about a minute: text, tokens, minibatches, training, baselines, samples.",
)
app.command(
    "unspool.cli.train:train",
    name="train",
    help="Train a language model on your text, in minutes, and keep it in a run.",
)
app.command(
    "unspool.cli.resume:resume",
    name="resume",
    help="Go on with a run that was stopped, to the same bits as if it never had been.",
)
app.command(
    "unspool.cli.evaluate:evaluate_command",
    name="evaluate",
    help="Judge a model by a text: nats, perplexity, bits per character and byte, beside n-grams.",
)
app.command(
    "unspool.cli.generate:generate",
    name="generate",
    help="Let a model write on from a prompt, as it comes.",
)
app.command(
    "unspool.cli.compress:compress_command",
    name="compress",
    help="A file in as many bits as the model promises, beside gzip, bzip2 and xz.",
)
app.command(
    "unspool.cli.decompress:decompress_command",
    name="decompress",
    help="A compressed file back, to the byte.",
)
app.command(
    "unspool.cli.classify:app",
    name="classify",
    help="A sequence to a class: learn it from a table, a folder, .npz or .ts, and use it.",
)
app.command(
    "unspool.cli.regress:app",
    name="regress",
    help="Predict numbers from a sequence or a vector: a table, .npz or .ts.",
)
app.command(
    "unspool.cli.tag:app",
    name="tag",
    help="A label for every step of a sequence, from columns or a table.",
)
app.command(
    "unspool.cli.translate:app",
    name="translate",
    help="A text to a text of another length, learned from pairs.",
)
app.command(
    "unspool.cli.generate_from:app",
    name="generate-from",
    help="Generate text from a class or a vector, learned from examples.",
)
app.command(
    "unspool.cli.forecast:app",
    name="forecast",
    help="What a series of numbers does next, with intervals, beside simple baselines.",
)
app.command(
    "unspool.cli.stats:stats",
    name="stats",
    help="Count a text: sizes, frequent tokens, Zipf's law, how well n-grams predict it.",
)
app.command(
    "unspool.cli.inspect:inspect_command",
    name="inspect",
    help="Look inside a model while it reads a text: a page with its surprise, units, states, gradients, graph.",
)
app.command(
    "unspool.cli.graph:graph",
    name="graph",
    help="Draw a recurrent network folded and unfolded, or write it as JSON, DOT or Mermaid.",
)
app.command(
    "unspool.cli.check_gradients:check_command",
    name="check-gradients",
    help="Prove the gradients of a model: hand formulas, finite differences, PyTorch, side by side.",
)
app.command(
    "unspool.cli.turing:turing",
    name="turing",
    help="Compile a Turing machine or an automaton into a recurrent network, and run both exactly, side by side.",
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows a question mark
    try:
        heed_environment()
        app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _stop(f"{_what_is_wrong(error)}; see {_help_of(error)}", 2)
    except UnspoolError as error:
        _stop(for_commands(str(error)), 2)
    except KeyboardInterrupt:
        _stop("stopped", 130)
    except BrokenPipeError:
        _leave_the_pipe()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich has met it first
            sys.exit(141)
        raise
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _stop("the output cannot be written: no space left", 2)
    finally:
        _flush()


def _what_is_wrong(error: CycloptsError) -> str:
    # A validator's own words say what is wrong; around them stands the whole list that was given.
    own = getattr(error, "exception_message", "")
    line = " ".join((own or str(error)).split()).rstrip(".")
    if isinstance(error, CoercionError) and error.msg and error.token and error.token.keyword is None:
        return f"{error.argument.name if error.argument else 'a value'}: {line}"
    return line[:1].lower() + line[1:]


def _help_of(error: CycloptsError) -> str:
    return " ".join(["unspool", *(error.command_chain or ()), "--help"])


def _stop(line: str, code: int) -> NoReturn:
    print(f"unspool: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(code)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_the_pipe()
    except OSError:  # a full disk: said already, or said now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _stop("the output cannot be written: no space left", 2)


def _leave_the_pipe() -> NoReturn:
    """Write what is left to nowhere: the interpreter flushes once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)
