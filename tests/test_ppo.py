"""PPO's parts, against explicit sums, hand-made batches and what symmetry demands."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.buffer import Buffer, advantages, discount_cumsum
from train.packing import STEPS, pack
from train.quiet import load_tensorflow

load_tensorflow(0)

import tensorflow as tf  # noqa: E402

from envs.observation import JOB_FEATURES  # noqa: E402
from envs.sim.observing import GREATEST  # noqa: E402
from train.design import AROUND, FITS, RESIDUAL, SITUATION, SLOT, WAIT, Design, Shape  # noqa: E402
from train.networks import NETWORKS, build  # noqa: E402
from train.ppo import Learner, Rules, Scale, clip_loss, entropy_of, log_probabilities  # noqa: E402


def _learner(architecture, design, rules):
    return Learner(build(architecture, design), design, rules)


SHAPE = Shape(window=6, cluster=9 * 2 + 5, actions=6, pools=((18, 2), (20, 3)))
WAITING = SHAPE._replace(actions=7)
RULES = Rules(0.2, 0.0, 0.5, 1.0, 4, 64, 1, 0.0, True, True)

numbers = st.floats(-5, 5)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), numbers, st.floats(0, 1), st.floats(0, 1))
def test_advantages_are_the_explicit_sum(path, last, gamma, lam):
    rewards, values = np.array(path).T
    ahead = [*values[1:], last]
    deltas = [r + gamma * v1 - v for r, v, v1 in zip(rewards, values, ahead, strict=True)]
    expected = [
        sum((gamma * lam) ** k * deltas[t + k] for k in range(len(path) - t)) for t in range(len(path))
    ]  # fmt: skip
    np.testing.assert_allclose(advantages(rewards, values, last, gamma, lam), expected, atol=1e-9)


def test_sums_of_what_is_to_come():
    assert discount_cumsum(np.array([1.0, 2.0, 4.0]), 0.5).tolist() == [3.0, 4.0, 4.0]


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20))
def test_packing_is_fine_enough(values):
    array = np.array(values, np.float32)
    np.testing.assert_allclose(pack(array) / STEPS, array, atol=0.6 / STEPS)


def test_the_buffer_keeps_paths_apart_and_grows():
    rng = np.random.default_rng(0)
    like = {"choices": np.zeros((2, 3, 1), np.uint16), "around": np.zeros((2, 1), np.uint16),
            "mask": np.zeros((2, 3), np.int8), "prior": np.zeros((2, 0), np.uint16)}  # fmt: skip
    buffer = Buffer(like, room=3)
    rewards, values = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)).astype(np.float32)
    for t in range(9):
        buffer.store(**like, path=np.array([0, 1]), action=np.array([t, 10 + t]), reward=rewards[t])
    batch = buffer.finish(values.ravel(), values.ravel(), {1: 2.5}, 0.9, 0.8)
    for path, last in ((0, 0.0), (1, 2.5)):
        mine = batch.action // 10 == path
        assert batch.action[mine].tolist() == [10 * path + t for t in range(9)]
        expected = advantages(rewards[:, path], values[:, path].astype(float), last, 0.9, 0.8)
        np.testing.assert_allclose(batch.advantage[mine], expected, rtol=1e-5)
        np.testing.assert_allclose(batch.target[mine], expected + values[:, path], rtol=1e-4, atol=1e-5)


def test_clip_loss_and_gradient_by_hand():
    old = np.log([0.5, 0.5, 0.5, 0.5]).astype(np.float32)
    advantage = np.array([1.0, 1.0, -1.0, -1.0], np.float32)
    logp = tf.Variable(np.log([0.55, 0.75, 0.55, 0.25]).astype(np.float32))  # ratios 1.1, 1.5, 1.1, 0.5
    with tf.GradientTape() as tape:
        loss, kl, clipped = clip_loss(logp, old, advantage, 0.2)
    # min(1.1, 1.1) = 1.1; min(1.5, 1.2) = 1.2; min(-1.1, -1.1) = -1.1; min(-0.5, -0.8) = -0.8
    assert float(loss) == pytest.approx(-(1.1 + 1.2 - 1.1 - 0.8) / 4, rel=1e-5)
    assert float(clipped) == 0.5
    assert float(kl) == pytest.approx(np.mean([r - 1 - np.log(r) for r in (1.1, 1.5, 1.1, 0.5)]), rel=1e-4)
    # d(ratio A)/d(logp) = ratio A where it is not clipped, else 0
    np.testing.assert_allclose(tape.gradient(loss, logp).numpy(), [-1.1 / 4, 0, 1.1 / 4, 0], atol=1e-6)


@pytest.mark.parametrize("exploration", [0.0, 0.3, 1.0])
def test_masked_actions_have_no_probability_and_no_gradient(exploration):
    logits = tf.Variable([[2.0, 50.0, -1.0, 0.5], [9.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    mask = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], np.int8)
    with tf.GradientTape(persistent=True) as tape:
        logp = log_probabilities(logits, mask, tf.constant(exploration))
        entropy = tf.reduce_sum(entropy_of(logp))
        chosen = tf.reduce_sum(tf.where(tf.cast(mask, tf.bool), logp, 0.0))
    p = np.exp(logp.numpy())
    assert (p[mask == 0] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-5)
    assert p[1, 2] == pytest.approx(1.0)
    plain = np.exp([2.0, -1.0, 0.5]) / np.exp([2.0, -1.0, 0.5]).sum()
    np.testing.assert_allclose(p[0][mask[0] == 1], (1 - exploration) * plain + exploration / 3, rtol=1e-4)
    for value in (entropy, chosen):
        gradient = tape.gradient(value, logits).numpy()
        assert np.isfinite(gradient).all()
        assert (gradient[mask == 0] == 0).all()
        np.testing.assert_allclose(gradient[1], 0, atol=1e-6)  # one valid slot: nothing to learn


def test_entropy():
    logp = np.log(np.array([[0.5, 0.5, 1e-30], [1.0, 1e-30, 1e-30]])).astype(np.float32)
    np.testing.assert_allclose(entropy_of(logp).numpy(), [np.log(2), 0], atol=1e-5)


@given(st.lists(st.lists(numbers, min_size=1, max_size=9), min_size=1, max_size=6))
def test_running_moments_are_those_of_all_values(parts):
    scale = Scale()
    for part in parts:
        scale.see(np.array(part))
    everything = np.concatenate([np.array(part) for part in parts])
    assert scale.mean == pytest.approx(everything.mean(), abs=1e-9)
    assert scale.variance == pytest.approx(everything.var(), abs=1e-9)


def observations(rng, shape, batch=3, residual=False):
    jobs = rng.random((batch, shape.window, len(JOB_FEATURES))).astype(np.float32)
    jobs[:, -2:] = 0.0  # empty slots
    prior = rng.random((batch, shape.window)).astype(np.float32) if residual else np.zeros((batch, shape.window))
    return jobs, rng.random((batch, shape.cluster)).astype(np.float32), prior.astype(np.float32)


@pytest.mark.parametrize("shape", [SHAPE, WAITING], ids=["reserve", "fit"])
@pytest.mark.parametrize("architecture", NETWORKS)
def test_permuted_slots_permute_the_logits(architecture, shape):
    rng = np.random.default_rng(1)
    policy, value = build(architecture, Design(shape, (8, 4), True, 3))
    for variable in policy.trainable_variables:  # away from the small first weights
        variable.assign(rng.normal(0, 0.5, variable.shape).astype(np.float32))
    jobs, cluster, prior = observations(rng, shape, residual=True)
    order = rng.permutation(shape.window)
    plain = policy((jobs, cluster, prior)).numpy()
    moved = policy((jobs[:, order], cluster, prior[:, order])).numpy()
    assert plain.shape == (3, shape.actions)
    same = np.allclose(moved[:, : shape.window], plain[:, order], atol=1e-4)
    assert same == (architecture != "mlp")
    if architecture != "mlp":
        np.testing.assert_allclose(moved[:, shape.window :], plain[:, shape.window :], atol=1e-4)  # waiting
        values = value((jobs, cluster, prior)).numpy(), value((jobs[:, order], cluster, prior)).numpy()
        np.testing.assert_allclose(*values, atol=1e-4)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_first_weights_are_the_seeds_and_no_two_layers_are_alike(architecture):
    one, again, other = (build(architecture, Design(WAITING, (8, 4), False, seed)) for seed in (0, 0, 1))
    for network, same, different in zip(one, again, other, strict=True):
        kernels = [[w for w in net.get_weights() if np.any(w)] for net in (network, same, different)]
        assert all((a == b).all() for a, b in zip(kernels[0], kernels[1], strict=True))
        assert not any((a == b)[a != 0].any() for a, b in zip(kernels[0], kernels[2], strict=True))
        for i, a in enumerate(kernels[0]):
            assert not any(a.shape == b.shape and np.allclose(a, b) for b in kernels[0][:i])


@pytest.mark.parametrize("architecture", ["attn"])
def test_empty_slots_are_not_looked_at(architecture):
    rng = np.random.default_rng(2)
    policy, value = build(architecture, Design(SHAPE, (8, 4), False, 3))
    jobs, cluster, prior = observations(rng, SHAPE)
    other = jobs.copy()
    other[:, -2:, :SLOT] = 0.7  # whatever an empty slot holds
    for network, columns in ((policy, slice(0, 4)), (value, slice(None))):
        a, b = network((jobs, cluster, prior)).numpy(), network((other, cluster, prior)).numpy()
        np.testing.assert_allclose(a[..., columns], b[..., columns], atol=1e-6)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_a_residual_policy_begins_with_its_order(architecture):
    rng = np.random.default_rng(3)
    learner = _learner(architecture, Design(WAITING, (8, 4), True, 0), RULES)
    jobs, cluster, _ = observations(rng, WAITING)
    ranks = np.stack([rng.permutation(6) for _ in range(3)])
    seen = {"choices": pack(jobs), "around": pack(cluster), "mask": np.ones((3, 7), np.int8),
            "prior": pack((ranks / 6).astype(np.float32))}  # fmt: skip
    assert learner.best(seen).tolist() == ranks.argmin(axis=1).tolist()
    near = seen | {"prior": pack((ranks / STEPS).astype(np.float32))}  # the smallest difference there can be
    assert learner.best(near).tolist() == ranks.argmin(axis=1).tolist()


def test_keys_are_learned_up_to_what_features_tell():
    """A job's logit becomes -RESIDUAL times the mean logarithm of keys like its own; the moment has no influence."""
    rng = np.random.default_rng(4)
    learner = _learner("kernel", Design(SHAPE, (16, 8), False, 0, 12.0), RULES)
    for _ in range(1600):
        jobs, cluster, _ = observations(rng, SHAPE, 64)
        jobs[:, :, SITUATION] = 0.0
        told = 5 + 10 * jobs[:, :, 1] + rng.normal(0, 1, jobs.shape[:2])
        loss = learner.learn_keys(
            pack(jobs), pack((told / GREATEST).astype(np.float32)), np.zeros((64, 0), np.uint16), 5e-3
        )
    assert loss == pytest.approx(1.0, abs=0.4)  # what is random in them remains
    prior = np.zeros((64, SHAPE.window), np.float32)
    logits = learner.policy((jobs, cluster, prior)).numpy()
    assert np.abs(-logits / RESIDUAL - (5 + 10 * jobs[:, :, 1])).mean() < 0.5
    later = jobs.copy()
    later[:, :, SITUATION] = 0.9
    np.testing.assert_array_equal(learner.policy((later, 0 * cluster, prior)).numpy(), logits)


