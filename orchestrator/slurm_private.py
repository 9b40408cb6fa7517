"""A private Slurm of a few nodes on this machine's loopback, to try the agent on."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

if __name__ == "__main__":  # this folder is first on the path then, where `import orchestrator` finds a script
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from berth.commandline import option, parse, run
from berth.console import tell
from berth.errors import ConfigError, SchedulerError

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo", "sprio")
"""The programs of Debian's packages slurm-wlm and munge that a private Slurm is made of."""

PATIENCE = 60.0
"""Seconds that daemons may take to come up, or to go."""

SETTINGS = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityCalcPeriod": "1",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "sched_interval=1,sched_min_interval=100000,bf_interval=1,bf_max_job_test=3000,"
    "default_queue_depth=3000,batch_sched_delay=0,bf_continue",
    "MaxJobCount": "5000",
    "MinJobAge": "3600",
}
"""What a trial may set otherwise: jobs of seconds must start promptly, and what has ended must be seen."""

DESCRIPTION = """Run a Slurm of a few nodes on loopback, until stopped; wants root, and Debian's slurm-wlm and munge.

  python orchestrator/slurm_private.py --folder /tmp/trial     # prints what to export; then, elsewhere: sbatch ...
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/slurm_private.py takes."""

    nodes: int = option(4, "nodes")
    gpus: int = option(4, "GPUs of each")
    folder: str = option("", "a new folder for its files; default: a temporary one", metavar="FOLDER")


def missing() -> str:
    """Why no private Slurm can be had here, "" where one can."""
    if os.geteuid() != 0:
        return "not root, who alone may run jobs of several users"
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    absent = [name for name in NEEDED if shutil.which(name, path=path) is None]
    return f"no {', '.join(absent)}: want Debian's packages slurm-wlm and munge" if absent else ""


