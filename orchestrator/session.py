"""One sitting of a run: the jobs of a plan that have not ended, from a backend's start to their metrics."""

import dataclasses
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from berth.console import show_rows, tell
from berth.errors import ConfigError
from eval.ledger import Entry
from orchestrator.backends import BACKENDS, Setting
from orchestrator.bell import Bell
from orchestrator.host import Host
from orchestrator.loop import run_jobs
from orchestrator.metrics import Metrics
from orchestrator.plans import Plan
from orchestrator.running import Ended
from orchestrator.starting import Chooser

TOLD = 200
"""Runs of more jobs than this say nothing of single ones."""


class Session:
    """A plan, carried out; what had ended in earlier sittings is left alone."""

    def __init__(self, plan: Plan, chooser: Chooser, backend: str, folder: Path) -> None:
        self.plan, self.chooser, self.backend, self.folder = plan, chooser, backend, folder
        self.host = Host(plan.workload, chooser.needs_histories)
        self._rehearse()

    def go(self, metrics: Metrics) -> int:
        """Run what has not ended; returns the signal that asked to stop, 0 where all is done."""
        if not self.plan.session:
            self.plan = dataclasses.replace(self.plan, run=metrics.run, began=time.time())
        self._take_over(metrics)
        self.plan.write(self.folder)
        plan = self.plan
        if metrics.mended:
            tell(f"{metrics.path}: its last line was cut; it is left out, and its job runs again")
        settings = plan.settings
        with Bell() as bell:
            backend = BACKENDS[self.backend](
                Setting(
                    bell, settings["speedup"], settings["realtime"], settings["patience"],
                    plan.began if plan.session else None, float(max(self.host.end.max(), 0.0)),
                )
            )  # fmt: skip
            run_jobs(
                self.host, self.chooser, backend, lambda ended: self._record(metrics, ended), lambda: bool(bell.stopped)
            )
            return bell.stopped if self.host.unfinished else 0

    def report(self, metrics: Metrics) -> None:
        """Print what became of the jobs that have ended."""
        entries, plan, chooser = metrics.entries, self.plan, self.chooser
        failed = sum(not entry.success for entry in entries)
        tell(f"{metrics.path} and .csv: {len(entries):,} of {len(plan.workload):,} jobs have ended, {failed:,} failed")
        if entries:
            show_rows(
                f"{chooser.name} {chooser.discipline} on {plan.cores} cores, {self.backend}",
                ("jobs", "mean wait, s", "mean turnaround, s", "last end, s", "jobs/h"), [_totals(entries)],
            )  # fmt: skip

    def _take_over(self, metrics: Metrics) -> None:
        """Leave out what ended in earlier sittings; raises ConfigError where the metrics are of other jobs."""
        host, run = self.host, self.plan.run
        numbers = {name: number for number, name in enumerate(host.name)}
        for line, entry in enumerate(metrics.entries, 1):
            where = f"{metrics.path}:{line}: job {entry.job_id}"
            if entry.job_id not in numbers:
                raise ConfigError(f"{where} is none of run {run}; want its own metrics")
            i = numbers[entry.job_id]
            planned = {
                "run": run,
                "n": int(host.gpus[i]),
                "p": float(host.run_time[i]),
                "submit": float(host.submit[i]),
            }
            for name, value in planned.items():
                if getattr(entry, name) != value:
                    came = f"{name} {getattr(entry, name)}"
                    raise ConfigError(f"{where} has {came}, and {value} in the plan of run {run}; want its own metrics")
            host.finish(Ended(i, entry.start, entry.end))

    def _rehearse(self) -> None:
        """Have a decision made before anything is written, and before time counts.

        Compiled code is loaded then, and a policy that cannot decide says so.
        """
        first = Host(self.plan.workload, self.chooser.needs_histories)
        first.arrive(first.next_submit())
        self.chooser.choose(first.snapshot(float(first.submit[0])))

    def _record(self, metrics: Metrics, ended: Sequence[Ended]) -> None:
        """Write down what has ended."""
        entries = [self._entry(one) for one in ended]
        metrics.add(entries)
        if len(self.host.name) > TOLD:
            return
        for entry in entries:
            cores = f"{entry.n} core" + ("" if entry.n == 1 else "s")
            how = "" if entry.success else f"; {entry.reason}"
            tell(f"job {entry.job_id}: {cores}, waited {entry.queue_wait_s:.2f} s, ran {entry.duration_s:.2f} s{how}")

    def _entry(self, ended: Ended) -> Entry:
        """A job's row of metrics."""
        plan, host, settings = self.plan, self.host, self.plan.settings
        speedup, submit = settings["speedup"], float(host.submit[ended.number])
        return Entry(
            run=plan.run, session=plan.session, job_id=host.name[ended.number], policy=self.chooser.name,
            discipline=self.chooser.discipline, backend=self.backend, model=settings["rl_model_path"],
            cores=plan.cores, speedup=speedup, seed=settings["seed"], n=int(host.gpus[ended.number]),
            p=float(host.run_time[ended.number]), submit=submit, start=ended.start, end=ended.end,
            submit_time=self._moment(submit), start_time=self._moment(ended.start), end_time=self._moment(ended.end),
            queue_wait_s=(ended.start - submit) / speedup, duration_s=(ended.end - ended.start) / speedup,
            success=ended.success, reason=ended.reason, exit_code=ended.exit_code, user_s=ended.user_s,
            system_s=ended.system_s, max_rss_kb=ended.max_rss_kb, bogo_ops=ended.bogo_ops,
        )  # fmt: skip

    def _moment(self, seconds: float) -> str:
        passed = self.plan.began + seconds / self.plan.settings["speedup"]
        return datetime.fromtimestamp(passed, timezone.utc).isoformat(timespec="milliseconds")


def _totals(entries: list[Entry]) -> tuple[str, ...]:
    waits = np.array([entry.queue_wait_s for entry in entries])
    ran = np.array([entry.duration_s for entry in entries])
    last = max(entry.end / entry.speedup for entry in entries)
    per_hour = 3600 * len(entries) / last if last else float("nan")
    return (
        f"{len(entries):,}", f"{waits.mean():,.2f}", f"{(waits + ran).mean():,.2f}", f"{last:,.2f}", f"{per_hour:,.1f}",
    )  # fmt: skip
