"""Classify images as sequences: the 8×8 digits of scikit-learn, one pixel per step, with the prediction after each pixel.

    python examples/digits.py [--out digits.png] [--epochs 60]

Needs scikit-learn for the images and matplotlib for the plot. Pixels are read row by row; other orders, rows instead of
pixels, or several channels per pixel are other shapes of the same array:

    pixels    (n, 64, 1)     rows    (n, 8, 8)     colours    (n, 64, 3)     any order    x[:, order]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from unspool import SequenceClassifier, draw_per_step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("digits.png"))
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    x, y = load_digits(return_X_y=True)
    x, test, y, truth = train_test_split(x, y, test_size=0.2, stratify=y, random_state=0)
    model = SequenceClassifier(
        hidden=96, dropout=0.3, recurrent_dropout=0.3, chrono_steps=64, epochs=options.epochs, batch_size=25,
        learning_rate=4e-3,
    )  # fmt: skip
    for report in model.fit_iter(x, y):
        if report.step % (report.steps // 10) == 0:
            print(f"update {report.step:,} of {report.steps:,}, loss {report.train:.4f}")
    print(f"{len(test)} pictures held out, pixel by pixel: accuracy {model.score(test, truth):.4f}")
    shown = [int(np.flatnonzero(truth == digit)[0]) for digit in (0, 3, 7, 9)]
    steps = model.predict_proba_steps(test[shown])
    draw_per_step([test[i].reshape(8, 8) for i in shown], steps, [str(k) for k in range(10)], options.out)
    print(f"drawn into {options.out}")


if __name__ == "__main__":
    main()
