"""What Slurm's commands print as JSON, read into rows."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from berth.errors import SchedulerError
from envs.snapshot import DOWN, DRAINED, UP
from orchestrator.slurm_state import Job, Node

COUNTED = ("gpus", "cpus")
"""What can stand for the GPUs of a Snapshot."""

ENDED = frozenset({
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
})  # fmt: skip
"""States of jobs that have ended."""

_AWAY = frozenset({"DOWN", "ERROR", "UNKNOWN", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN", "INVALID_REG"})
_CLOSED = frozenset({
    "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINTENANCE", "MAINT", "RESERVED", "REBOOT_REQUESTED",
    "REBOOT_ISSUED", "POWERING_DOWN", "PLANNED_DOWN", "BLOCKED",
})  # fmt: skip
_GRES = re.compile(r"(?:gres[:/])?gpu(?::[^:=,()]+)*?(?:[:=](\d+))?(?:\(.*\))?$")
_IN_ALL = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_MEMORY = re.compile(r"(?:^|,)mem=(\d+(?:\.\d+)?)([KMGTP]?)")
_UNITS = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


def jobs(text: str, counted: str, skipped: list[str]) -> list[Job]:
    """The jobs of `squeue --json`; one that cannot be read is named in `skipped`."""
    return list(_rows(text, "jobs", lambda told: _job(told, counted), skipped))


def nodes(text: str, counted: str, skipped: list[str]) -> list[Node]:
    """The nodes of `sinfo --json`, or of `scontrol show nodes --json`."""
    return list(_rows(text, "nodes", lambda told: _node(told, counted), skipped))


def ended(text: str, counted: str, skipped: list[str]) -> list[Job]:
    """The jobs of `sacct --json` that have ended."""
    found = _rows(text, "jobs", lambda told: _accounted(told, counted), skipped)
    return [job for job in found if job.state in ENDED and job.gpus > 0]


def gpus_of(words: str) -> int:
    """GPUs of a list such as gpu:v100:4(IDX:0-3),gpu:a100:2 or gres:gpu:2; a kind without a number counts as one."""
    total = 0
    for word in re.split(r",(?![^(]*\))", words.replace("(null)", "null")):
        found = _GRES.fullmatch(word.strip())
        if found:
            total += 1 if found[1] is None else int(found[1])
    return total


def in_all(tres: str) -> int:
    """GPUs of a list of trackable resources (cpu=4,mem=1G,gres/gpu=2), 0 where it does not tell."""
    found = _IN_ALL.search(tres)
    return int(found[1]) if found else 0


def expanded(words: str) -> list[str]:
    """Nodes of Slurm's short form: n[1-3,7],m2."""
    names: list[str] = []
    for word in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)?", words):
        head, bracket, rest = word.partition("[")
        if not bracket:
            names.append(word)
            continue
        inside, _, tail = rest.partition("]")
        for part in inside.split(","):
            low, dash, high = part.partition("-")
            if not low.isdecimal() or (dash and not high.isdecimal()) or (dash and int(high) - int(low) > 100_000):
                raise ValueError(f"{words!r} is no list of nodes")
            numbers = range(int(low), int(high or low) + 1)
            names += [f"{head}{number:0{len(low)}d}{tail}" for number in numbers]
    return names


def _rows(text: str, section: str, read: Any, skipped: list[str]) -> Iterator[Any]:
    """What is read of each row; raises SchedulerError where the text is no answer of Slurm."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as trouble:
        raise SchedulerError(f"Slurm's JSON cannot be read ({trouble}); want an object with {section}") from None
    if not isinstance(told, dict) or not isinstance(told.get(section), list):
        raise SchedulerError(f"Slurm's JSON has no list of {section}; is this Slurm 21.08 or newer?")
    for row in told[section]:
        try:
            yield read(row)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as trouble:
            name = (row.get("job_id") or row.get("name")) if isinstance(row, dict) else row
            skipped.append(f"{str(name)[:40]}: {type(trouble).__name__}: {trouble}")


def _number(value: Any) -> float:
    """A number, plain or as newer Slurms tell it ({"set": true, "infinite": false, "number": 5}); NaN for none."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    if value is None or isinstance(value, str | bool):
        return math.nan
    return float(value)


def _count(value: Any, default: int = 0) -> int:
    number = _number(value)
    return default if math.isnan(number) else int(number)


def _moment(value: Any) -> float:
    """A time in seconds since 1970, NaN where it is not known (0)."""
    return _number(value) or math.nan


def _state(value: Any) -> str:
    """A state, which newer Slurms tell as a list; RUNNING goes before the flags that come with it."""
    words = [str(word).upper() for word in (value if isinstance(value, list) else [value])]
    return words[0].split()[0] if words and words[0] else ""


def _word(told: dict[str, Any]) -> tuple[str, int]:
    """What scontrol calls a job, and the number of its array."""
    array, task = _count(told.get("array_job_id")), _number(told.get("array_task_id"))
    listed = str(told.get("array_task_string") or "").partition("%")[0]
    if not array:
        return str(_count(told["job_id"])), 0
    if listed:
        if "..." in listed:
            raise ValueError(f"array {array} has tasks that are not told: {listed}")
        return f"{array}_[{listed}]", array
    return (f"{array}_{int(task)}" if not math.isnan(task) else str(array)), array


