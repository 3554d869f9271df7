"""The origin of an error, as reported to users."""

import json
import sys
import traceback

import pytest
import torch

from bootdqn.common import errors
from bootdqn.common.errors import TrainingError, WriteError, attribute_errors_to, check_writable, error_location
from bootdqn.common.files import CONFIG, read_json_object


def error_of(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        call()
    return caught.value


def test_the_users_line_is_reported_and_not_that_of_the_library_it_called():
    def of_the_user():
        return json.loads("{")

    error = error_of(of_the_user)
    assert "json" in traceback.extract_tb(error.__traceback__)[-1].filename
    assert error_location(error) == f"{__file__}, line {of_the_user.__code__.co_firstlineno + 1}"


def test_a_line_of_a_library_is_reported_where_the_user_has_none(monkeypatch):
    monkeypatch.setattr(errors, "_INSTALLED", (*errors._INSTALLED, errors.Path(__file__).parents[2]))
    error = error_of(lambda: json.loads("{"))
    assert error_location(error).startswith(sys.modules["json.decoder"].__file__)


def test_a_line_of_this_package_is_never_reported(tmp_path):
    error = error_of(lambda: read_json_object(tmp_path / "nowhere.json", CONFIG))
    while error.__traceback__.tb_next:
        error.__traceback__ = error.__traceback__.tb_next
    assert error_location(error) == ""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("none left"),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=repr,
)
def test_a_lack_of_memory_is_left_as_it_is(error):
    with pytest.raises(type(error)) as caught, attribute_errors_to("the evaluation"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", [RuntimeError("shapes do not fit"), OSError("gone")], ids=repr)
def test_whatever_else_is_raised_is_attributed_to_the_source(error):
    message = f"the evaluation raised {type(error).__name__}: {error}"
    with pytest.raises(TrainingError, match=message) as caught, attribute_errors_to("the evaluation"):
        raise error
    assert caught.value.__cause__ is error


def test_a_place_that_cannot_be_written_is_named_with_its_flag(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "new/run", "--run-dir")
    check_writable(tmp_path / "file", "--json")
    with pytest.raises(WriteError, match=r"--run-dir .*file/run cannot be written: .*file is not a directory"):
        check_writable(tmp_path / "file/run", "--run-dir")
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)  # root may write where nobody else may
    with pytest.raises(WriteError, match=f"--out .*run cannot be written: {tmp_path} is read-only"):
        check_writable(tmp_path / "new/run", "--out")
