"""Train a policy on the alibaba cluster."""

from berth.commandline import run
from train.run import main

if __name__ == "__main__":
    run(lambda: main("alibaba"))
