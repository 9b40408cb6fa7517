"""Compare trained models with heuristics on the philly cluster."""

from berth.commandline import run
from eval.run import main

if __name__ == "__main__":
    run(lambda: main("philly"))
