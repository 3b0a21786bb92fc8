"""Run the engine's benchmarks one after the other: `make bench`."""

import subprocess
import sys
from pathlib import Path

for command in ("train_step --quick", "step", "growth", "memory", "patterns", "truncation"):
    print(f"── {command} ──", flush=True)
    name, *arguments = command.split()
    subprocess.run([sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments], check=True)
