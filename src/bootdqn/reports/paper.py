"""The paper's numbers, as it prints them. Strategies are written as on the command line."""

from bootdqn.config.envs import MINATAR_GAMES

GAMES = ("Gravitar", "Solaris", "PrivateEye", "Venture", "Alien", "Hero")
TITLES = {"PrivateEye": "Private Eye"} | {game: game.replace("-", " ").title() for game in MINATAR_GAMES}
ORIGINAL = "original"
"""BootDQN*, the scores that Osband et al. (2016) reported."""
FRAMES, SEEDS = 200_000_000, 3
DEEP_SEA_SEEDS, LARGEST_DEEP_SEA = 15, 30

RANDOM_SCORE = {
    "Gravitar": 173.0, "Solaris": 1236.3, "PrivateEye": 24.9, "Venture": 0.0, "Alien": 227.8, "Hero": 1027.0,
}  # fmt: skip
HUMAN_SCORE = {
    "Gravitar": 3351.4, "Solaris": 12326.7, "PrivateEye": 69571.3, "Venture": 1187.5, "Alien": 7127.7, "Hero": 30826.4,
}  # fmt: skip

MAXIMAL_SCORE: dict[str, dict[str, float | None]] = {
    "Gravitar": {ORIGINAL: 286.1, "greedy": 1480, "ids": 771, "ucb": 1621.7, "gain": 1663.3, "evoi": 1876.6},
    "Solaris": {ORIGINAL: None, "greedy": 2223.4, "ids": 2086.8, "ucb": 2875.4, "gain": 2252.4, "evoi": 3018.2},
    "PrivateEye": {ORIGINAL: 1812.5, "greedy": 1584.4, "ids": 201.1, "ucb": 7811.1, "gain": 5350.3, "evoi": 5880},
    "Venture": {ORIGINAL: 212.5, "greedy": 1473.3, "ids": 389.1, "ucb": 746.7, "gain": 736.6, "evoi": 1543.3},
    "Alien": {ORIGINAL: 2436.6, "greedy": 4291.3, "ids": 9780.1, "ucb": 4040.7, "gain": 5230.3, "evoi": 4364.6},
    "Hero": {ORIGINAL: 21021.3, "greedy": 21537, "ids": 15165.4, "ucb": 22453.2, "gain": 28309, "evoi": 28539.3},
}
"""Table 1: for each seed the best evaluation, averaged over seeds."""

MEAN_NORMALISED = {"greedy": 50.67, "ids": 40.89, "ucb": 43.6, "gain": 48.3, "evoi": 60.05}
"""Table 2, per cent."""
TRUNCATED = ("greedy", "ids")
"""Rows of Table 2 that were cut off, not rounded: 50.675 and 40.898."""

VOTE_VARIANCE = {
    "Gravitar": {"greedy": 2.0, "ucb": 2.15, "gain": 1.96, "evoi": 2.0},
    "Venture": {"greedy": 2.24, "ucb": 2.62, "gain": 3.15, "evoi": 2.52},
    "Solaris": {"greedy": 1.14, "ucb": 1.52, "gain": 1.25, "evoi": 1.32},
    "PrivateEye": {"greedy": 1.12, "ucb": 1.43, "gain": 1.16, "evoi": 1.12},
    "Alien": {"greedy": 1.72, "ucb": 1.82, "gain": 1.78, "evoi": 1.76},
    "Hero": {"greedy": 1.14, "ucb": 1.67, "gain": 1.38, "evoi": 1.43},
}
"""Table 3."""

HEADS_FRAMES = 100_000_000
"""Of the study of K: EVOI on Hero."""
RUNTIME_MINUTES = {2: 24 * 60 + 53, 6: 33 * 60 + 53, 10: 39 * 60 + 3, 12: 42 * 60 + 59}
"""Of that study, by K."""
RUNTIME_GROWTH = {6: 36, 10: 15, 12: 10}
"""Per cent more than for the K before, as printed."""


def normalised(game: str, score: float) -> float:
    """Return the human-normalised score, in per cent."""
    return 100 * (score - RANDOM_SCORE[game]) / (HUMAN_SCORE[game] - RANDOM_SCORE[game])


def mean_normalised(strategy: str, games: tuple[str, ...] = GAMES) -> float | None:
    """Return the mean over `games` of the paper's own human-normalised scores; None where one is missing."""
    scores = [MAXIMAL_SCORE[game].get(strategy) for game in games]
    values = [normalised(game, score) for game, score in zip(games, scores, strict=True) if score is not None]
    return sum(values) / len(values) if values and len(values) == len(games) else None


def title_of(game: str) -> str:
    """Return a game's name as people write it."""
    return TITLES.get(game, game)