def test_decay_draws_weights_to_nothing_and_leaves_biases():
    """With features that tell nothing only the mean key is left: weights shrink, the bias does not."""
    squares, means = [], []
    for decay in (0.0, 0.1):
        rng = np.random.default_rng(4)
        learner = _learner("kernel", Design(SHAPE, (16, 8), False, 0, 12.0), RULES)
        for step in range(600):
            jobs, cluster, _ = observations(rng, SHAPE, 16)
            told = pack((rng.normal(20, 1, jobs.shape[:2]) / GREATEST).astype(np.float32))
            if step == 0:
                learner.expect(told.ravel(), np.zeros(0, np.uint16))
            learner.learn_keys(pack(jobs), told, np.zeros((16, 0), np.uint16), 1e-2, decay)
        squares.append(
            sum(float((v.numpy() ** 2).sum()) for v in learner.policy.trainable_variables if len(v.shape) > 1)
        )
        logits = learner.policy((jobs, 0 * cluster, np.zeros((16, SHAPE.window), np.float32))).numpy()
        means.append((-logits / RESIDUAL).mean())
    assert squares[1] < 0.05 * squares[0]
    assert means[1] == pytest.approx(20.0, abs=0.5)


def test_decay_leaves_what_judges_waiting():
    """Layers of zeros below a last layer of zeros could never learn to wait."""
    rng = np.random.default_rng(6)
    learner = _learner("kernel", Design(WAITING, (8, 4), True, 0, 12.0), RULES)
    begun = [v.numpy().copy() for v in learner.policy.trainable_variables]
    for _ in range(200):
        jobs, _, _ = observations(rng, WAITING, 16)
        told = pack(rng.random(jobs.shape[:2]).astype(np.float32))
        learner.learn_keys(pack(jobs), told, told, 1e-2, 0.3)
    kept = [np.array_equal(a, v.numpy()) for a, v in zip(begun, learner.policy.trainable_variables, strict=True)]
    of_waiting = [a for a, same in zip(begun, kept, strict=True) if same and a.any()]
    assert [a.shape for a in of_waiting] == [(4 + 8, AROUND)]


