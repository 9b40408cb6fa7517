"""Compare a trained policy that names hosts with the baselines, on episodes that are always the same."""

from berth.commandline import run
from eval.host_judging import main

if __name__ == "__main__":
    run(main)
