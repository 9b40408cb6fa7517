"""RLTune's name for eval/alibaba_eval.py."""

from legacy.forward import forward

if __name__ == "__main__":
    forward("eval", "alibaba")
