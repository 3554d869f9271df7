"""Runs evaluated from their directories."""

import json

import pytest

import bootdqn
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.config.settings import from_flat
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.training.evaluation import evaluate_saved_run
from bootdqn.training.run import train_run


def test_the_seed_that_is_asked_for_seeds_the_environment(tmp_path, monkeypatch):
    train_run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    seeds, reset = [], DeepSea.reset

    def noted(env, *, seed=None, options=None):
        seeds.append(seed)
        return reset(env, seed=seed, options=options)

    monkeypatch.setattr(DeepSea, "reset", noted)
    for seed in (0, 0, 1):
        evaluate_saved_run(tmp_path / "run", episodes=1, max_steps=9, rule=None, seed=seed)
    first, again, other = seeds
    assert first == again != other


def test_the_evaluation_is_written_as_it_is_returned(tmp_path):
    train_run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    found = evaluate_saved_run(tmp_path / "run", episodes=2, max_steps=9, rule="mean", seed=7)
    line = ["evaluate", str(tmp_path / "run"), "--episodes", "2", "--max-steps", "9", "--vote", "mean", "--seed", "7"]
    assert run_command_line([*line, "--json", str(tmp_path / "found.json")]) == 0
    expected = {"step": 6, "vote": "mean", "seed": 7} | found.evaluation.record()
    assert json.loads((tmp_path / "found.json").read_text()) == expected


def test_results_are_written_to_a_directory_that_does_not_exist_yet(tmp_path):
    train_run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    for directory in ("from python", "from the command line"):
        results = tmp_path / directory / "new/found.json"
        if directory == "from python":
            bootdqn.evaluate(tmp_path / "run", episodes=1, json=results)
        else:
            assert run_command_line(["evaluate", str(tmp_path / "run"), "--episodes", "1", "--json", str(results)]) == 0
        assert json.loads(results.read_text())["step"] == 6


def test_a_directory_in_place_of_the_file_of_results_is_an_error_before_the_evaluation(tmp_path, monkeypatch):
    train_run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    monkeypatch.setattr(DeepSea, "reset", lambda *_, **__: pytest.fail("an episode is played"))
    with pytest.raises(UsageError, match=r"--json .* cannot be written: it is a directory"):
        bootdqn.evaluate(tmp_path / "run", json=tmp_path)


def test_a_return_that_is_not_finite_is_an_error_in_one_line(tmp_path, monkeypatch, capsys):
    train_run(from_flat({"environment": "deep-sea", "size": 3, "max_episodes": 2}), tmp_path / "run")
    monkeypatch.setattr(DeepSea, "step", lambda *_: (0, float("inf"), True, False, {}))
    for words in ([], ["--json", str(tmp_path / "found.json")]):
        assert run_command_line(["evaluate", str(tmp_path / "run"), "--episodes", "1", *words]) == 1
        message = "bootdqn: the environment of the evaluation gave returns that are not finite: [inf]\n"
        assert capsys.readouterr().err == message
    assert not (tmp_path / "found.json").exists()