class PrivateSlurm:
    """A controller and some node daemons in a folder of their own; ports are free ones of 127.0.0.1.

    A context manager: what was started is ended by the process ids in its own files, and the folder goes.
    """

    def __init__(
        self, nodes: int = 4, gpus: int = 4, folder: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        why = missing()
        if why:
            raise ConfigError(f"a private Slurm: {why}")
        self.is_temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="berth-slurm-")) if folder is None else folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.gpus = gpus
        self.settings = {**SETTINGS, **(settings or {})}
        self.ports = _free_ports(nodes + 1)
        self.conf = self.folder / "slurm.conf"
        self.completed = self.folder / "jobcomp.txt"

    @property
    def surroundings(self) -> dict[str, str]:
        """Environment variables that point Slurm's commands here."""
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}

    def __enter__(self) -> "PrivateSlurm":
        self.write()
        try:
            self.start_munge()
            self.start_controller()
            for name in self.names:
                self.start_node(name)
            self.wait_until_idle()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, trouble: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_jobs()
        for name in self.names:
            self.stop(f"slurmd.{name}.pid")
        self.stop("slurmctld.pid")
        self.stop("munged.pid")
        if self.is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def write(self) -> None:
        """Write the configuration, a key of its own, and files that stand for GPUs."""
        for i in range(self.gpus):
            (self.folder / f"gpu{i}").touch()
        for name in ("state", "spool", "jobs", *(f"spool/{name}" for name in self.names)):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "jobs").chmod(0o777)
        key = self.folder / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(1024))
        self.conf.write_text("\n".join(self._lines()) + "\n", encoding="utf-8")
        files = f"{self.folder}/gpu[0-{self.gpus - 1}]" if self.gpus > 1 else f"{self.folder}/gpu0"
        gres = "".join(f"NodeName={name} Name=gpu Type=v100 File={files}\n" for name in self.names)
        (self.folder / "gres.conf").write_text(gres, encoding="utf-8")

    def _lines(self) -> list[str]:
        """The lines of slurm.conf."""
        host, here = socket.gethostname(), self.folder
        fixed = {
            "ClusterName": "trial",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": str(self.ports[0]),
            "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={here}/munge.socket",
            "CredType": "cred/munge",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "MpiDefault": "none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "GresTypes": "gpu",
            "ReturnToService": "2",
            "SlurmdParameters": "config_overrides",
            "StateSaveLocation": f"{here}/state",
            "SlurmdSpoolDir": f"{here}/spool/%n",
            "SlurmctldPidFile": f"{here}/slurmctld.pid",
            "SlurmdPidFile": f"{here}/slurmd.%n.pid",
            "SlurmctldLogFile": f"{here}/slurmctld.log",
            "SlurmdLogFile": f"{here}/slurmd.%n.log",
            "JobCompType": "jobcomp/filetxt",
            "JobCompLoc": str(self.completed),
            "AccountingStorageType": "accounting_storage/none",
            "DefMemPerCPU": "10",
            "SlurmdTimeout": "300",
            "MessageTimeout": "30",
            "KillWait": "2",
        }
        lines = [f"{key}={value}" for key, value in {**fixed, **self.settings}.items() if value]
        for name, port in zip(self.names, self.ports[1:], strict=True):
            lines.append(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 RealMemory=16000 "
                f"Gres=gpu:v100:{self.gpus}"
            )
        every = ",".join(self.names)
        lines.append(f"PartitionName=gpu Nodes={every} Default=YES MaxTime=INFINITE State=UP")
        lines.append(f"PartitionName=other Nodes={every} MaxTime=INFINITE State=UP")
        return lines

    def start_munge(self) -> None:
        """Start a munge daemon of our own."""
        here = self.folder
        words = [
            "munged", "--force", f"--socket={here}/munge.socket", f"--key-file={here}/munge.key",
            f"--pid-file={here}/munged.pid", f"--seed-file={here}/munged.seed", f"--log-file={here}/munged.log",
        ]  # fmt: skip
        self._daemon(words)

    def start_controller(self, *flags: str) -> None:
        """Start the controller, which goes on with what it was doing."""
        self._daemon(["slurmctld", "-f", str(self.conf), *flags])
        end = time.monotonic() + PATIENCE
        while self.run("scontrol", "ping", check=False).find("is UP") < 0:
            if time.monotonic() > end:
                raise SchedulerError(f"slurmctld does not answer; {self.folder}/slurmctld.log may tell why")
            time.sleep(0.1)

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        self._daemon(["slurmd", "-N", name, "-f", str(self.conf)])

    def end_jobs(self) -> None:
        """End all jobs, which would outlive their node's daemon; nothing where the controller is not up."""
        end = time.monotonic() + 15.0
        while (self.folder / "slurmctld.pid").exists() and time.monotonic() < end:
            left = self.run("squeue", "-h", "-t", "PD,R,CG", "-o", "%A", check=False).split()
            if not left or not all(word.isdecimal() for word in left):
                return
            self.run("scancel", "--signal=KILL", "--full", *left, check=False)
            self.run("scancel", *left, check=False)
            time.sleep(0.3)

    def stop_controller(self, kill: bool = False) -> None:
        """Stop the controller; jobs that run go on."""
        self.stop("slurmctld.pid", signal.SIGKILL if kill else signal.SIGTERM)

    def stop(self, file: str, with_signal: int = signal.SIGTERM) -> None:
        """End the daemon whose process id a file of ours has, and wait until it is gone."""
        try:
            process = int((self.folder / file).read_text())
            os.kill(process, with_signal)
        except (OSError, ValueError):
            return  # it has gone already
        end = time.monotonic() + PATIENCE
        while _lives(process) and time.monotonic() < end:
            time.sleep(0.05)
        if _lives(process):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        (self.folder / file).unlink(missing_ok=True)

    def wait_until_idle(self) -> None:
        """Wait until every node has reported; raises SchedulerError where one does not."""
        end = time.monotonic() + PATIENCE
        while True:
            told = self.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%t", check=False).split()
            if len(told) == len(self.names) and set(told) == {"idle"}:
                return
            if time.monotonic() > end:
                raise SchedulerError(f"nodes are {', '.join(told) or 'not there'}; logs are in {self.folder}")
            time.sleep(0.2)

    def run(self, *words: str, check: bool = True, user: str = "") -> str:
        """What a command prints here; raises SchedulerError where it fails and `check` is not off."""
        done = subprocess.run(
            words, env=self.surroundings, capture_output=True, text=True, cwd=self.folder / "jobs", timeout=PATIENCE,
            user=user or None, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise SchedulerError(f"{' '.join(words)}: exit {done.returncode}, {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def submit(self, script: str, *flags: str, user: str = "", gpus: int = 1, limit: str = "1") -> int:
        """Submit a job of some GPUs, one node where they fit on one; returns its number."""
        nodes = -(-gpus // self.gpus)
        room = ("-N", str(nodes), "--ntasks-per-node", "1", f"--gpus-per-node={min(gpus, self.gpus)}")
        words = ("sbatch", "--parsable", "-o", "/dev/null", "-t", limit, *room, *flags, "--wrap", script)
        return int(self.run(*words, user=user).strip().splitlines()[-1].partition(";")[0])

    def _daemon(self, words: Sequence[str]) -> None:
        self.run(*words)


def _lives(process: int) -> bool:
    """Whether a process is there; one that has ended and was not waited for is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody has."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


def main() -> None:
    """Run a private Slurm until interrupted."""
    config = parse(Config, description=DESCRIPTION)
    if config.nodes < 1 or config.gpus < 1:
        raise ConfigError(f"--nodes {config.nodes} --gpus {config.gpus}: want at least 1 of each")
    folder = Path(config.folder) if config.folder else None
    with PrivateSlurm(config.nodes, config.gpus, folder) as slurm:
        tell(f"export SLURM_CONF={slurm.conf}")
        tell("up; Ctrl-C ends it")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.pause()


if __name__ == "__main__":
    run(main)
