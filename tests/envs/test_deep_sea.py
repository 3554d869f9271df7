"""DeepSea against bsuite (recorded, and live where it is installed), against its rules, and against itself resumed."""

import importlib.util
import json
import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import bootdqn
from bootdqn.envs.deep_sea import DeepSea
from envs.record_deep_sea_vectors import VECTORS, record

SOURCES = ["recorded"]
if importlib.util.find_spec("bsuite"):
    SOURCES.append("live")


def runs_of_bsuite(source: str) -> list[dict[str, Any]]:
    if source == "recorded":
        return json.loads(VECTORS.read_text(encoding="utf-8"))
    choice = random.Random(20250101)
    runs = []
    for _ in range(150):
        env_settings = {
            "size": choice.choice([1, 2, 3, 4, 5, 8, 13, 30]),
            "deterministic": choice.random() < 0.3,
            "randomize_actions": choice.random() < 0.8,
            "mapping_seed": choice.choice([0, 42, choice.randrange(2**32)]),
            "unscaled_move_cost": choice.choice([0.01, 0.0, 1.0, -0.2, choice.random()]),
        }
        runs.append(record(env_settings, choice.choice([0, 1, choice.randrange(2**32)]), 20, choice))
    return runs


def follow(env: DeepSea, actions: str) -> list[tuple[int, float, bool, bool, dict[str, Any]]]:
    return [env.step(int(action)) for action in actions]


def go_right(env: DeepSea) -> list[tuple[int, float, bool, bool, dict[str, Any]]]:
    observation, _ = env.reset()
    steps = []
    for _ in range(env.action_mapping.shape[0]):
        steps.append(env.step(env.optimal_action(*divmod(observation, env.action_mapping.shape[0]))))
        observation = steps[-1][0]
    return steps


def walk(env: DeepSea, choice: random.Random, steps: int) -> list[Any]:
    seen: list[Any] = []
    for _ in range(steps):
        try:
            seen.append(env.step(choice.randrange(2)))
        except gymnasium.error.ResetNeeded:
            seen.append(env.reset())
    return seen


@pytest.mark.parametrize("source", SOURCES)
def test_every_step_is_bsuites_bit_for_bit(source: str) -> None:
    for run in runs_of_bsuite(source):
        size, move_cost = run["settings"]["size"], run["settings"]["unscaled_move_cost"]
        env = DeepSea(**run["settings"])
        assert env.optimal_return.hex() == run["optimal_return"].hex(), run["settings"]
        assert ["".join(map(str, row)) for row in env.action_mapping] == run["action_mapping"], run["settings"]
        for number, episode in enumerate(run["episodes"]):
            first, _ = env.reset(seed=run["seed"] if number == 0 else None)
            steps = follow(env, episode["actions"])
            where = run["settings"], run["seed"], number
            rows = [min(row, size - 1) for row in range(1, len(steps) + 1)]
            assert [first, *(step[0] for step in steps)] == [
                0,
                *(row * size + column for row, column in zip(rows, episode["columns"], strict=True)),
            ], where
            assert [step[1].hex() for step in steps] == [reward.hex() for reward in episode["rewards"]], where
            assert [step[2] for step in steps] == [row == size for row in range(1, len(steps) + 1)], where
            info = steps[-1][4]
            if episode["bad"] is not None:
                assert info["bad_episode"] == episode["bad"], where
            cells = [0, *(step[0] for step in steps[:-1])]
            rights = sum(
                env.optimal_action(*divmod(cell, size)) == int(action)
                for cell, action in zip(cells, episode["actions"], strict=True)
            )
            assert info["denoised_return"] == pytest.approx(episode["treasures"] - rights * move_cost / size), where


def test_the_recorded_runs_show_what_they_are_there_to_show() -> None:
    runs = runs_of_bsuite("recorded")
    for deterministic in (True, False):
        episodes = [
            episode
            for run in runs
            for episode in run["episodes"]
            if run["settings"]["deterministic"] == deterministic and run["settings"]["size"] >= 5
        ]
        assert {episode["bad"] for episode in episodes} == {True, False, None}
        assert {episode["treasures"] for episode in episodes} == {0, 1}
    assert {run["settings"]["randomize_actions"] for run in runs} == {True, False}
    assert VECTORS.stat().st_size < 100_000


