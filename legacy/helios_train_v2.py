"""RLTune's name for train/helios_train.py."""

from legacy.forward import forward

if __name__ == "__main__":
    forward("train", "helios")
