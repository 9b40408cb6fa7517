"""What the networks of host selection are made from, whoever computes them."""

from envs.sim.hosts import FEATURES

STRETCH = 4.0
"""By what use, sizes and demands, all in [0, 1], are stretched around a half."""


def host_layers(hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The arrays of a policy's network with their shapes, in the order in which checkpoints have them."""
    sizes = [("host", FEATURES, hidden[0]), ("job", 2, hidden[0]), ("mean", hidden[0], hidden[0])]
    sizes += [(f"judge_{i}", hidden[i - 1], hidden[i]) for i in range(1, len(hidden))]
    sizes.append(("logit", hidden[-1], 1))
    found: dict[str, tuple[int, ...]] = {}
    for name, inputs, width in sizes:
        found[f"{name}/kernel"], found[f"{name}/bias"] = (inputs, width), (width,)
    return found