def test_gymnasium_makes_it_and_its_checker_agrees() -> None:
    assert bootdqn.__version__
    for deterministic in (True, False):
        env = gymnasium.make("bootdqn/DeepSea-v0", size=5, deterministic=deterministic)
        assert isinstance(env.unwrapped, DeepSea)
        assert env.observation_space == gymnasium.spaces.Discrete(25)
        assert env.action_space == gymnasium.spaces.Discrete(2)
        check_env(env.unwrapped)
        env.reset(seed=3)
        assert env.step(env.action_space.sample())[0] in (5, 6)


def test_observations_and_rewards_are_plain_numbers() -> None:
    for deterministic in (True, False):
        env = DeepSea(size=4, deterministic=deterministic)
        for observation, reward, terminated, truncated, info in go_right(env):
            assert [type(observation), type(reward), type(terminated), type(truncated)] == [int, float, bool, bool]
            assert {key: type(value) for key, value in info.items()} == {"bad_episode": bool, "denoised_return": float}


def test_numpy_actions_do_what_plain_ones_do() -> None:
    plain, numpy = DeepSea(size=3, mapping_seed=1), DeepSea(size=3, mapping_seed=1)
    plain.reset()
    numpy.reset()
    for action in (1, 0, 1):
        assert plain.step(action) == numpy.step(np.int64(action))  # type: ignore[arg-type]


class TestProperties:
    sizes = st.integers(1, 12)
    seeds = st.integers(0, 2**32 - 1)
    costs = st.floats(0, 1)

    @settings(deadline=None)
    @given(size=sizes, mapping_seed=seeds, cost=costs)
    def test_the_optimal_policy_earns_the_optimal_return(self, size: int, mapping_seed: int, cost: float) -> None:
        steps = go_right(DeepSea(size, mapping_seed=mapping_seed, unscaled_move_cost=cost))
        assert sum(reward for _, reward, *_ in steps) == pytest.approx(1 - cost, abs=1e-12)
        assert DeepSea(size, unscaled_move_cost=cost).optimal_return == 1 - cost
        assert not steps[-1][4]["bad_episode"]
        assert steps[-1][0] == size * size - 1

    @settings(deadline=None)
    @given(size=sizes, mapping_seed=seeds, cost=costs, data=st.data())
    def test_an_episode_is_what_a_slow_reading_of_the_rules_says(
        self, size: int, mapping_seed: int, cost: float, data: st.DataObject
    ) -> None:
        actions = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        env = DeepSea(size, mapping_seed=mapping_seed, unscaled_move_cost=cost)
        env.reset()
        column, bad, total = 0, False, 0.0
        for row, action in enumerate(actions):
            is_right = action == env.action_mapping[row, column]
            bad = bad or (not is_right and row == column)
            expected_reward = (-cost / size if is_right else 0.0) + (1.0 if is_right and column == size - 1 else 0.0)
            column = min(max(column + (1 if is_right else -1), 0), size - 1)
            observation, reward, terminated, truncated, info = env.step(action)
            total += reward
            assert observation == min(row + 1, size - 1) * size + column
            assert reward == pytest.approx(expected_reward)
            assert (terminated, truncated) == (row == size - 1, False)
            assert info == {"bad_episode": bad, "denoised_return": total}
        assert -cost - 1e-12 <= total <= env.optimal_return + 1e-12
        assert (total > 0.0) <= (not bad)

    @settings(deadline=None)
    @given(size=sizes, mapping_seed=seeds, seed=seeds, cost=costs, data=st.data())
    def test_the_wind_holds_back_but_never_breaks_a_bound(
        self, size: int, mapping_seed: int, seed: int, cost: float, data: st.DataObject
    ) -> None:
        env = DeepSea(size, deterministic=False, mapping_seed=mapping_seed, unscaled_move_cost=cost)
        cell, _ = env.reset(seed=seed)
        bad = False
        for step in range(size):
            row, column = divmod(cell, size)
            action = data.draw(st.integers(0, 1))
            is_right = action == env.optimal_action(row, column)
            bad = bad or (not is_right and row == column)
            cell, reward, terminated, _, info = env.step(action)
            assert cell in env.observation_space
            assert cell // size == min(step + 1, size - 1)
            moved = cell % size - column
            assert moved in ((0, 1) if is_right else (-1, 0))
            assert is_right or moved == -1 or column == 0
            assert info["bad_episode"] == bad
            assert -cost - 1e-12 <= info["denoised_return"] <= 1 - cost / size
            if not terminated:
                assert reward == (0.0 - cost / size if is_right else 0.0)
        assert terminated

    @settings(deadline=None)
    @given(size=sizes, seed=seeds, steps=st.integers(0, 30))
    def test_a_fresh_environment_continues_from_any_state(self, size: int, seed: int, steps: int) -> None:
        unbroken = DeepSea(size, deterministic=bool(seed % 2))
        other = DeepSea(size, deterministic=bool(seed % 2))
        other.reset(seed=seed + 1)
        unbroken.reset(seed=seed)
        actions = random.Random(seed)
        walk(unbroken, actions, steps)
        other.set_state(json.loads(json.dumps(unbroken.get_state())))
        assert other.get_state() == unbroken.get_state()
        same_actions = random.Random()
        same_actions.setstate(actions.getstate())
        assert walk(other, same_actions, 40) == walk(unbroken, actions, 40)
        assert other.get_state() == unbroken.get_state()


