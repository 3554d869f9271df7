"""An episode outside of training: observations are checked when they are used, and errors name their origin."""

import gymnasium
import pytest

from bootdqn.common.errors import TrainingError
from bootdqn.training.rollout import Rollout


class Stairs(gymnasium.Env):
    """Three steps down, each of which pays more; the ground is none of the places promised."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        self.place = 0
        return self.place, {}

    def step(self, _action):
        self.place += 1
        return self.place, self.place, self.place == 3, False, {}


def test_an_episode_counts_its_steps_and_adds_up_its_rewards():
    rollout = Rollout(Stairs(), "the stairs")
    seen = []
    while not rollout.done:
        seen.append((int(rollout.observation()), rollout.length, rollout.total_reward, rollout.step(0)))
    assert seen == [(0, 0, 0.0, 1.0), (1, 1, 1.0, 2.0), (2, 2, 3.0, 3.0)]
    assert (rollout.length, rollout.total_reward) == (3, 6.0)


def test_an_observation_that_is_not_used_is_not_checked():
    rollout = Rollout(Stairs(), "the stairs")
    for _ in range(3):
        rollout.step(0)
    assert rollout.done
    with pytest.raises(TrainingError, match=r"^the stairs gave the observation 3, not one of 0\.\.2$"):
        rollout.observation()


def play_a_step():
    rollout = Rollout(Stairs(), "the stairs")
    rollout.observation()
    rollout.step(0)


@pytest.mark.parametrize(
    ("method", "gives", "complaint"),
    [
        ("reset", None, "TypeError"),
        ("reset", ("nowhere", {}), "TypeError|ValueError|UFuncTypeError"),
        ("step", None, "TypeError"),
        ("step", (1, 0.0, False, False), "ValueError"),
        ("step", (1, "much", False, False, {}), "ValueError"),
        ("step", (1, None, False, False, {}), "TypeError"),
    ],
)
def test_invalid_values_of_an_episode_are_blamed_on_the_environment(monkeypatch, method, gives, complaint):
    monkeypatch.setattr(Stairs, method, lambda *_, **__: gives)
    with pytest.raises(TrainingError, match=f"^the stairs raised ({complaint}): "):
        play_a_step()
