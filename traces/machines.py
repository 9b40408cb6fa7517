"""Machine lists of the public traces: Philly's, PAI's, openb's, and Helios's GPUs per virtual cluster."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from berth.errors import TraceError
from traces.cells import Kind, identity, moment, name, number
from traces.source import Source, first_lines, header, read_text
from traces.table import MOST_GPUS, Table, cut


class MachineList(NamedTuple):
    """Nodes of a cluster, by the pool they belong to; machines without a GPU are left out."""

    pools: Mapping[str, tuple[tuple[int, int], ...]]  # pool -> (how many nodes, GPUs each) ...
    pool_by: str  # the trace column that names a job's pool, "" for one pool over all


PHILLY = {"machineId": identity, "number of GPUs": number, "single GPU mem": name}
PAI = {"machine": identity, "gpu_type": name, "cap_cpu": number, "cap_mem": number, "cap_gpu": number}
OPENB = {"sn": identity, "cpu_milli": number, "memory_mib": number, "gpu": number, "model": name}
SPOT = {"node_name": identity, "gpu_model": name, "gpu_capacity_num": number, "cpu_num": number}
GPUS_PER_NODE = 8
"""Of every node of Helios."""


def _named(kinds: Mapping[str, Kind]) -> Callable[[list[str]], bool]:
    """Recognise a list by its header row."""
    return lambda head: header(head) == list(kinds)


def _sniff_pai(head: list[str]) -> bool:
    words = header(head)
    return words == list(PAI) or (len(words) == len(PAI) and all(word.isdecimal() for word in words[2:]))


def _sniff_helios(head: list[str]) -> bool:
    words = header(head)
    return words[0] == "date" and words[-1] == "total"


def _read_philly(source: Source) -> MachineList:
    table = cut(source, PHILLY)
    return _pools(table, "machineId", "number of GPUs", None)


def _read_pai(source: Source) -> MachineList:
    return _pools(cut(source, PAI), "machine", "cap_gpu", "gpu_type")


def _read_openb(source: Source) -> MachineList:
    return _pools(cut(source, OPENB), "sn", "gpu", None)


def _read_spot(source: Source) -> MachineList:
    return _pools(cut(source, SPOT), "node_name", "gpu_capacity_num", "gpu_model")


def _read_helios(source: Source) -> MachineList:
    """The latest day's GPUs of each virtual cluster, in nodes of eight."""
    first, *rows = [line for line in source.text.split("\n") if line.strip()]
    vcs = first.strip().split(",")[1:-1]
    kinds: dict[str, Kind] = {"date": moment} | {vc: number for vc in vcs} | {"total": number}
    if not rows:
        raise TraceError(f"{source.path}: no day in it, want at least one")
    table = cut(source, kinds)
    day = table.times("date")
    for vc in vcs:
        table.check(vc, (table[vc] >= 0) & (table[vc] % GPUS_PER_NODE == 0), f"a multiple of {GPUS_PER_NODE} GPUs")
    table.require()
    last = {vc: int(table[vc][np.argmax(day)]) for vc in vcs}
    return MachineList({vc: ((gpus // GPUS_PER_NODE, GPUS_PER_NODE),) for vc, gpus in last.items() if gpus}, "vc")


def _pools(table: Table, identifier: str, gpus: str, kind: str | None) -> MachineList:
    """Nodes of equal size counted, in pools by GPU type or in one."""
    table.unique(identifier)
    count = table.numbers(gpus, most=MOST_GPUS)
    table.check(gpus, count == np.floor(count), "a whole number")
    table.require()
    pool = table[kind].tolist() if kind else ["all"] * len(table)
    sizes: dict[str, Counter[int]] = {}
    for where, size in zip(pool, count.astype(int).tolist(), strict=True):
        if size:
            sizes.setdefault(where, Counter())[size] += 1
    found = {where: tuple((many, size) for size, many in sorted(counts.items())) for where, counts in sizes.items()}
    return MachineList(found, "gpu_type" if kind else "")


LISTS: dict[str, tuple[Callable[[list[str]], bool], Callable[[Source], MachineList]]] = {
    "philly": (_named(PHILLY), _read_philly),
    "openb": (_named(OPENB), _read_openb),
    "spot": (_named(SPOT), _read_spot),
    "helios": (_sniff_helios, _read_helios),
    "pai": (_sniff_pai, _read_pai),
}
"""Every kind of machine list: how it is recognised and read."""


def recognise(head: list[str]) -> str:
    """The kind of machine list that begins with these lines, "" for none."""
    return next((kind for kind, (sniff, _) in LISTS.items() if head and sniff(head)), "")


def read_machines(path: str) -> MachineList:
    """Read a machine list, plain or .gz; raises TraceError for a file that is none, or has no GPU in it."""
    text = read_text(path)
    head = first_lines(text)
    kind = recognise(head)
    if not kind:
        shown = repr(head[0][:60]) if head else "nothing"
        raise TraceError(f"{path}: begins with {shown}, want a machine list of {', '.join(LISTS)} (docs/formats.md)")
    machines = LISTS[kind][1](Source(path, text))
    if not machines.pools:
        raise TraceError(f"{path}: no machine with a GPU in it, want at least one")
    return machines
