"""The command line: `main` runs one command and returns its exit code.

A command is one module in `unspool.cli.commands`, imported only when that command runs: `unspool --help` imports
neither the commands nor NumPy. Every failure is one line on standard error (`unspool.cli.failures`), never a traceback.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from cyclopts import App, CycloptsError
from cyclopts.help import format_usage
from rich.console import Console

from unspool import __version__
from unspool.cli import failures
from unspool.cli.commands import COMMANDS, help_of, import_path
from unspool.cli.config_file import note_former_names, read_config_file
from unspool.cli.convert import STRICT
from unspool.cli.interrupt import interrupt_normally
from unspool.cli.streams import settle, settle_environment
from unspool.cli.usage_errors import explain, refuse_absurd_numbers
from unspool.cli.wording import for_commands, note_options
from unspool.cluster.launch import launch_of
from unspool.errors import UnspoolError

KERNELS = "unspool.kernels.native"
LAUNCHED = "unspool.cli.launched"
"""Imports NumPy, which most commands need later or not at all."""


def _before_command(*_: object) -> None:
    """Do what follows the imports of a command: Ctrl-C as usual; UNSPOOL_THREADS and UNSPOOL_ISA."""
    interrupt_normally()
    if (kernels := sys.modules.get(KERNELS)) is not None:
        kernels.heed_environment()


class _App(App):
    """The application; its usage lines have the names of optional arguments, where cyclopts prints [ARGS]."""

    def help_print(self, tokens: Any = None, *, console: Console | None = None) -> None:
        """Print the help of the command that the tokens name."""
        chain, apps, _ = self.parse_commands(tokens)
        command = apps[-1]
        if command.default_command is not None:
            arguments = command.assemble_argument_collection()
            names = [
                f"[{each.name.lstrip('-')}]"
                for each in arguments
                if each.index is not None and not each.required
            ]
            usage = format_usage(self, chain, execution_path=apps).plain
            command.usage = usage.strip().replace("[ARGS]", " ".join(names).upper())
        super().help_print(tokens, console=console)


app = _App(
    name="unspool",
    help="Train, evaluate and inspect recurrent neural networks on a CPU.",
    version=f"unspool {__version__}",
    suppress_keyboard_interrupt=False,
    config=(_before_command, note_options, read_config_file, note_former_names, refuse_absurd_numbers),
    help_format="plaintext",  # <unk> and [default: …] are printed unchanged
    default_parameter=STRICT,
)
for _name in COMMANDS:
    app.command(import_path(_name), name=_name, help=help_of(_name))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print what the process would print.

    Without `argv`, the arguments are those of this process. With `argv`, the environment, the signal handlers and the
    hooks for exceptions and warnings are restored at the end, so that other code can call this function.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    unspool ...
    0
    """
    if argv is None:
        launch = launch_of(os.environ)
        if launch is None:
            return _exit_code(sys.argv[1:])
        return int(import_module(LAUNCHED).run_launched(launch, sys.argv[1:], _exit_code))
    with _process_restored():
        return _exit_code([str(each) for each in argv])


def _exit_code(tokens: list[str]) -> int:
    late = failures.collect_late(tokens)
    try:
        settle()
        settle_environment()
        run_command(tokens)
        if late:
            raise late[0]
        sys.stdout.flush()
        return 0
    except CycloptsError as error:
        return failures.report(explain(error), failures.USAGE)
    except UnspoolError as error:
        return failures.report(for_commands(str(error)), failures.USAGE)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Rich raises SystemExit for it
            return failures.report("", failures.PIPE)
        failures.discard_unwritten()
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        return failures.report(*failures.ending(error))


def run_command(tokens: list[str]) -> None:
    """Run the command of a command line; return if it succeeds."""
    try:
        # A new console for every call: it takes its width from the environment when it is made.
        app(tokens, exit_on_error=False, print_error=False, console=Console())
    except ImportError as error:  # cyclopts wraps the error of a command's own imports
        raise error.__cause__ or error from None
    except SystemExit as end:
        if end.code or isinstance(end.__context__, BrokenPipeError):
            raise


@contextmanager
def _process_restored() -> Iterator[None]:
    """Restore everything in the process that a command changes."""
    environment, hooks = dict(os.environ), (threading.excepthook, sys.unraisablehook)
    in_main = threading.current_thread() is threading.main_thread()
    signals = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    handlers = {number: signal.getsignal(number) for number in signals if number is not None and in_main}
    try:
        with warnings.catch_warnings():
            yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        threading.excepthook, sys.unraisablehook = hooks
        for number, handler in handlers.items():
            signal.signal(number, handler)