def test_waiting_is_judged_against_the_best_job_that_fits():
    rng = np.random.default_rng(5)
    policy, _ = build("kernel", Design(WAITING, (8, 4), True, 3))
    jobs, cluster, _ = observations(rng, WAITING)
    jobs[:, :, FITS] = [1, 0, 1, 1, 0, 0]
    prior = np.tile(np.array([0.4, 0.1, 0.3, 0.6, 0.2, 0.9], np.float32), (len(jobs), 1))
    logits = policy((jobs, cluster, prior)).numpy()
    np.testing.assert_allclose(logits[:, -1], logits[:, 2] - WAIT, rtol=1e-5)
    jobs[:, :, FITS] = 0
    np.testing.assert_allclose(policy((jobs, cluster, prior)).numpy()[:, -1], -WAIT, rtol=1e-5)


def bandit(rng, count):
    """Decisions whose reward is the first feature of the job chosen: the best policy takes the greatest."""
    jobs, cluster, _ = observations(rng, SHAPE, count)
    mask = (rng.random((count, 6)) < 0.7).astype(np.int8)
    mask[:, 0] = 1
    mask[:, -2:] = 0
    return jobs, {
        "choices": pack(jobs),
        "around": pack(cluster),
        "mask": mask,
        "prior": np.zeros((count, 0), np.uint16),
    }


