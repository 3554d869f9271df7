"""A sweep on a cluster, second by second: slow, and without a formula."""

from bootdqn.runs.lock import STALE_AFTER_SECONDS


def course(lengths, *, nodes, slots, interval, startup, replacement, failures):
    """Return when the last run ends, how many failures met a node, and how many seconds were trained twice.

    All times are whole seconds: of each run, from one checkpoint to the next, before a run trains, and until a node is
    replaced. `failures` are pairs of time and node. Every run takes one slot of a node.
    """
    queue = [{"left": length, "locked": 0, "resumed": False} for length in lengths]
    on_node, down_until = [[] for _ in range(nodes)], [0] * nodes
    met, repeated, now = 0, 0, 0
    while True:
        on_node = [[run for run in runs if run["left"]] for runs in on_node]
        if not queue and not any(on_node):
            return now, met, repeated
        for node in {node for time, node in failures if time == now and down_until[node] <= now}:
            met, down_until[node] = met + 1, now + replacement
            for run in on_node[node]:
                repeated += run["unsaved"]
                queue.append({"left": run["left"] + run["unsaved"], "locked": now + STALE_AFTER_SECONDS})
            on_node[node] = []
        while queue:
            free = [node for node in range(nodes) if down_until[node] <= now and len(on_node[node]) < slots]
            if not free:
                break
            node = min(free, key=lambda one: len(on_node[one]))
            run = queue.pop(0)
            on_node[node].append(run | {"unsaved": 0, "wait": startup + max(0, run["locked"] - now)})
        now += 1
        for run in (run for runs in on_node for run in runs):
            if run["wait"]:
                run["wait"] -= 1
            else:
                run["left"] -= 1
                run["unsaved"] = (run["unsaved"] + 1) % interval
