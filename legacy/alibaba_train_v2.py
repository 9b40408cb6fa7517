"""RLTune's name for train/alibaba_train.py."""

from legacy.forward import forward

if __name__ == "__main__":
    forward("train", "alibaba")
