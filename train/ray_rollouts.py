"""Episodes played by workers of Ray, whoever of them lives."""

import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from berth.console import tell
from berth.errors import ConfigError, SimulationError
from berth.ray_cluster import connect, disconnect, enter, fingerprint
from train.buffer import Batch
from train.checkpoint import weights_of
from train.config import Learning
from train.design import Shape
from train.playing import Episodes, Tick
from train.rollouts import Wanted

if TYPE_CHECKING:
    from train.ppo import Learner

PATIENCE = 300.0
"""Seconds without any worker after which a run gives up: a cluster that has lost its last node may get another."""

CROWD = 4
"""Workers for each core of this machine, at most; a cluster's nodes take as many as they have cores."""

DEATHS = 3
"""How often workers may die over one share before the share is taken for the reason."""


class Recipe(NamedTuple):
    """What a worker makes its environments and networks from; functions travel by their names."""

    config: Any
    parts: Any  # of the trace, from the object store
    make_env: Callable[[Any, Any, int], Any]  # settings, parts, how many
    make_learner: Callable[[Any, Shape], "Learner"]
    shape: Shape


class Weights(NamedTuple):
    """What networks know, as it is sent to all workers once an epoch."""

    arrays: dict[str, np.ndarray]
    scale: tuple[float, float, float]
    version: int


class Player:
    """A worker: on one core, with environments and networks of its own, it plays shares of epochs."""

    def __init__(self, recipe: Recipe, parts: Any, folder: str) -> None:
        import numba

        from train.quiet import load_tensorflow

        enter(folder)
        numba.set_num_threads(1)
        load_tensorflow(recipe.config.seed, threads=1)
        self.recipe, self.parts = recipe, parts
        self.learner = recipe.make_learner(recipe.config, recipe.shape)
        self.envs: dict[int, Any] = {}
        self.version = -1

    def ready(self) -> str:
        """Which Berth this is."""
        return fingerprint()

    def collect(self, weights: Weights, wanted: Wanted, count: int) -> tuple[Batch, Episodes, float]:
        """Play a share in so many environments, with these weights; and the seconds that it took."""
        from berth.streams import stream
        from train.rollouts import collect

        begin = time.perf_counter()
        if weights.version != self.version:
            take_weights(self.learner, weights)
            self.version = weights.version
        if count not in self.envs:
            self.envs[count] = self.recipe.make_env(self.recipe.config, self.parts, count)
        w = wanted
        rng = stream(w.seed, w.actions)
        batch, ended = collect(self.envs[count], self.learner, w.seeds, rng, w.exploration, w.gamma, w.lam, w.most)
        return batch, ended, time.perf_counter() - begin


def weights_to_send(learner: "Learner", version: int) -> Weights:
    """What a learner's networks know."""
    arrays = weights_of(learner.policy.variables, "pi") | weights_of(learner.value.variables, "vf")
    scale = learner.scale
    return Weights(arrays, (scale.mean, scale.variance, scale.count), version)


def take_weights(learner: "Learner", weights: Weights) -> None:
    """Give networks what was sent."""
    for name, variables in (("pi", learner.policy.variables), ("vf", learner.value.variables)):
        for i, variable in enumerate(variables):
            variable.assign(weights.arrays[f"{name}_{i}"])
    learner.set_scale(list(weights.scale))


