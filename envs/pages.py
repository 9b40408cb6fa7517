"""The pages about the environments, written from the code they describe."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from berth.commandline import written_whole
from envs.clusters import CLUSTERS
from envs.episode import sizes
from envs.observation import JOB_FEATURES, LOOKAHEAD_TEXTS, POOL_FEATURES, Feature, lookahead_layout
from envs.options import Options
from envs.registration import IDS
from envs.reward import REWARDS, SCORES
from envs.sim.cluster import Cluster, node_arrays

_CHOOSERS = {"": "one pool for all", "vc": "its virtual cluster", "gpu_type": "the GPU type it asks for"}


def write_pages(folder: Path) -> list[Path]:
    """Write one page for each environment, and one that lists them; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in all_pages().items():
        with written_whole(folder / name) as begun:
            begun.write_text(text)
        written.append(folder / name)
    return written


def all_pages() -> dict[str, str]:
    """The pages by the names of their files."""
    pages = {f"{cluster}.md": page(name, CLUSTERS[cluster]) for name, cluster in IDS.items()}
    listed = "\n".join(f"- [`{name}`]({cluster}.md)" for name, cluster in IDS.items())
    pages["README.md"] = f"""# Environments

{listed}

`import envs` lets `gymnasium.make` know them. They differ in the cluster and its trace; everything else is the same,
and stated as mathematics in [mdp.md](../mdp.md). `python -m envs pages` writes these pages;
a test keeps them true.

## Arguments
Keywords of `gymnasium.make` and `gymnasium.make_vec`, and flags of the programs.

{_table(("argument", "default", "meaning"), [_argument(field) for field in fields(Options)])}
`make_vec` takes `num_envs`, `autoreset_mode` (`NextStep`, `SameStep`, `Disabled`) and `copy` (False: observations are
the arrays that the next step writes to again) as well.
"""
    return pages


def page(name: str, cluster: Cluster) -> str:
    """The page of one environment."""
    options = Options(cluster=cluster.name)
    pools = cluster.topology(cluster.default_topology)
    nodes = node_arrays(pools)
    numbers, actions = sizes(options, nodes)
    looks = lookahead_layout(nodes)
    rows = [
        (pool.name, ", ".join(f"{count} × {gpus}" for count, gpus in pool.nodes), str(sum(pool.capacity)),
         f"{look['at']} to {look['at'] + look['count'] - 1}")
        for pool, look in zip(pools, looks, strict=True)
    ]  # fmt: skip
    own = [(str(i), f"`{f.name}`", f.text) for i, f in enumerate(POOL_FEATURES)]
    return f"""# {name}

{_about(cluster)} The sample is `{cluster.trace}`; `workload` takes another trace.

```python
import gymnasium, envs

env = gymnasium.make("{name}")
seen, info = env.reset(seed=0)
seen, reward, terminated, truncated, info = env.step(seen["mask"].argmax())  # as the baseline does
many = gymnasium.make_vec("{name}", num_envs=64)
```

| | |
|---|---|
| action space | `Discrete({actions})`; with `action_mode="fit"` `Discrete({actions + 1})`, the last of which waits |
| `jobs` | `Box(0, 1, ({options.window}, {len(JOB_FEATURES)}), float32)` |
| `cluster` | `Box(0, 1, ({numbers},), float32)` |
| `mask` | `MultiBinary({actions})`, as many as there are actions; 1 where one can be taken |

## Pools ({cluster.default_topology})
A job runs in the pool given by: {_CHOOSERS[cluster.pool_by]}.

{_table(("pool", "nodes × GPUs", "GPUs", "lookahead in `cluster`"), rows)}
## `jobs`: one row for each slot
Empty slots are zeros.

{_features(JOB_FEATURES)}
## `cluster`: {len(POOL_FEATURES)} numbers for each pool, then the lookahead
Pool p has the numbers {len(POOL_FEATURES)}·p to {len(POOL_FEATURES)}·p + {len(POOL_FEATURES) - 1}:

{_table(("", "feature", "meaning"), own)}
The lookahead tells when GPUs will be free, as far as `runtime_info` lets that be known; its length is the same in every
`lookahead_mode`:

{_table(("mode", "values of a pool"), [(f"`{mode}`", text) for mode, text in LOOKAHEAD_TEXTS.items()])}
## Rewards
{_table(("`score_type`", "number", "of the scored jobs"), [(f"`{s}`", str(x.code), x.text) for s, x in SCORES.items()])}
{_table(("`reward`", "given"), [(f"`{name}`", text) for name, text in REWARDS.items()])}
F = (base − agent) / max(base, agent, 1), for utilization agent − base. To choose as the baseline does earns exactly 0.

## Info
`reset`: `first` (number of the window's first job), `baseline_score`. Always: `invalid_actions` (masked actions
that were replaced, so far). At the end: `score`, `baseline_score`, `gain` (F), `decisions`.

`env.unwrapped.notes` says what was left out of the workload and why; with a `workload` of your own it is a warning.

All arguments: [README.md](README.md).
"""


def _about(cluster: Cluster) -> str:
    pools = cluster.topology(cluster.default_topology)
    gpus, nodes = sum(sum(p.capacity) for p in pools), sum(len(p.capacity) for p in pools)
    what = "pool" if len(pools) == 1 else "pools"
    return f"Schedule the queue of the {cluster.name} cluster: {gpus} GPUs on {nodes} nodes in {len(pools)} {what}."


def _argument(field: object) -> tuple[str, str, str]:
    """One line of the table of arguments."""
    default = getattr(field, "default", "")
    told = getattr(field, "metadata", {})
    choices = f" ({', '.join(f'`{choice}`' for choice in told['choices'])})" if told["choices"] else ""
    shown = "" if default in ("", None) else f"`{default}`"
    return f"`{getattr(field, 'name', '')}`", shown, f"{told['help']}{choices}"


def _features(features: tuple[Feature, ...]) -> str:
    return _table(("column", "feature", "meaning"), [(str(i), f"`{f.name}`", f.text) for i, f in enumerate(features)])


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