def taught(seed, accumulate=1, minibatch=128):
    rng = np.random.default_rng(seed)
    rules = RULES._replace(minibatch=minibatch, accumulate=accumulate, target_kl=0.05)
    learner = _learner("kernel", Design(SHAPE, (16, 8), False, seed), rules)
    for _ in range(25):
        jobs, seen = bandit(rng, 1024)
        action = learner.act(seen, rng, 0.0)
        reward = jobs[np.arange(1024), action, 0]
        buffer = Buffer(seen, 1024)
        buffer.store(**seen, path=np.arange(1024), action=action, reward=reward)
        learner.update(buffer.finish(*learner.assess(seen, action, 0.0), {}, 1.0, 0.97), rng, 3e-3, 3e-3, 0.0)
    return learner


@pytest.mark.parametrize(("accumulate", "minibatch"), [(1, 128), (4, 32)])
def test_it_learns_what_pays(accumulate, minibatch):
    learner = taught(0, accumulate, minibatch)
    jobs, seen = bandit(np.random.default_rng(99), 500)
    chosen = learner.best(seen)
    assert seen["mask"][np.arange(500), chosen].all()
    best = np.where(seen["mask"] == 1, jobs[:, :, 0], -1).max(axis=1)
    assert np.mean(jobs[np.arange(500), chosen, 0] > best - 0.05) > 0.9


def test_equal_seeds_give_equal_weights():
    one, other = (taught(5).policy.get_weights() for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
    assert any((a != b).any() for a, b in zip(one, taught(6).policy.get_weights(), strict=True))


def test_gradients_of_minibatches_add_up():
    """Four accumulated minibatches of one batch are one step on the whole batch."""
    rng = np.random.default_rng(1)
    jobs, seen = bandit(rng, 64)
    weights = []
    for minibatch, accumulate in ((64, 1), (16, 4)):
        rules = RULES._replace(minibatch=minibatch, accumulate=accumulate, train_iters=1, max_grad_norm=0.0)
        learner = _learner("kernel", Design(SHAPE, (8, 4), False, 0), rules)
        action = learner.act(seen, np.random.default_rng(2), 0.0)
        buffer = Buffer(seen, 64)
        buffer.store(**seen, path=np.arange(64), action=action, reward=jobs[np.arange(64), action, 0])
        batch = buffer.finish(*learner.assess(seen, action, 0.0), {}, 1.0, 0.97)
        learner.update(batch, np.random.default_rng(3), 1e-3, 1e-3, 0.0)
        weights.append(learner.policy.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)  # Adam makes steps of 1e-3, also of a gradient that is only noise


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_actions_are_drawn_by_their_probabilities(seed):
    learner = _learner("kernel", Design(SHAPE, (4,), False, 0), RULES)
    _, seen = bandit(np.random.default_rng(seed), 1)
    many = {name: np.repeat(column, 4000, axis=0) for name, column in seen.items()}
    action = learner.act(many, np.random.default_rng(seed), 0.0)
    logp, _ = learner.assess(many, action, 0.0)
    for a in np.unique(action):
        share = np.mean(action == a)
        assert share == pytest.approx(np.exp(logp[action == a][0]), abs=0.06)
    assert seen["mask"][0][np.unique(action)].all()