def test_a_state_holds_the_second_of_a_pair_of_normal_samples() -> None:
    env, other = DeepSea(size=1, deterministic=False), DeepSea(size=1, deterministic=False)
    env.reset(seed=0)
    env.step(1 - env.optimal_action(0, 0))
    state = env.get_state()
    assert state["wind"]["has_gauss"] == 1
    other.set_state(state)
    assert walk(other, random.Random(0), 10) == walk(env, random.Random(0), 10)


def test_a_state_before_the_first_reset_fixes_the_wind_that_is_sampled_later() -> None:
    env, other = DeepSea(size=2, deterministic=False), DeepSea(size=2, deterministic=False)
    other.set_state(json.loads(json.dumps(env.get_state())))
    assert walk(other, random.Random(0), 20) == walk(env, random.Random(0), 20)
    assert other.np_random_seed == env.np_random_seed


def test_a_state_of_other_settings_is_an_error() -> None:
    state = DeepSea(size=4).get_state()
    for other in (DeepSea(size=5), DeepSea(size=4, deterministic=False), DeepSea(size=4, unscaled_move_cost=0.0)):
        with pytest.raises(ValueError, match="make the environment with the settings it was saved with"):
            other.set_state(state)


def test_a_seed_starts_the_wind_afresh_and_a_reset_without_one_does_not() -> None:
    env = DeepSea(size=3, deterministic=False, mapping_seed=0)
    env.reset(seed=5)
    first, second = go_right(env), go_right(env)
    assert first != second
    env.reset(seed=5)
    assert [go_right(env), go_right(env)] == [first, second]


@pytest.mark.parametrize("seed", [None, 2**32, 2**70])
def test_without_a_seed_that_bsuite_could_take_the_wind_comes_from_np_random(seed: int | None) -> None:
    def winds() -> list[Any]:
        env = DeepSea(size=3, deterministic=False, mapping_seed=0)
        if seed is None:
            env.np_random = np.random.default_rng(8)
        env.reset(seed=seed)
        return [go_right(env) for _ in range(3)]

    assert winds() == winds()


def test_environments_that_were_never_seeded_have_different_winds_and_maps() -> None:
    def returns() -> list[float]:
        env = DeepSea(size=2, deterministic=False, mapping_seed=0)
        return [go_right(env)[-1][1] for _ in range(10)]

    assert returns() != returns()
    assert (DeepSea(size=12).action_mapping != DeepSea(size=12).action_mapping).any()


def test_going_right_in_the_wind_earns_the_optimal_return_on_average() -> None:
    env = DeepSea(size=4, deterministic=False, mapping_seed=2)
    env.reset(seed=0)
    episodes = [go_right(env)[-1] for _ in range(4000)]
    standard_error = 0.5 / 4000**0.5
    assert env.optimal_return == pytest.approx(0.75**3 - 0.01)
    denoised = np.mean([info["denoised_return"] for *_, info in episodes])
    assert denoised == pytest.approx(env.optimal_return, abs=3 * standard_error)
    assert not any(info["bad_episode"] for *_, info in episodes)


