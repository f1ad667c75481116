"""A capture replaces a job's folder but nothing else, and loses nothing."""

import os
import shutil

import numpy as np
import pytest
from capturing import Toy, found

import repops
import repops.jobs._folder


@pytest.fixture
def job(tmp_path):
    """A captured job's folder."""
    toy = Toy(tmp_path)
    toy.capture()
    return toy.job.folder


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def refused(folder, words):
    """A capture into this folder must be refused before anything is recorded."""
    toy, called = Toy(folder.parent), []
    toy.job.folder = folder
    with pytest.raises(repops.Error) as error:
        toy.job.capture(lambda: called.append(1), toy.model, toy.optimizer)
    found(words, str(error.value))
    assert not called


def test_a_job_is_replaced(job):
    before = sorted(content(job))
    assert sorted(os.listdir(job.parent)) == ["job"]
    toy = Toy(job.parent, steps=7)
    (job / "data9.npy").symlink_to(job.parent / "elsewhere")
    toy.capture()
    assert sorted(content(job)) == before and sorted(os.listdir(job.parent)) == ["job"]


@pytest.mark.parametrize("name", ["run.json", "notes.txt", "data0.npy.bak", "state-1", ".hidden"])
def test_a_folder_with_other_files_stays(job, name):
    (job / name).write_text("mine")
    before = content(job)
    refused(job, f"job is there, and holds no job: it has {name}")
    assert content(job) == before


def test_a_folder_in_it_stays(job):
    (job / "data7.npy").mkdir()
    refused(job, "holds no job: it has data7.npy")


def test_a_link_stays(job):
    link = job.with_name("link")
    link.symlink_to(job)
    before = content(job)
    refused(link, "link is there, and is no folder")
    assert content(job) == before and link.is_symlink()
    link.unlink()
    link.symlink_to("nowhere")
    refused(link, "link is there, and is no folder")


def test_a_file_stays(job):
    file = job.with_name("file")
    file.write_text("mine")
    refused(file, "file is there, and is no folder")
    refused(file / "below" / "job", "file is there, and is no folder")
    assert file.read_text() == "mine"


def test_names_become_printable_ascii(tmp_path):
    """Programs require this, and no name can send control codes to a terminal."""
    toy = Toy(tmp_path)
    more = toy.job.table(np.arange(6, dtype="f4"), name="\x1b[31m\u00e9\x9b")
    toy.capture(lambda: toy.train(toy.loss() * more))
    assert b"?[31m??" in (toy.job.folder / "program").read_bytes()


def test_places_that_the_command_would_not_read_are_left_out(tmp_path, monkeypatch):
    for limit, kept in ((1 << 24, True), (99, False)):
        monkeypatch.setattr(repops.jobs._folder, "PLACES_BYTES_MAX", limit)
        toy = Toy(tmp_path)
        toy.capture()
        assert (toy.job.folder / "places.json").exists() == kept


def test_neighbours_stay(job):
    for name in ("job.new", "job.old"):
        shutil.copytree(job, job.with_name(name))
    Toy(job.parent, steps=7).capture()
    assert sorted(os.listdir(job.parent)) == ["job", "job.new", "job.old"]
