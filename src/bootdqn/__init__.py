"""bootdqn: Bootstrapped DQN that explores by the expected value of information.

The formulas (`gain`, `evoi`, `ucb`, `ids`, `disagreement`, `information_gain`, `vote`, `vote_diversity`) take Q-values
of shape (..., K heads, A actions) as a NumPy, PyTorch or JAX array. The strategies put them to work. `train`,
`sweep`, `evaluate`, `report` and `inspect` are the commands as functions; `load_run` returns the ensemble of a run,
`load_results` and `load_metrics` tables of many runs. Importing this package also registers `bootdqn/DeepSea-v0` and
`bootdqn/TwoPaths-v0` with Gymnasium.
"""

from bootdqn.api import evaluate, inspect, load_metrics, load_results, load_run, report, sweep, train
from bootdqn.common.errors import TrainingError, UsageError
from bootdqn.envs import register_environments
from bootdqn.exploration.formulas import disagreement, evoi, gain, head_values, ids, information_gain, ucb
from bootdqn.exploration.registry import format_strategy, parse_strategy, register_strategy
from bootdqn.exploration.strategies import Boltzmann, Evoi, Gain, Greedy, Ids, Strategy, Ucb, Vote
from bootdqn.exploration.voting import VoteDiversity, tally, vote, vote_diversity
from bootdqn.results import TrainedEnsemble

__version__ = "0.5.0"

__all__ = [
    "Boltzmann",
    "Evoi",
    "Gain",
    "Greedy",
    "Ids",
    "Strategy",
    "TrainedEnsemble",
    "TrainingError",
    "Ucb",
    "UsageError",
    "Vote",
    "VoteDiversity",
    "disagreement",
    "evaluate",
    "evoi",
    "format_strategy",
    "gain",
    "head_values",
    "ids",
    "information_gain",
    "inspect",
    "load_metrics",
    "load_results",
    "load_run",
    "parse_strategy",
    "register_strategy",
    "report",
    "sweep",
    "tally",
    "train",
    "ucb",
    "vote",
    "vote_diversity",
]

register_environments()
