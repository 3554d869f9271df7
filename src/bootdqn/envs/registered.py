"""Any environment from Gymnasium's registry, made fit for Q-learning."""

import inspect
import warnings

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import TransformObservation

from bootdqn.common.errors import CannotBeShownError, UsageError
from bootdqn.common.written import did_you_mean
from bootdqn.envs.gym_config import GymConfig
from bootdqn.envs.seeded import SeededEpisodes


def make_registered(config: GymConfig, render_mode: str | None = None) -> SeededEpisodes:
    """Return the environment that `config.env_id` names.

    A dictionary of observations with an `image`, as MiniGrid's, is taken for that image.

    Raises:
        CannotBeShownError: It takes no `render_mode`. One that does not know the mode says so when it is rendered.
        UsageError: It cannot be made.
    """
    options = config.options if render_mode is None else config.options | {"render_mode": render_mode}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not in the possible render_modes")
            environment = gymnasium.make(config.env_id, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(f"--env-id {config.env_id}: {error}") from error
    except (gymnasium.error.Error, ImportError) as error:
        told = str(error).partition(" Did you mean")[0].rstrip(".")  # ours has the version, too
        hint = did_you_mean(config.env_id, gymnasium.registry) or ";"
        own = "--import MODULE imports a module that registers one"
        raise UsageError(f"--env-id {config.env_id}: {told}{hint} {own}") from error
    except TypeError as error:
        if "'render_mode'" in str(error):
            raise CannotBeShownError(f"--env-id {config.env_id} cannot be shown: it takes no render_mode") from error
        _refuse_unknown_options(config)
        blamed = "does not take these --env-options" if config.env_options else "cannot be made"
        raise UsageError(f"--env-id {config.env_id} {blamed}: {error}") from error
    except Exception as error:
        raise UsageError(f"--env-id {config.env_id} cannot be made: {type(error).__name__}: {error}") from error
    observations = environment.observation_space
    if isinstance(observations, spaces.Dict) and isinstance(observations.get("image"), spaces.Box):
        environment = TransformObservation(environment, lambda seen: seen["image"], observations["image"])
    return SeededEpisodes(environment)


def _refuse_unknown_options(config: GymConfig) -> None:
    """Raise a UsageError that names the closest option, where the environment has none of a name in --env-options."""
    entry = gymnasium.spec(config.env_id).entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    parameters = inspect.signature(creator).parameters if creator else {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    accepted = [name for name in parameters if name not in ("self", "render_mode")]
    for name in config.options:
        if name not in accepted:
            hint = did_you_mean(name, accepted, f"it takes {', '.join(accepted) or 'none'}")
            raise UsageError(f"--env-options: {config.env_id} has no option {name!r}{hint}")
