"""RLTune's name for eval/helios_eval.py."""

from legacy.forward import forward

if __name__ == "__main__":
    forward("eval", "helios")
