"""Train a policy that names a host for every job."""

from berth.commandline import run
from train.host_run import main

if __name__ == "__main__":
    run(main)
