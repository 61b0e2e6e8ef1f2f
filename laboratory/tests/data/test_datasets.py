"""The file formats, against files written byte by byte here."""

import gzip
import struct

import numpy as np
import pytest

from generic_adam.errors import DataError
from generic_adam_laboratory.data.datasets import (
    CHARACTERS,
    Dataset,
    cache_directory,
    load,
    read_cifar100,
    read_idx,
    standard_library,
)


def idx(array: np.ndarray, type_code: int = 8) -> bytes:
    header = struct.pack(">HBB", 0, type_code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 28, 28)).astype(np.uint8)


@pytest.mark.parametrize("compressed", [False, True])
def test_idx_reads_back_what_was_written(tmp_path, images, compressed):
    path = tmp_path / ("x.gz" if compressed else "x")
    path.write_bytes(gzip.compress(idx(images)) if compressed else idx(images))
    np.testing.assert_array_equal(read_idx(path, 3), images)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\x00\x00\x08", "not an IDX file"),
        (b"\x00\x00\x08\x00", "not an IDX file"),
        (b"\x01\x00\x08\x01\x00\x00\x00\x01\x05", "not an IDX file"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01\x05", "not an IDX file of unsigned bytes with 1 axes"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02\x05", "1 values, but the header says 2"),
        (b"\x00\x00\x08\x01\xff\xff\xff\xff\x05", "1 values, but the header says"),
        (b"\x00\x00\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff\x05", "with 1 axes"),
    ],
)
def test_a_damaged_idx_file_is_named_in_one_line(tmp_path, content, message):
    path = tmp_path / "labels"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_idx(path, 1)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_truncated_gzip_file_is_named(tmp_path, images):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx(images))[:-20])
    with pytest.raises(DataError, match=r"x\.gz: damaged gzip file"):
        read_idx(path, 3)


def cifar_record(coarse: int, fine: int, planes: np.ndarray) -> bytes:
    return bytes([coarse, fine]) + planes.astype(np.uint8).tobytes()


def test_cifar_planes_become_channels_last_and_fine_labels_are_taken(tmp_path):
    planes = np.random.default_rng(1).integers(0, 256, (2, 3, 32, 32)).astype(np.uint8)
    path = tmp_path / "train.bin"
    path.write_bytes(cifar_record(3, 42, planes[0]) + cifar_record(19, 99, planes[1]))
    images, labels = read_cifar100(path)
    assert labels.tolist() == [42, 99]
    assert images.shape == (2, 32, 32, 3)
    assert images[1, 5, 7].tolist() == planes[1, :, 5, 7].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes, expected a positive multiple"),
        (b"\x00" * 3073, "3,073 bytes, expected a positive multiple"),
    ],
)
def test_a_damaged_cifar_file_is_named(tmp_path, content, message):
    path = tmp_path / "test.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_cifar100(path)


def write_mnist(folder, images):
    folder.mkdir(parents=True)
    labels = np.arange(len(images)) % 10
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def test_mnist_is_found_in_its_folder_or_in_the_one_above(tmp_path, images, monkeypatch):
    write_mnist(tmp_path / "mnist", images)
    for directory in (tmp_path, tmp_path / "mnist"):
        dataset = load("mnist", directory)
        np.testing.assert_array_equal(dataset.train_images[..., 0], images)
        assert dataset.channels == 1
    monkeypatch.setenv("GENERIC_ADAM_DATA", str(tmp_path))
    np.testing.assert_array_equal(load("mnist").test_images[..., 0], images)


def test_the_cache_is_the_last_place(tmp_path, images, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GENERIC_ADAM_DATA", raising=False)
    write_mnist(cache_directory() / "mnist", images)
    assert len(load("mnist").train_labels) == 5


@pytest.mark.parametrize("name", ["mnist", "cifar100"])
def test_missing_data_names_the_command_that_gets_it(tmp_path, name):
    with pytest.raises(DataError, match=f"get it with `generic-adam data fetch {name}`"):
        load(name, tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DataError, match="cifar100, mnist, digits"):
        load("imagenet")


def test_standardisation_is_that_of_numpy():
    digits = load("digits")
    mean, deviation = digits.standardisation
    assert mean == pytest.approx([digits.train_images.mean()], rel=1e-12)
    assert deviation == pytest.approx([digits.train_images.std()], rel=1e-12)


def test_digits_are_scikit_learns_enlarged():
    from sklearn.datasets import load_digits

    digits = load("digits")
    assert digits.train_images.shape == (1437, 28, 28, 1)
    assert digits.test_images.shape == (360, 28, 28, 1)
    np.testing.assert_array_equal(digits.train_images[7, 2:-2:3, 2:-2:3, 0], load_digits().images[7] * 15)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [(3, [0, 1], "3 training images but 2 labels"), (2, [0, 10], "training label 10, expected 0 to 9")],
)
def test_a_dataset_that_does_not_fit_together_is_refused(images, labels, message):
    pixels = np.zeros((images, 4, 4, 1), np.uint8)
    with pytest.raises(DataError, match=message):
        Dataset("mine", pixels, np.array(labels), pixels[:2], np.array([0, 1]), classes=10)


def test_the_standard_library_is_a_text_of_two_parts(tmp_path):
    for n in range(1, 21):
        (tmp_path / f"m{n:02d}.py").write_bytes(f"x{n}\n\té".encode())
    (tmp_path / "_sysconfigdata_.py").write_text("of the build")
    text = standard_library(tmp_path)
    other = len(CHARACTERS)
    letters = [CHARACTERS.index(c) for c in "x10\n"] + [other, other, other]  # a tab and two bytes
    assert text.test[:7].tolist() == letters, "every tenth file is held out"
    assert len(text.train) == 9 * 6 + 9 * 7
    assert text.classes == 97
    assert "\n".join(CHARACTERS).isascii()


def test_the_real_standard_library_is_large_and_known_by_its_characters():
    text = load("stdlib")
    assert len(text.train) > 1_000_000
    assert len(text.test) > 100_000
    assert (text.train == len(CHARACTERS)).mean() < 0.001


def test_a_python_without_its_source_is_one_line(tmp_path):
    with pytest.raises(DataError, match="standard library"):
        standard_library(tmp_path)
