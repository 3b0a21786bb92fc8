"""Run the engine's benchmarks one after the other: `make bench`."""

import subprocess
import sys
from pathlib import Path

for name in ("train_step", "step", "growth", "memory", "patterns", "truncation"):
    print(f"── {name} ──", flush=True)
    subprocess.run([sys.executable, str(Path(__file__).with_name(f"{name}.py"))], check=True)