def cut(wanted: Wanted, envs: int, share: int) -> list[tuple[Wanted, int]]:
    """The shares of an epoch, each with its number of environments; how many workers there are has no part in it.

    An epoch of whole episodes has `share` of them in each. One of so many decisions is cut by its environments, `envs`.
    A single share is the epoch itself, as this process would play it.
    """
    whole = len(wanted.seeds) if not wanted.most else envs
    count = -(-whole // share)
    if count == 1:
        return [(wanted, whole)]
    sizes = [len(part) for part in np.array_split(np.arange(whole), count)]
    ends = np.cumsum(sizes)
    borders = ends if not wanted.most else ends * len(wanted.seeds) // whole
    decisions = np.diff(ends * wanted.most // whole, prepend=0)
    return [
        (
            wanted._replace(
                seeds=wanted.seeds[(borders[k - 1] if k else 0) : borders[k]],
                actions=f"{wanted.actions} share {k}",
                most=int(decisions[k]),
            ),
            sizes[k],
        )
        for k in range(count)
    ]


def check_crowd(config: Learning) -> None:
    """Raise ConfigError for more workers than this machine can bear, where it is alone."""
    cores = os.cpu_count() or 1
    if not config.ray_address and config.workers > CROWD * cores:
        raise ConfigError(
            f"workers {config.workers:,}: this machine has {cores} core(s), want at most {CROWD * cores}, or more "
            "machines (--ray-address)"
        )


class Crew:
    """Workers that play the shares of an epoch; whoever dies is replaced, and the share is played again.

    A share is the same whoever plays it: its seeds, its stream of actions and the weights are given. So what comes out
    depends neither on how many workers there are, nor on who ends first, nor on who dies.
    """

    def __init__(self, config: Learning, recipe: Recipe, envs: int) -> None:
        self.config, self.envs, self.version = config, envs, 0
        check_crowd(config)
        shares = len(cut(Wanted([0] * (config.rollout_steps or config.trajs), 0, "", 0, 0, 0, config.rollout_steps),
                         envs, config.share))  # fmt: skip
        self.ray = connect(config.ray_address, min(config.workers, shares))
        self.recipe = self.ray.put(recipe._replace(parts=None))
        self.parts = self.ray.put(recipe.parts)
        asked = config.workers or self._cores()
        self.workers = min(asked, shares)  # nobody is hired who would have nothing to play
        if shares < asked:
            tell(f"note: an epoch has {shares} share(s), so {shares} of {asked} workers begin; a smaller --share "
                 "makes more")  # fmt: skip
        kind = self.ray.remote(Player)
        self._hire = lambda: kind.options(num_cpus=1, max_restarts=0).remote(self.recipe, self.parts, os.getcwd())
        self.coming: dict[Any, Any] = {}  # who will be ready -> worker
        self.idle: list[Any] = []
        self.lost = 0  # workers that died
        self.busiest = 0.0  # seconds that the busiest worker has played in the last epoch
        for _ in range(self.workers):
            self._replace()

    def _cores(self) -> int:
        """The cores of a cluster, on which nobody else need play."""
        cores = int(self.ray.cluster_resources().get("CPU", 0))
        if not cores:
            raise ConfigError(f"ray_address {self.config.ray_address}: the cluster has no cores; want nodes that do")
        return cores

    def _replace(self) -> None:
        worker = self._hire()
        self.coming[worker.ready.remote()] = worker

    def collect(self, learner: "Learner", wanted: Wanted, tick: Tick) -> tuple[Batch, Episodes]:
        """Play an epoch with the policy as it is."""
        self.version += 1
        weights = self.ray.put(weights_to_send(learner, self.version))
        shares = cut(wanted, self.envs, self.config.share)
        found: dict[int, tuple[Batch, Episodes]] = {}
        busy: dict[Any, float] = {}  # worker -> seconds
        left, deaths, since = deque(range(len(shares))), [0] * len(shares), time.monotonic()
        playing: dict[Any, tuple[Any, int]] = {}  # result -> worker, share
        while len(found) < len(shares):
            while left and self.idle:
                worker, number = self.idle.pop(), left.popleft()
                playing[worker.collect.remote(weights, *shares[number])] = worker, number
            (done,), _ = self._wait([*playing, *self.coming], since)
            since = time.monotonic()
            if done in self.coming:
                self._welcome(done)
                continue
            worker, number = playing.pop(done)
            result = self._result(done)
            if result is None:
                deaths[number] += 1
                if deaths[number] >= DEATHS:
                    raise SimulationError(
                        f"{DEATHS} workers died over share {number + 1} of {len(shares)}; out of memory? want a "
                        "smaller --share, or fewer --workers on a machine"
                    )
                left.appendleft(number)
                self._replace()
                continue
            found[number] = result[:2]
            busy[worker] = busy.get(worker, 0.0) + result[2]
            self.idle.append(worker)
            tick(sum(len(episodes.gain) for _, episodes in found.values()))
        self.busiest = max(busy.values())
        return joined([found[number] for number in range(len(shares))])

    def _wait(self, expected: list[Any], since: float) -> Any:
        """Wait until something has come; raises SimulationError where nobody has played for too long."""
        while True:
            came = self.ray.wait(expected, num_returns=1, timeout=5.0)
            if came[0]:
                return came
            if len(expected) == len(self.coming) and time.monotonic() - since > PATIENCE:
                cores = self.ray.cluster_resources().get("CPU", 0)
                raise SimulationError(
                    f"no worker for {PATIENCE:.0f} s: the cluster has {cores:g} cores, want one for each worker; "
                    "--resume_from goes on with the run"
                )

    def _welcome(self, done: Any) -> None:
        """Take on a worker that is ready; raises ConfigError where it has another Berth, or could not begin."""
        worker, errors = self.coming.pop(done), self.ray.exceptions
        try:
            its = self.ray.get(done)
        except errors.RayTaskError as trouble:
            raise ConfigError(f"a worker cannot begin: {_said(trouble)}; want this Berth on every node") from None
        except errors.RayActorError as trouble:
            if getattr(trouble, "actor_init_failed", False) or "__init__" in str(trouble):
                raise ConfigError(f"a worker cannot begin: {_said(trouble)}; want this Berth on every node") from None
            self._mourn()
            self._replace()
            return
        if its != fingerprint():
            raise ConfigError(f"a worker has Berth {its}, this is {fingerprint()}; want the same on every node")
        self.idle.append(worker)

    def _result(self, done: Any) -> tuple[Batch, Episodes, float] | None:
        """What a worker has collected; None where it, or its node with the result, is lost."""
        errors = self.ray.exceptions
        try:
            result: tuple[Batch, Episodes, float] = self.ray.get(done)
        except errors.RayTaskError:
            raise
        except (errors.RayActorError, errors.ObjectLostError, errors.WorkerCrashedError):
            self._mourn()
            return None
        return result

    def _mourn(self) -> None:
        self.lost += 1
        tell("a worker died; another takes its place, and what it played is played again")

    def close(self) -> None:
        """Send the workers home, and leave Ray."""
        disconnect()


def _said(trouble: Exception) -> str:
    """The last line of what Ray tells of a mistake."""
    return [line for line in str(trouble).splitlines() if line.strip()][-1].strip()


def joined(parts: list[tuple[Batch, Episodes]]) -> tuple[Batch, Episodes]:
    """Shares of an epoch as one, in their order."""
    if len(parts) == 1:
        return parts[0]
    batches, episodes = zip(*parts, strict=True)
    return (
        Batch(*(np.concatenate(columns) for columns in zip(*batches, strict=True))),
        Episodes(*(np.concatenate(columns) for columns in zip(*episodes, strict=True))),
    )
