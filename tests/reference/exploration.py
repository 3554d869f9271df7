"""The exploration formulas once more: slow, one state at a time, in exact fractions.

Every function takes the Q-values of one state as a list of rows, `q[k][a]` for head k and action a. Nothing here is
shared with the package, so that the two can be wrong only independently. Numbers are fractions until a square root
or a logarithm makes them floats.
"""

import math
from fractions import Fraction


def argmax(values):
    """Return the index of the largest value, the lowest one of several."""
    best = 0
    for index, value in enumerate(values):
        if value > values[best]:
            best = index
    return best


def column(q, action):
    """Return what every head thinks of `action`."""
    return [Fraction(row[action]) for row in q]


def average(values):
    """Return the mean of a list of fractions."""
    return sum(values, Fraction(0)) / len(values)


def population_variance(values):
    """Return the mean squared distance to the mean."""
    centre = average(values)
    return average([(value - centre) ** 2 for value in values])


def mean_values(q):
    """Return m(a) for every action."""
    return [average(column(q, action)) for action in range(len(q[0]))]


def gain(q):
    """Return gain[k][a], case by case as equation 1 is explained in the text."""
    mean = mean_values(q)
    best = argmax(mean)
    second_mean = max(mean[action] for action in range(len(mean)) if action != best)
    table = []
    for row in q:
        gains = []
        for action, value in enumerate(row):
            if action == best and Fraction(value) < second_mean:
                gains.append(second_mean - Fraction(value))
            elif action != best and Fraction(value) > mean[best]:
                gains.append(Fraction(value) - mean[best])
            else:
                gains.append(Fraction(0))
        table.append(gains)
    return table


def evoi(q, reduce="mean"):
    """Return the mean (equation 2) or the sum over heads of the gain of every action."""
    totals = [sum(column(gain(q), action), Fraction(0)) for action in range(len(q[0]))]
    return [total / len(q) for total in totals] if reduce == "mean" else totals


def ucb(q, scale=1.0):
    """Return mean plus `scale` population standard deviations of every action."""
    scores = []
    for action in range(len(q[0])):
        values = column(q, action)
        scores.append(float(average(values)) + scale * math.sqrt(population_variance(values)))
    return scores


def boltzmann(values, temperature=1.0):
    """Return the probability of every action, in proportion to exp(value / temperature)."""
    weights = [math.exp((value - max(values)) / temperature) for value in values]
    return [weight / sum(weights) for weight in weights]


def disagreement(q):
    """Return the mean over actions of the standard deviation over heads."""
    return sum(math.sqrt(population_variance(column(q, action))) for action in range(len(q[0]))) / len(q[0])


def information_gain(q, temperature=1.0):
    """Return the mean over heads of the divergence of their policy from the average policy."""
    policies = [boltzmann(row, temperature) for row in q]
    total = 0.0
    for policy in policies:
        for action, probability in enumerate(policy):
            average_probability = sum(other[action] for other in policies) / len(policies)
            if probability > 0 and average_probability > 0:
                total += probability * math.log(probability / average_probability)
    return total / len(policies)


def information_ratio(q, regret_scale=0.1, noise_variance=1.0):
    """Return D(a)^2 / I(a) of every action; the lowest is chosen."""
    ratios = []
    for action in range(len(q[0])):
        mean, variance = average(column(q, action)), population_variance(column(q, action))
        highest = max(ucb(q, regret_scale))
        regret = highest - (float(mean) - regret_scale * math.sqrt(variance))
        information = math.log(1 + float(variance) / noise_variance) + 1e-5
        ratios.append(regret**2 / information)
    return ratios


def ballots(q):
    """Return the action that every head votes for."""
    return [argmax(row) for row in q]


def vote_counts(q):
    """Return how many heads vote for every action."""
    return [sum(1 for ballot in ballots(q) if ballot == action) for action in range(len(q[0]))]


