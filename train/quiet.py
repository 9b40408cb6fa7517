"""TensorFlow loaded without its remarks about the machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing through to stderr; TensorFlow writes there from C++, before any setting of its own is read."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def load_tensorflow(seed: int, threads: int = 0) -> None:
    """Import TensorFlow and make it repeatable: equal seeds give equal numbers, on one machine.

    `threads` are those it computes with, 0 = as many as there are cores.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent():
        import keras
        import tensorflow as tf

        if threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.constant(0.0)
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(seed)