def test_action_one_is_right_everywhere_without_a_random_action_map() -> None:
    env = DeepSea(size=3, randomize_actions=False)
    assert env.action_mapping.tolist() == [[1] * 3] * 3
    env.reset()
    assert [step[0] for step in follow(env, "101")] == [4, 6, 7]


def test_the_action_mapping_cannot_be_changed_from_outside() -> None:
    env = DeepSea(size=3, mapping_seed=0)
    with pytest.raises(ValueError, match="read-only"):
        env.action_mapping[0, 0] = 1
    copy = env.action_mapping
    copy.flags.writeable = True
    copy[:] = 5
    assert set(env.action_mapping.ravel()) <= {0, 1}


@pytest.mark.parametrize("size", [0, -3])
def test_a_grid_has_at_least_one_cell(size: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1; got {size}"):
        DeepSea(size=size)


def test_a_size_is_an_integer() -> None:
    with pytest.raises(TypeError, match="integer"):
        DeepSea(size=2.5)  # type: ignore[arg-type]
    assert DeepSea(size=np.int64(3)).observation_space == gymnasium.spaces.Discrete(9)  # type: ignore[arg-type]


@pytest.mark.parametrize("cost", [float("nan"), float("inf")])
def test_a_move_cost_is_finite(cost: float) -> None:
    with pytest.raises(ValueError, match=f"finite number; got {cost}"):
        DeepSea(unscaled_move_cost=cost)


@pytest.mark.parametrize("action", [2, -1, 0.5, None, "right"])
def test_a_third_action_is_an_error_and_leaves_the_episode_as_it_was(action: Any) -> None:
    env = DeepSea(size=3, deterministic=False)
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match=f"action must be 0 or 1; got {action!r}"):
        env.step(action)
    assert env.get_state() == before


def test_a_step_outside_an_episode_asks_for_a_reset() -> None:
    env = DeepSea(size=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="not started: call reset"):
        env.step(0)
    go_right(env)
    with pytest.raises(gymnasium.error.ResetNeeded, match="over: call reset"):
        env.step(0)


@pytest.mark.parametrize(("row", "column"), [(-1, 0), (0, -1), (3, 0), (0, 3)])
def test_there_is_no_optimal_action_outside_the_grid(row: int, column: int) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 2; got \(" + f"{row}, {column}"):
        DeepSea(size=3).optimal_action(row, column)


class TestRendering:
    def test_text_shows_the_diver_the_treasure_and_the_water(self) -> None:
        env = DeepSea(size=3, randomize_actions=False, render_mode="ansi")
        env.reset()
        assert env.render() == "@\n. .\n. . $\n"
        env.step(1)
        assert env.render() == ".\n. @\n. . $\n"
        follow(env, "00")
        assert env.render() == ".\n. .\n@ . $\n"

    def test_an_image_has_one_square_a_cell_and_another_colour_where_the_diver_is(self) -> None:
        env = DeepSea(size=5, randomize_actions=False, render_mode="rgb_array")
        env.reset()
        before = env.render()
        env.step(1)
        after = env.render()
        assert isinstance(before, np.ndarray)
        assert isinstance(after, np.ndarray)
        assert after.shape == (320, 320, 3)
        assert after.dtype == np.uint8
        changed = (before != after).any(axis=-1).reshape(5, 64, 5, 64).any(axis=(1, 3))
        assert np.argwhere(changed).tolist() == [[0, 0], [1, 1]]
        assert len(np.unique(after.reshape(-1, 3), axis=0)) == 6

    @pytest.mark.parametrize("size", [1, 7, 100])
    def test_an_image_of_any_size_is_large_enough_to_see(self, size: int) -> None:
        env = DeepSea(size=size, render_mode="rgb_array")
        env.reset()
        image = env.render()
        assert isinstance(image, np.ndarray)
        assert image.shape[0] == image.shape[1] >= max(300, 8 * size)

    def test_nothing_is_rendered_before_a_reset_or_without_a_mode(self) -> None:
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            DeepSea(size=3, render_mode="ansi").render()
        with pytest.warns(UserWarning, match="make DeepSea with a render_mode"):
            assert DeepSea(size=3).render() is None

    def test_an_unknown_mode_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="got 'human'"):
            DeepSea(render_mode="human")
