"""Images are sequences of rows or of pixels: arrays, files of arrays, and folders of image files."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from unspool.cli.main import app
from unspool.data.formats.labelled import read_labelled
from unspool.errors import FileError, InputError, MissingExtra
from unspool.tasks import SequenceClassifier, image_sequences

QUICK = ["--hidden", "4", "--steps", "3", "--validation", "0", "--json"]


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def pixels(n, h=4, w=5, c=3):
    return np.random.default_rng(0).integers(0, 256, (n, h, w, c)).astype(np.uint8)


def folder_of(place, images, ends=(".png",)):
    """Images in two folders, bright and dark, by turns."""
    for i, image in enumerate(images):
        path = place / ("bright", "dark")[i % 2] / f"{i}{ends[i % len(ends)]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.squeeze()).save(path)
    return place


def test_rows_and_pixels_of_an_image_are_the_steps():
    images = pixels(2)
    rows, single = image_sequences(images), image_sequences(images, by="pixels")
    assert rows.shape == (2, 4, 15) and single.shape == (2, 20, 3)
    assert (rows[1, 2] == images[1, 2].ravel()).all() and (single[1, 7] == images[1, 1, 2]).all()
    assert image_sequences(images[..., 0], by="pixels").shape == (2, 20, 1)
    with pytest.raises(InputError, match=r"images have shape \(4, 5\) .*expected numbers, \(n, h, w\)"):
        image_sequences(np.zeros((4, 5)))
    with pytest.raises(InputError, match=r"Images \(n, h, w, c\) become sequences by unspool.data.image_seq"):
        SequenceClassifier(hidden=4, steps=1).fit(images, ["a", "b"])


@pytest.mark.parametrize(
    ("c", "ends", "width"), [(3, (".png", ".bmp", ".ppm"), 15), (1, (".png", ".pgm"), 5)]
)
def test_a_folder_of_images_has_a_folder_a_class(c, ends, width, tmp_path):
    images = pixels(6, c=c)
    (tmp_path / "bright").mkdir()
    (tmp_path / "bright" / "notes.md").write_text("no image")
    found = read_labelled(folder_of(tmp_path, images, ends))
    assert found.labels == ["bright"] * 3 + ["dark"] * 3
    assert (np.stack(found.sequences) == image_sequences(images[[0, 2, 4, 1, 3, 5]])).all()
    assert found.sequences[0].shape == (4, width)
    assert read_labelled(tmp_path, by="pixels").sequences[0].shape == (20, c)


def test_classify_learns_from_images_and_predicts_folders_files_and_arrays_alike(tmp_path, capsys):
    images = np.concatenate([pixels(20) // 3, 255 - pixels(20) // 3])[np.arange(40).reshape(2, 20).T.ravel()]
    folder, out = folder_of(tmp_path / "images", images), tmp_path / "run"
    run("classify", "fit", folder, "--out", out, *QUICK, "--by", "pixels")
    assert json.loads(capsys.readouterr().out)["scores"]["classes"][0]["name"] == "bright"
    run("classify", "predict", out, folder, "--json")
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert len(answers) == 40
    np.save(tmp_path / "a.npy", images[::2])
    np.savez(tmp_path / "a.npz", images=images[::2], labels=["bright"] * 20)
    run("classify", "predict", out, tmp_path / "a.npy", "--json")
    bright = json.loads(capsys.readouterr().out)
    run("classify", "predict", out, tmp_path / "a.npz", "--json")
    same = json.loads(capsys.readouterr().out)
    assert same["answers"] == bright["answers"] and "scores" in same and "scores" not in bright
    by_name = sorted(range(0, 40, 2), key=str)
    assert [bright["answers"][i // 2] for i in by_name] == answers[:20]
    run("classify", "predict", out, folder / "dark" / "1.png", "--json")
    assert len(json.loads(capsys.readouterr().out)["answers"]) == 1


def test_a_fit_on_arrays_of_images_reads_rows_unless_told(tmp_path, capsys):
    path = tmp_path / "a.npz"
    np.savez(path, images=pixels(12)[..., 0], labels=np.array([[0], [1]] * 6))
    run("classify", "fit", path, "--out", tmp_path / "run", *QUICK)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["network"]["inputs"] == 5
    np.savez(path, values=pixels(12), labels=[0, 1] * 6)
    run("classify", "fit", path, "--out", tmp_path / "other", *QUICK)
    assert json.loads((tmp_path / "other" / "config.json").read_text())["network"]["inputs"] == 15


def test_images_that_do_not_go_together_are_refused_in_one_line(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "images", pixels(4))
    odd = folder / "dark" / "odd.png"
    Image.fromarray(pixels(1, h=3)[0]).save(odd)
    with pytest.raises(InputError, match=r"odd\.png: 5 × 3 pixels of 3 channels; expected 5 × 4 pixels"):
        read_labelled(folder)
    Image.fromarray(pixels(1, c=1)[0, :, :, 0]).save(odd)
    with pytest.raises(InputError, match=r"odd\.png: 5 × 4 pixels of 1 channel; expected 5 × 4 pixels of 3"):
        read_labelled(folder)
    odd.write_text("no image")
    with pytest.raises(InputError, match=r"odd\.png: not an image that Pillow can read"):
        read_labelled(folder)
    odd.write_bytes((folder / "dark" / "1.png").read_bytes()[:60])
    with pytest.raises(FileError, match=r"odd\.png: cannot be read as an image: .*"):
        read_labelled(folder)
    odd.unlink()
    for most in (15, 5):  # Pillow warns beyond its limit and refuses beyond twice of it
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
        with pytest.raises(InputError, match=rf"0\.png: more than {most} pixels, .*decompression bomb"):
            read_labelled(folder)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda place: (place / "Greek.txt").write_text("Adamou\n"), r"text files as Greek\.txt and folders of images"),
        (lambda place: np.save(place / "a.npy", pixels(4)), r"expected both arrays in one \.npz: np\.savez"),
        (lambda place: np.savez(place / "a.npz", images=pixels(4), lengths=[1]), "images have no lengths"),
        (lambda place: np.savez(place / "a.npz", values=[1.0], lengths=[1], labels=[1]), "by=rows is for images"),
        (lambda place: (place / "a.csv").write_text("text,label\na,b\n"), "by=rows is for images"),
    ],
)  # fmt: skip
def test_what_is_no_set_of_labelled_images_is_refused(make, line, tmp_path):
    folder_of(tmp_path, pixels(4))
    make(tmp_path)
    path = next((path for path in tmp_path.iterdir() if path.name.startswith("a.")), tmp_path)
    with pytest.raises(InputError, match=line):
        read_labelled(path, by="rows" if "by=" in line else None)


def test_images_without_pillow_name_the_extra(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, pixels(4))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"images need Pillow: pip install unspool\[images\]"):
        read_labelled(folder)
