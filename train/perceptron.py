"""What exported policies compute at every decision, compiled: single calls of NumPy would take longer than their work.

Tokens stand as (numbers, tokens), so that the inner loops run over tokens, which the compiler turns into vectors.
"""

import numba
import numpy as np

from berth.compiled import F
from envs.sim.observing import GREATEST
from train.design import AROUND, FITS, MASKED, RESIDUAL, WAIT
from train.host_design import STRETCH
from train.packing import STEPS

SLOPE = np.float32(0.2)
"""Of the leaky ReLU below 0, as Keras has it."""

_PULL, _WAIT, _MASKED = np.float32(RESIDUAL * GREATEST), np.float32(WAIT), np.float32(MASKED)
_STRETCH, _LEAST = np.float32(STRETCH), 1e-9
_STEPS, _HALF, _STEP = np.float32(STEPS), np.float32(0.5), np.float32(1.0 / STEPS)


def _njit(function: F) -> F:
    """Compile with fused multiplications and additions, which round once instead of twice."""
    compiled: F = numba.njit(cache=True, error_model="numpy", fastmath={"contract"})(function)
    return compiled


@_njit
def repacked(numbers: np.ndarray) -> np.ndarray:
    """Numbers (any,) as the networks saw them in training: packed to two bytes, and unpacked (train/packing.py)."""
    found = np.empty(len(numbers), np.float32)
    for i in range(len(numbers)):
        found[i] = np.float32(np.uint16(np.float32(numbers[i]) * _STEPS + _HALF)) * _STEP
    return found


@_njit
def repacked_rows(table: np.ndarray, count: int) -> np.ndarray:
    """The same of the first rows of a table."""
    return repacked(table[:count].ravel()).reshape(count, table.shape[1])


@_njit
def leaky(x: np.ndarray) -> None:
    """Leaky ReLU of a table, in place."""
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            x[i, t] = max(x[i, t], SLOPE * x[i, t])


@_njit
def layer(x: np.ndarray, weights: np.ndarray, at: int, out: np.ndarray) -> int:
    """Write out (width, tokens) of x (inputs, tokens), before its activation; tells where the next weights begin.

    The layer's weights are weights[at:]: its kernel (inputs, width), then its bias (width,).
    """
    inputs, width, tokens = x.shape[0], out.shape[0], x.shape[1]
    bias = at + inputs * width
    fours = inputs - inputs % 4
    for j in range(width):
        for t in range(tokens):
            out[j, t] = weights[bias + j]
        for i in range(0, fours, 4):  # four at once: the sums are read and written a quarter as often
            a, b = weights[at + i * width + j], weights[at + (i + 1) * width + j]
            c, d = weights[at + (i + 2) * width + j], weights[at + (i + 3) * width + j]
            for t in range(tokens):
                out[j, t] += a * x[i, t] + b * x[i + 1, t] + c * x[i + 2, t] + d * x[i + 3, t]
        for i in range(fours, inputs):
            a = weights[at + i * width + j]
            for t in range(tokens):
                out[j, t] += a * x[i, t]
    return bias + width


@_njit
def row_layer(x: np.ndarray, weights: np.ndarray, at: int, out: np.ndarray) -> int:
    """The same for a single token: out (width,) of x (inputs,)."""
    inputs, width = len(x), len(out)
    bias = at + inputs * width
    out[:] = weights[bias : bias + width]
    for i in range(inputs):
        for j in range(width):
            out[j] += x[i] * weights[at + i * width + j]
    return bias + width


@_njit
def leaky_row(x: np.ndarray) -> None:
    """Leaky ReLU of a row, in place."""
    for i in range(len(x)):
        x[i] = max(x[i], SLOPE * x[i])


@_njit
def deeper(x: np.ndarray, weights: np.ndarray, at: int, widths: np.ndarray) -> tuple[np.ndarray, int]:
    """The layers after the first, each with its activation; the last numbers, and where the next weights begin."""
    for i in range(1, len(widths)):
        out = np.empty((widths[i], x.shape[1]), np.float32)
        at = layer(x, weights, at, out)
        leaky(out)
        x = out
    return x, at


