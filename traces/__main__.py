"""python -m traces: write the sample traces that ship in GPU_Traces/."""

from dataclasses import dataclass
from pathlib import Path

from berth.commandline import option, parse, run
from traces.formatted import write
from traces.generate import PUBLISHED, generate

FILES = {
    "philly": "Philly_Formatted_withGPUType.csv",
    "helios": "Helios_Formatted_withGPUType.csv",
    "alibaba": "Alibaba_Formatted_withGPUType.csv",
    "synthetic": "synthetic_trace.csv",
}


@dataclass(frozen=True)
class Config:
    """What `python -m traces` takes."""

    jobs: int = option(10000, "jobs per file")
    seed: int = option(1, "seed of all random numbers")
    out: str = option("GPU_Traces", "folder to write to", metavar="DIR")


def main() -> None:
    """Write one file per cluster."""
    config = parse(Config, description="Write the sample traces, one per cluster, as formatted 19-column files.")
    for cluster, name in FILES.items():
        path = Path(config.out) / name
        write(generate(PUBLISHED[cluster], config.jobs, config.seed, cluster), path)
        print(f"{path}: {config.jobs:,} jobs")


if __name__ == "__main__":
    run(main)
