"""Choose how many processes a command with many jobs starts."""

import sys
from dataclasses import replace

from unspool.cli.options import WorkerOptions
from unspool.kernels.native import kernel_info
from unspool.training.workers import MORE, Workers, joblib_is_installed

FEW = 8
"""Up to so many jobs are done one after the other, unless --workers is given."""


def workers_for(jobs: int, options: WorkerOptions, few: int = FEW) -> Workers:
    """Return the workers of a command, by default one if there are few jobs; print a note if joblib is missing for more."""
    threads = kernel_info()["threads"] if jobs > few else 1
    asked = Workers(threads if options.workers is None else options.workers, options.backend)
    wanted = replace(asked, count=min(asked.count, jobs))
    if wanted.alone or joblib_is_installed():
        return wanted
    print(f"unspool: {MORE}", file=sys.stderr)
    return Workers()