@_njit
def judge(
    tokens: np.ndarray, cluster: np.ndarray, shown: np.ndarray, weights: np.ndarray, widths: np.ndarray, waits: bool
) -> tuple[np.ndarray, float]:
    """What every token (tokens, inputs) is worth by the same weights, and what waiting is worth, if it can be chosen.

    shown (tokens,) is above 0 for those that count where waiting is judged. The weights are those of `context`,
    `judge_0` ..., `worth`, `around`, `wait`, one after the other.
    """
    count = len(tokens)
    context = np.empty(widths[0], np.float32)
    at = row_layer(cluster, weights, 0, context)
    x = np.empty((widths[0], count), np.float32)
    at = layer(np.ascontiguousarray(tokens.T), weights, at, x)
    for j in range(widths[0]):
        for t in range(count):
            x[j, t] += context[j]
    leaky(x)
    x, at = deeper(x, weights, at, widths)
    worth = np.empty((1, count), np.float32)
    at = layer(x, weights, at, worth)
    wait = np.zeros(1, np.float32)
    if waits:
        last = len(x)
        around, inner = np.zeros(last + widths[0], np.float32), np.empty(AROUND, np.float32)
        some = np.float32(0.0)
        for t in range(count):
            if shown[t] > 0:
                some += np.float32(1.0)
                for j in range(last):
                    around[j] += x[j, t]
        for j in range(last):
            around[j] /= max(some, np.float32(1.0))
        leaky_row(context)
        around[last:] = context
        at = row_layer(around, weights, at, inner)
        leaky_row(inner)
        row_layer(inner, weights, at, wait)
    return worth[0], wait[0]


@_njit
def settle(
    worth: np.ndarray, wait: float, jobs: np.ndarray, prior: np.ndarray, residual: bool, waits: bool
) -> np.ndarray:
    """Logits of jobs, below which a residual policy's keys pull them, and of waiting beside the best that fits."""
    count = len(worth)
    found = np.empty(count + waits, np.float32)
    best, some = np.float32(0.0), False
    for i in range(count):
        found[i] = worth[i] - _PULL * prior[i] if residual else worth[i]
        if jobs[i, FITS] > 0 and (found[i] > best or not some):
            best, some = found[i], True
    if waits:
        found[count] = best + wait - _WAIT
    return found


@_njit
def likeliest(found: np.ndarray, mask: np.ndarray, window: int, logits: np.ndarray) -> int:
    """The best action that the mask allows; logits (actions,) are written, empty slots and masked actions far below."""
    shown = len(found) - (len(mask) - window)
    logits[:] = _MASKED
    best = 0
    for action in range(len(mask)):
        if mask[action] and (action < shown or action >= window):
            logits[action] = found[action] if action < shown else found[shown + action - window]
            if logits[action] > logits[best] or not mask[best]:
                best = action
    return best


@_njit
def see_hosts(hosts: np.ndarray, free: np.ndarray) -> np.ndarray:
    """What is seen of hosts (hosts, 4), all in [0, 1]: use and size, from what they (hosts, 2) have and have free."""
    seen = np.empty((len(hosts), 4), np.float32)
    for k in range(2):
        largest = _LEAST
        for h in range(len(hosts)):
            largest = max(largest, hosts[h, k])
        for h in range(len(hosts)):
            seen[h, k] = min(max(1.0 - free[h, k] / max(hosts[h, k], _LEAST), 0.0), 1.0)
            seen[h, 2 + k] = min(max(hosts[h, k] / largest, 0.0), 1.0)
    return seen


@_njit
def judge_hosts(hosts: np.ndarray, job: np.ndarray, weights: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Logits (hosts,) of hosts (hosts, features) and a job (2,), all in [0, 1], packed and unpacked as in training.

    The weights are those of `host`, `job`, `mean`, `judge_1` ..., `logit`, one after the other.
    """
    count, first = len(hosts), widths[0]
    seen = np.empty((hosts.shape[1], count), np.float32)
    for h in range(count):
        row = repacked(hosts[h])
        for k in range(len(row)):
            seen[k, h] = (row[k] - _HALF) * _STRETCH
    codes, mean = np.empty((first, count), np.float32), np.zeros(first, np.float32)
    at = layer(seen, weights, 0, codes)
    for j in range(first):
        for h in range(count):
            mean[j] += max(codes[j, h], SLOPE * codes[j, h])
        mean[j] /= np.float32(count)
    wanted, around = np.empty(first, np.float32), np.empty(first, np.float32)
    at = row_layer((repacked(job) - _HALF) * _STRETCH, weights, at, wanted)
    at = row_layer(mean, weights, at, around)
    for j in range(first):
        for h in range(count):
            codes[j, h] += wanted[j] + around[j]
    leaky(codes)
    codes, at = deeper(codes, weights, at, widths)
    logits = np.empty((1, count), np.float32)
    layer(codes, weights, at, logits)
    return logits[0]
