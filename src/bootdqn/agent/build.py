"""Which learner for which ensemble."""

from bootdqn.agent.config import LearnerConfig
from bootdqn.agent.learner import AutogradLearner, Learner
from bootdqn.agent.tabular_learner import TabularLearner
from bootdqn.networks.ensemble import Ensemble


def make_learner(config: LearnerConfig, ensemble: Ensemble, device: str) -> Learner:
    """Return the learner that `config.engine` asks for; `auto` takes the compiled kernel where it applies."""
    fused = device == "cpu" and TabularLearner.supports(ensemble)
    if config.engine == "fused" and not fused:
        raise ValueError(
            "--engine fused needs discrete observations, --ensemble independent, two --hidden-sizes and --device cpu; "
            "use --engine auto"
        )
    if fused and config.engine != "autograd":
        return TabularLearner(config, ensemble)
    return AutogradLearner(config, ensemble, device)
