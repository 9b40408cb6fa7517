"""Compare trained models with heuristics on the helios cluster."""

from berth.commandline import run
from eval.run import main

if __name__ == "__main__":
    run(lambda: main("helios"))
