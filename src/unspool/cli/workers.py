"""Choose how many processes a command with many jobs starts."""

import sys

from unspool.cli.options import WorkerOptions
from unspool.kernels.native import kernel_info
from unspool.training.workers import MORE, Workers, joblib_is_installed

FEW = 8
"""Up to so many jobs are done one after the other, unless --workers is given."""


def workers_for(jobs: int, options: WorkerOptions) -> Workers:
    """Return the workers of a command; print a note if there could be more of them with joblib."""
    threads = kernel_info()["threads"] if jobs > FEW else 1
    count = min(threads, jobs) if options.workers is None else options.workers
    wanted = Workers(count, options.backend)
    if wanted.alone or joblib_is_installed():
        return wanted
    print(f"unspool: {MORE}", file=sys.stderr)
    return Workers()
