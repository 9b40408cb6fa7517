"""Exported policies: the same logits as the networks they come from, without TensorFlow."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from berth.compiled import compilations
from berth.errors import ConfigError
from envs.registration import IDS
from envs.scheduling_env import SchedulingEnv
from envs.wire import read
from orchestrator.deciding import of_exported
from tests.conftest import ROOT
from train.checkpoint import load, put_weights, save, weights_of
from train.config import ARCHITECTURES, Config, to_settings
from train.export import export, main
from train.forward import JobPolicy, read_exported
from train.packing import pack, unpack
from train.quiet import load_tensorflow

load_tensorflow(0)
from train.networks import build  # noqa: E402 - TensorFlow is loaded quietly first

CLUSTERS = [name.split("-")[0].lower() for name in IDS]


def observations(env, count=12, seed=0):
    """Observations of an episode, packed and unpacked as the networks see them, and priors."""
    rng = np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    for _ in range(count):
        parts = [unpack(pack(part)) for part in (seen["jobs"], seen["cluster"], env.prior)]
        yield *parts, seen["mask"].copy(), {name: part.copy() for name, part in seen.items()}
        seen, _, terminated, truncated, _ = env.step(int(rng.choice(np.flatnonzero(seen["mask"]))))
        if terminated or truncated:
            seen, _ = env.reset()


def shuffled(network, seed=0):
    """Give a network weights that all matter."""
    rng = np.random.default_rng(seed)
    for variable in network.variables:
        variable.assign(rng.normal(0, variable.shape[0] ** -0.5, variable.shape))
    return network


@pytest.mark.parametrize("mode", ["fit", "easy"])
@pytest.mark.parametrize("extra", [{}, {"residual": "saf"}, {"clone": "saf@oracle", "clone_loss": "log_key"}], ids=str)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_the_network(tmp_path, architecture, extra, mode):
    if architecture == "mlp" and "clone_loss" in extra:
        pytest.skip("keys are learned job by job")
    cluster = CLUSTERS[(len(architecture) + len(extra)) % 4]
    config = Config(cluster=cluster, policy_arch=architecture, action_mode=mode, window=16, **extra)
    env = SchedulingEnv(cluster=cluster, action_mode=mode, window=16, seq_len=24, prior=config.residual)
    policy, network = None, None
    for jobs, cluster_row, prior, mask, seen in observations(env):
        if policy is None:
            network = shuffled(_network(config, env))
            save(tmp_path / "best.npz", weights_of(network.variables, "pi"),
                 {"settings": to_settings(config), "scale": [0.0, 1.0, 0.0]})  # fmt: skip
            main([str(tmp_path), "-o", str(tmp_path / "policy.npz")])
            policy = JobPolicy(read_exported(tmp_path / "policy.npz"))
        order = prior if config.residual else np.zeros_like(prior)
        wanted = np.asarray(network((jobs[None], cluster_row[None], order[None])))[0]
        mine = policy.logits(jobs, cluster_row, prior)
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-5)
        action, _ = policy.best(seen, env.prior)
        assert mask[action]
        assert wanted[action] >= wanted[mask != 0].max() - 1e-4


def _network(config, env):
    from envs.observation import lookahead_layout
    from train.design import Design, Shape

    looks = lookahead_layout(env.source.stage.workload.nodes)
    pools = tuple((int(at), int(count)) for at, count in zip(looks["at"], looks["count"], strict=True))
    shape = Shape(config.window, len(env.episode.arrays["cluster"]), env.actions, pools)
    design = Design(shape, tuple(map(int, config.hidden)), bool(config.residual), 0, config.input_scale)
    return build(config.architecture, design)[0]


@pytest.mark.parametrize("name", ["hidden", "oracle"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_models_that_ship_decide_alike(tmp_path, cluster, name):
    checkpoint = load(ROOT / "models" / cluster / f"{name}.npz")
    main([str(checkpoint.path), "-o", str(tmp_path / "policy.npz")])
    policy = JobPolicy(read_exported(tmp_path / "policy.npz"))
    chosen = {
        field: getattr(policy.options, field) for field in ("window", "action_mode", "sched_algo", "runtime_info")
    }
    env = SchedulingEnv(cluster=cluster, seq_len=24, prior=policy.options.prior, **chosen)
    settings = Config(**{key: tuple(value) if isinstance(value, list) else value
                         for key, value in checkpoint.told["settings"].items()})  # fmt: skip
    network = _network(settings, env)
    put_weights(network.variables, checkpoint, "pi")
    for jobs, row, prior, mask, seen in observations(env):
        wanted = np.where(mask, np.asarray(network((jobs[None], row[None], prior[None])))[0], -1e9)
        assert policy.best(seen, env.prior)[0] == int(np.argmax(wanted))


@pytest.mark.parametrize("name", ["hidden", "oracle"])
def test_nothing_is_compiled_once_a_policy_is_served(tmp_path, name):
    main([str(ROOT / f"models/philly/{name}.npz"), "-o", str(tmp_path / "policy.npz")])
    decider = of_exported(read_exported(tmp_path / "policy.npz"))
    page = (ROOT / "docs/serving.md").read_text().split("### A snapshot for a model")[1]
    told = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    told["queued"]["run_time"] = [40_000, 7_000, 100]
    places = [[[node, 8] for node in range(24) if node not in (8, 17, 23)] + [[17, 6]], [[8, 4]]]
    with compilations() as compiled:
        assert decider.kind == "job"
        for part in ({"end": [100_000, 90_000]}, {"end": [100_000, 90_000], "nodes": places}):
            told["running"] |= part
            if name == "hidden" or "nodes" in part:  # easy wants the nodes
                assert decider.decide(read(json.dumps(told)), True)["job"] is not None
    assert not compiled


def test_tensorflow_is_not_there(tmp_path):
    main([str(ROOT / "models/philly/hidden.npz"), "-o", str(tmp_path / "policy.npz")])
    code = (
        "import sys, numpy as np; from pathlib import Path; from train.forward import JobPolicy, read_exported;"
        f"p = JobPolicy(read_exported(Path({str(tmp_path / 'policy.npz')!r})));"
        "s = p.design.shape; mask = np.zeros(s.actions, np.int8); mask[3] = 1;"
        "jobs, around = np.ones((s.window, s.features), np.float32), np.ones(s.cluster, np.float32);"
        "seen = {'jobs': jobs, 'cluster': around, 'mask': mask};"
        "print(p.best(seen, np.zeros(s.window, np.float32))[0],"
        "[m for m in ('tensorflow', 'keras', 'gymnasium', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "3 []"


def test_what_cannot_be_served_is_refused(tmp_path):
    from train.checkpoint import Checkpoint

    fine = load(ROOT / "models/philly/hidden.npz")
    for change, word in (
        ({"allocation": "milp"}, "milp"), ({"allocation": "fgd"}, "fgd"), ({"sched_algo": "random"}, "random"),
        ({"hidden": ["64", "32"]}, "pi_"), ({"cluster": "helios"}, "pi_0"),
    ):  # fmt: skip
        told = fine.told | {"settings": fine.told["settings"] | change}
        with pytest.raises(ConfigError, match=word):
            export(Checkpoint(fine.arrays, told, fine.path))


def test_files_that_are_no_policies_are_refused(tmp_path):
    path = tmp_path / "policy.npz"
    for content in (b"", b"PK\x03\x04 nothing", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="not an exported policy"):
            read_exported(path)
    with pytest.raises(ConfigError, match="berth checkpoint 1"):
        read_exported(ROOT / "models/philly/hidden.npz")
    main([str(ROOT / "models/philly/hidden.npz"), "-o", str(path)])
    exported = read_exported(path)
    damaged = {
        "features": exported.told | {"features": ["wait"]},
        "context/kernel": exported.told | {"cluster": 3},
        "damaged": {name: value for name, value in exported.told.items() if name != "window"},
        "architecture": exported.told | {"architecture": "tree"},
        "damaged .TypeError|no option|is not an option": exported.told | {"options": {"colour": 1}},
    }
    for word, told in damaged.items():
        with pytest.raises(ConfigError, match=word):
            JobPolicy(exported._replace(told=told))
    np.savez(path, told=np.frombuffer(json.dumps(exported.told | {"kind": "dog"}).encode(), np.uint8))
    with pytest.raises(ConfigError, match="dog"):
        read_exported(path)
