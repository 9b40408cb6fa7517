"""How the v2 command names reach the new programs."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def forward(folder: str, cluster: str) -> None:
    """Run FOLDER/CLUSTER_FOLDER.py with this program's flags, under the experiment's name that v2 had.

    v2 trained one epoch by default and kept runs in data/logs/CLUSTER_v2; a flag that is given goes before that.
    """
    named = f"{cluster}_v2"
    defaults = {"train": {"--exp_name": named, "--epochs": "1"}, "eval": {"--rlmodel": f"data/logs/{named}/{named}_s0"}}
    given = {word.split("=")[0].replace("-", "_").replace("__", "--", 1) for word in sys.argv[1:]}
    resumed = {"--resume_from", "--resume", "--config"} & given
    more = [word for flag, value in defaults[folder].items() if flag not in given and not resumed
            for word in (flag, value)]  # fmt: skip
    program = ROOT / folder / f"{cluster}_{folder}.py"
    sys.argv = [str(program), *more, *sys.argv[1:]]
    runpy.run_path(str(program), run_name="__main__")
