"""Compare trained models with heuristics on the synthetic cluster."""

from berth.commandline import run
from eval.run import main

if __name__ == "__main__":
    run(lambda: main("synthetic"))