def plurality_vote(q):
    """Return the action with the most votes; among equals the highest mean Q, then the lowest index."""
    counts, mean = vote_counts(q), mean_values(q)
    winner = None
    for action, count in enumerate(counts):
        if count < max(counts):
            continue
        if winner is None or mean[action] > mean[winner]:
            winner = action
    return winner


def mean_vote(q):
    """Return the action with the highest mean Q."""
    return argmax(mean_values(q))


def borda_tally(q):
    """One point for every action that a head values less, half a point for every other one it values the same."""
    actions = range(len(q[0]))
    return [sum((row[a] > row[b]) + 0.5 * (row[a] == row[b]) for row in q for b in actions if b != a) for a in actions]


def approval_tally(q):
    """A point from every head that values the action above its own average."""
    return [sum(row[a] > average(list(row)) for row in q) for a in range(len(q[0]))]


def copeland_tally(q):
    """A point for every other action that more heads rank below than above, half a point for a draw."""
    actions = range(len(q[0]))
    points = []
    for a in actions:
        total = 0.0
        for b in actions:
            if a != b:
                ahead, behind = sum(row[a] > row[b] for row in q), sum(row[a] < row[b] for row in q)
                total += 1.0 if ahead > behind else 0.5 if ahead == behind else 0.0
        points.append(total)
    return points


def gap_tally(q):
    """Every head gives its greedy action the distance to its second one; the only action of one gets a point."""
    totals = [0.0] * len(q[0])
    for row in q:
        best = argmax(list(row))
        rest = [value for a, value in enumerate(row) if a != best]
        totals[best] += row[best] - max(rest) if rest else 1.0
    return totals


def tallied_vote(q, tally):
    """The highest tally, of the tied the highest mean, of those the lowest index."""
    counted, means = tally(q), mean_values(q)
    tied = [a for a in range(len(counted)) if counted[a] == max(counted)]
    return min(tied, key=lambda a: (-means[a], a))


def vote_count_variance(q):
    """Return the population variance over actions of the vote counts."""
    return population_variance([Fraction(count) for count in vote_counts(q)])


def vote_entropy(q):
    """Return the entropy in nats of the shares of the vote."""
    entropy = 0.0
    for count in vote_counts(q):
        if count:
            entropy -= count / len(q) * math.log(count / len(q))
    return entropy


def distinct_actions(q):
    """Return how many actions have a vote."""
    return len(set(ballots(q)))


def action_index_variance(q):
    """Return the population variance over heads of the index voted for."""
    return population_variance([Fraction(ballot) for ballot in ballots(q)])


def algorithm_2(q, head, aggregate):
    """Return the action of the paper's Algorithm 2, line by line."""
    mean = mean_values(q)
    best, second = sorted(range(len(mean)), key=lambda action: -mean[action])[:2]

    def equation_1(h, action):
        value = Fraction(q[h][action])
        return max(mean[second] - value, Fraction(0)) if action == best else max(value - mean[best], Fraction(0))

    actions = range(len(mean))
    if aggregate:
        information = [sum(equation_1(k, action) for k in range(len(q))) / len(q) for action in actions]
    else:
        information = [equation_1(head, action) for action in actions]
    return argmax([Fraction(q[head][action]) + information[action] for action in actions])


def scores(name, q, head, scale=1.0, reduce="mean", regret_scale=0.1, noise_variance=1.0):
    """Return the score of every action under the strategy called `name`; the highest is chosen."""
    own = [Fraction(value) for value in q[head]]
    if name == "greedy":
        return own
    if name == "ucb":
        return ucb(q, scale)
    if name == "gain":
        return [value + Fraction(scale) * bonus for value, bonus in zip(own, gain(q)[head], strict=True)]
    if name == "evoi":
        return [value + Fraction(scale) * bonus for value, bonus in zip(own, evoi(q, reduce), strict=True)]
    if name == "ids":
        return [-ratio for ratio in information_ratio(q, regret_scale, noise_variance)]
    raise ValueError(f"the reference knows no strategy {name!r}")


def choice(name, q, head, **parameters):
    """Return the action that the strategy called `name` takes."""
    return argmax(scores(name, q, head, **parameters))
