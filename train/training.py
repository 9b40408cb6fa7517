"""A training run of any kind: its course from settings to a report, and how it is gone on with."""

import json
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from berth.commandline import written_whole
from berth.console import tell
from berth.errors import SimulationError
from berth.streams import stream
from train.checkpoint import BEST, LAST, SEEN, Checkpoint, find, load, put_weights, save, weights_of
from train.config import Learning, to_settings
from train.quiet import load_tensorflow
from train.resume import make_room
from train.schedules import exploration_at, rate_at

if TYPE_CHECKING:
    from envs.many import ManyEnvs
    from train.design import Shape
    from train.ppo import Learner
    from train.ray_rollouts import Recipe
    from train.rollouts import Collector

ROUND = 1024
"""Decisions that an environment takes at least where an epoch is so many decisions, not so many episodes."""


class Training(ABC):
    """A run: what it has learned, and how far it is."""

    def __init__(self, config: Learning, folder: Path, checkpoint: Checkpoint | None = None) -> None:
        load_tensorflow(config.seed)
        from train.logger import EpochLogger
        from train.screen import Screen

        self.config, self.folder = config, folder
        self.epoch, self.interacts, self.seconds = 0, 0, 0.0
        self.waited = 0  # looks at the validation windows without improvement
        self.begun = False  # whether it has been looked at before the first epoch
        self.best: tuple[dict[str, np.ndarray], dict[str, Any]] | None = None
        episodes = config.trajs
        if config.rollout_steps:  # few enough environments that episodes come to their ends
            episodes = min(config.num_envs, max(1, config.rollout_steps // self.round))
        self.env = self.make_env("train", 1 if config.is_spread else episodes)
        self.val_env = self.make_env("validation", config.val_windows)
        splits = (("train", self.env), ("validation", self.val_env))
        self.seen = {f"{SEEN}_{split}": self.sketch(env) for split, env in splits}
        self.learner = self.make_learner(self.shape_of(self.env))
        if checkpoint is not None:
            self._restore(checkpoint)
        elif config.pre_trained:
            start_from(self.learner, load(find(config.trained_model, "--trained_model")))
        self.collector = self._collector(episodes)
        make_room(folder, checkpoint is not None)
        if self.best is not None:
            save(folder / BEST, *self.best)
        self.logger = EpochLogger(folder, to_settings(config), self.epoch)
        self.screen = Screen(config, self.epoch)
        self._state = self._snapshot()

    @property
    def round(self) -> int:
        """Decisions in which an environment should see what episodes are like."""
        return ROUND

    @property
    def how_to_go_on(self) -> str:
        """What a user who has stopped it can do."""
        return f"To go on: --resume_from {self.folder}"

    @abstractmethod
    def make_env(self, split: str, episodes: int) -> "ManyEnvs":
        """Environments of a split, as many as are worth while for so many episodes."""

    @abstractmethod
    def sketch(self, env: "ManyEnvs") -> np.ndarray:
        """A few bits by which the jobs of environments are known again; none where jobs are made anew."""

    @abstractmethod
    def shape_of(self, env: "ManyEnvs") -> "Shape":
        """What the networks need to know of environments."""

    @abstractmethod
    def make_learner(self, shape: "Shape") -> "Learner":
        """The networks that the settings ask for."""

    @abstractmethod
    def recipe(self) -> "Recipe":
        """What workers make environments and networks from."""

    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the workload."""

    @abstractmethod
    def prepare(self) -> None:
        """What comes before the first epoch."""

    @abstractmethod
    def test(self) -> dict[str, Any] | None:
        """Play what nobody has learned from with the best policy, and others; print and return what came of it."""

    def _collector(self, episodes: int) -> "Collector":
        """Who plays: this process, or workers, who share the environments that it would have."""
        from train.rollouts import InProcess

        if not self.config.is_spread:
            return InProcess(self.env)
        from train.ray_rollouts import Crew

        return Crew(self.config, self.recipe(), episodes)

    @property
    def best_gain(self) -> float:
        """The highest gain on the validation windows so far."""
        return -np.inf if self.best is None else float(self.best[1]["val_gain"])

    def go(self) -> None:
        """Reset, collect, update, log; until the epochs are over, or nothing improves."""
        for note in self.notes():
            tell(note)
        tell(f"{self.folder}: {self.learner.policy.count_params():,} weights in the policy")
        try:
            with self.screen:
                if not self.begun:
                    self._begin()
                while not self._is_over():
                    self.one_epoch()
        except KeyboardInterrupt:
            save(self.folder / LAST, *self._state)
            epoch = self._state[1]["epoch"]
            tell(f"stopped; {LAST} is as of epoch {epoch}. {self.how_to_go_on}")
            sys.exit(130)
        finally:
            self.collector.close()
        save(self.folder / LAST, *self._state)
        self._report()

    def _is_over(self) -> bool:
        c = self.config
        enough = 0 < c.total_timesteps <= self.interacts
        return self.epoch >= c.epochs or enough or 0 < c.early_stopping_patience <= self.waited

    def _begin(self) -> None:
        """Leave a first checkpoint; prepare; see what the policy is worth before it learns."""
        save(self.folder / LAST, *self._state)
        self.prepare()
        self._look({})
        self.begun, self.waited = True, 0  # patience is for epochs: what came before may have been looked at often
        self._state = self._snapshot()
        save(self.folder / LAST, *self._state)

    def one_epoch(self) -> None:
        """Collect decisions, learn from them, look at the validation windows, and write it all down."""
        from train.rollouts import Wanted

        c, epoch, begin = self.config, self.epoch, time.perf_counter()
        exploration = exploration_at(*c.exploration, epoch)
        pi_lr, vf_lr = (rate_at(c.lr_schedule, r, epoch, c.lr_decay_epochs, c.lr_warmup_steps) for r in c.rates)
        count = c.rollout_steps or c.trajs
        seeds = stream(c.seed, f"windows {epoch}").integers(2**31, size=count).tolist()
        self.screen.collecting(epoch, c.trajs)
        wanted = Wanted(seeds, c.seed, f"actions {epoch}", exploration, c.gamma, c.lam, c.rollout_steps)
        batch, episodes = self.collector.collect(self.learner, wanted, self.screen.tick)
        collected = time.perf_counter()
        self.screen.updating()
        told = self.learner.update(batch, stream(c.seed, f"minibatches {epoch}"), pi_lr, vf_lr, exploration)
        updated = time.perf_counter()
        if not np.isfinite([told.loss_pi, told.loss_v, told.entropy, told.grad_norm]).all():
            raise SimulationError(
                f"epoch {epoch + 1}: the losses are no numbers any more; {LAST} is from before. Lower --lr?"
            )
        self.epoch, self.interacts = epoch + 1, self.interacts + len(batch.action)
        log = self.logger
        log.store(Epoch=self.epoch)
        log.store_episodes(episodes)
        log.store_many("VVals", batch.value)
        log.store(
            TotalEnvInteracts=self.interacts, LossPi=told.loss_pi, LossV=told.loss_v, DeltaLossPi=told.delta_loss_pi,
            DeltaLossV=told.delta_loss_v, Entropy=told.entropy, KL=told.kl, ClipFrac=told.clip_frac,
            StopIter=told.stop_iter, GradNorm=told.grad_norm, ExplainedVariance=told.explained, LearningRate=pi_lr,
            ValueLearningRate=vf_lr, Exploration=exploration, CollectTime=collected - begin,
            UpdateTime=updated - collected,
        )  # fmt: skip
        looked: dict[str, float] = dict.fromkeys(("ValGain", "ValScore", "ValBaseline"), float("nan"))
        if self.epoch % c.val_every == 0:
            self._look(looked)
        self.seconds += time.perf_counter() - begin
        log.store(**looked, Time=self.seconds)
        self._state = self._snapshot()
        self.screen.epoch(log.dump())
        if self.epoch % c.save_freq == 0:
            save(self.folder / LAST, *self._state)

    def _look(self, looked: dict[str, float]) -> None:
        """Play the validation windows; keep the policy if it is the best so far."""
        from train.rollouts import judge

        self.screen.judging(self.config.val_windows)
        seeds = stream(0, "validation windows").integers(2**31, size=self.config.val_windows).tolist()
        episodes = judge(self.val_env, self.learner, seeds, self.screen.tick)
        gain = float(episodes.gain.mean())
        looked |= {
            "ValGain": gain, "ValScore": float(episodes.agent.mean()), "ValBaseline": float(episodes.baseline.mean()),
        }  # fmt: skip
        self.waited = 0 if gain > self.best_gain + self.config.early_stopping_threshold else self.waited + 1
        if gain > self.best_gain:
            arrays = dict(self.seen)
            for name, variables in (("pi", self.learner.policy.variables), ("vf", self.learner.value.variables)):
                arrays |= {key: array.copy() for key, array in weights_of(variables, name).items()}
            self.best = arrays, self._about() | {"val_gain": gain, "val_epoch": self.epoch}
            save(self.folder / BEST, *self.best)

    def _report(self) -> None:
        """Let the best policy be tested, once; keep what came of it."""
        if self.epoch % self.config.val_every:  # not a part of the run: it may be gone on with from before
            with self.screen:
                self._look({})
        best = load(self.folder / BEST)
        start_from(self.learner, best)
        c, gain, epoch = self.config, best.told["val_gain"], best.told["val_epoch"]
        outcome: dict[str, Any] = {"VAL": {"gain": gain, "epoch": epoch, "windows": c.val_windows}}
        tell(f"VAL     gain {gain:+.4f} on {c.val_windows} windows of the validation split (the best: epoch {epoch})")
        table = self.test()
        if table is not None:
            outcome["REPORT"] = table
        with written_whole(self.folder / "report.json") as begun:
            begun.write_text(json.dumps(outcome, indent=1) + "\n")
        tell(f"{self.folder}: {BEST}, {LAST}, progress.txt, curve.csv, report.json, config.json, TensorBoard's events")

    def _about(self) -> dict[str, Any]:
        scale = self.learner.scale
        return {"settings": to_settings(self.config), "scale": [scale.mean, scale.variance, scale.count]}

    def _snapshot(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All that a run is gone on from: weights, optimisers, normalisation, counters; random streams have names."""
        arrays = dict(self.seen)
        for name, variables in _parts(self.learner).items():
            arrays |= {key: array.copy() for key, array in weights_of(variables, name).items()}
        if self.best is not None:
            arrays |= {f"best_{name}": array for name, array in self.best[0].items()}
        told = {
            "epoch": self.epoch, "interacts": self.interacts, "seconds": self.seconds, "waited": self.waited,
            "begun": self.begun, "best": None if self.best is None else self.best[1],
        }  # fmt: skip
        return arrays, self._about() | told

    def _restore(self, checkpoint: Checkpoint) -> None:
        for name, variables in _parts(self.learner).items():
            put_weights(variables, checkpoint, name)
        told = checkpoint.told
        self.learner.set_scale(told["scale"])
        self.epoch, self.interacts, self.seconds = told["epoch"], told["interacts"], told["seconds"]
        self.waited, self.begun = told["waited"], told["begun"]
        if told["best"] is not None:
            best = {n.removeprefix("best_"): a for n, a in checkpoint.arrays.items() if n.startswith("best_")}
            self.best = best, told["best"]


def _parts(learner: "Learner") -> dict[str, list[Any]]:
    """All variables that change in a run, by name."""
    return {
        "pi": learner.policy.variables, "vf": learner.value.variables, "pi_optimizer": learner.pi_optimizer.variables,
        "vf_optimizer": learner.vf_optimizer.variables,
    }  # fmt: skip


def start_from(learner: "Learner", checkpoint: Checkpoint) -> None:
    """Give networks the weights of a checkpoint; one that ships has none for the value function, which stays."""
    put_weights(learner.policy.variables, checkpoint, "pi")
    if any(name.startswith("vf_") for name in checkpoint.arrays):
        put_weights(learner.value.variables, checkpoint, "vf")
    learner.set_scale(checkpoint.told["scale"])