def _asked_gpus(told: dict[str, Any], nodes: int, tasks: int) -> int:
    """GPUs that a job asks for, by whichever of Slurm's ways of asking it has used."""
    for name in ("tres_alloc_str", "tres_req_str"):
        found = in_all(str(told.get(name) or ""))
        if found:
            return found
    per = {"tres_per_job": 1, "tres_per_node": nodes, "tres_per_task": tasks, "tres_per_socket": nodes}
    return max(gpus_of(str(told.get(name) or "")) * times for name, times in per.items())


def _places(told: dict[str, Any], counted: str) -> tuple[tuple[str, int], ...]:
    """Where a job runs."""
    names = expanded(str(told.get("nodes") or ""))
    if counted == "gpus":
        shares = [gpus_of(str(words)) for words in told.get("gres_detail") or ()]
    else:
        resources = told.get("job_resources") or {}
        listed = resources.get("allocated_nodes") or []
        shares = [_cores(node) for node in listed] if isinstance(listed, list) else []
    return tuple(zip(names, shares, strict=True)) if len(shares) == len(names) else ()


def _cores(node: dict[str, Any]) -> int:
    """Cores that a job has on a node."""
    sockets = node.get("sockets") or {}
    return sum(len(socket.get("cores") or {}) for socket in sockets.values())


def _job(told: dict[str, Any], counted: str) -> Job:
    word, array = _word(told)
    state, nodes = _state(told["job_state"]), max(1, _count(told.get("node_count"), 1))
    cores = _count(told.get("cpus"))
    places = _places(told, counted) if state != "PENDING" else ()
    asked = cores if counted == "cpus" else _asked_gpus(told, nodes, max(1, _count(told.get("tasks"), 1)))
    runs = state == "RUNNING" or state == "SUSPENDED"
    limit = _number(told.get("time_limit")) * 60
    held = sum(gpus for _, gpus in places)
    memory = _MEMORY.search(str(told.get("tres_req_str") or ""))
    return Job(
        id=_count(told["job_id"]),
        word=word,
        user=str(told.get("user_name") or _count(told.get("user_id"))),
        account=str(told.get("account") or ""),
        partitions=tuple(part for part in str(told.get("partition") or "").split(",") if part),
        state=state,
        submit=_number(told["submit_time"]),
        gpus=held if runs and held else asked,
        array=array,
        reason=str(told.get("state_reason") or ""),
        eligible=_moment(told.get("eligible_time")),
        start=_moment(told.get("start_time")) if state != "PENDING" else math.nan,
        end=_moment(told.get("end_time")) if state in ENDED else math.nan,
        limit=limit,
        priority=_count(told.get("priority")),
        nice=_count(told.get("nice")),
        comment=str(told.get("comment") or ""),
        restarts=_count(told.get("restart_cnt")),
        nodes=nodes,
        cores=cores,
        memory=float(memory[1]) * _UNITS[memory[2]] if memory else 0.0,
        asked=str(told.get("required_nodes") or ""),
        places=places if runs else (),
    )


def _node(told: dict[str, Any], counted: str) -> Node:
    listed = told.get("state")
    words = {str(word).upper() for word in (listed if isinstance(listed, list) else [listed])}
    words |= {str(word).upper() for word in told.get("state_flags") or ()}
    state = DOWN if words & _AWAY else DRAINED if words & _CLOSED else UP
    cores, used_cores = _count(told.get("cpus")), _count(told.get("alloc_cpus"))
    if counted == "gpus":
        gpus, used = gpus_of(str(told.get("gres") or "")), gpus_of(str(told.get("gres_used") or ""))
    else:
        gpus, used = cores, used_cores
    return Node(
        name=str(told["name"]),
        partitions=tuple(str(name) for name in told.get("partitions") or ()),
        state=state,
        gpus=gpus,
        used=used,
        cores=cores,
        used_cores=used_cores,
        memory=_count(told.get("real_memory")),
        used_memory=_count(told.get("alloc_memory")),
    )


def _accounted(told: dict[str, Any], counted: str) -> Job:
    """A job as the accounting tells it."""
    times, tres = told["time"], told.get("tres") or {}
    wanted = {"gpus": ("gres", "gpu"), "cpus": ("cpu", "")}[counted]
    shares = [
        _count(row.get("count"))
        for row in tres.get("allocated") or tres.get("requested") or ()
        if (str(row.get("type")), str(row.get("name") or "")) == wanted
    ]
    state = told.get("state") or {}
    return Job(
        id=_count(told["job_id"]),
        word=str(_count(told["job_id"])),
        user=str(told.get("user") or (told.get("association") or {}).get("user") or ""),
        account=str(told.get("account") or ""),
        partitions=(str(told.get("partition") or ""),),
        state=_state(state.get("current") if isinstance(state, dict) else state),
        submit=_number(times["submission"]),
        gpus=sum(shares),
        start=_moment(times["start"]),
        end=_moment(times["end"]),
        limit=_number(times.get("limit")) * 60,
    )
