"""RLTune's name for eval/philly_eval.py."""

from legacy.forward import forward

if __name__ == "__main__":
    forward("eval", "philly")
