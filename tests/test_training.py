"""Training runs: what they write, that they repeat, that they can be gone on with, and that they learn."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from berth.errors import BerthError, ConfigError
from envs.observation import LOOKAHEAD_MODES
from tests.conftest import ROOT
from train import plot
from train.checkpoint import BEST, FORMAT, LAST, find, load, save
from train.config import ARCHITECTURES, Config, from_settings, read_config, to_settings
from train.host_config import read_host_config
from train.resume import resumed
from train.run import Run
from train.schedules import SCHEDULES, exploration_at, rate_at

TINY = {
    "cluster": "synthetic", "seq_len": 12, "window": 8, "trajs": 3, "num_envs": 3, "epochs": 2, "val_windows": 3,
    "report_windows": 2, "val_every": 1, "hidden": ("8", "4"), "minibatch": 32, "warm_start": False,
}  # fmt: skip
FLAGS = [
    word
    for name, value in TINY.items()
    if name != "cluster"
    for word in (f"--{name}", ",".join(value) if isinstance(value, tuple) else str(int(value)))
]


def train(folder, **settings):
    """A whole tiny run."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(Config(**(TINY | settings)), folder)
    run.go()
    return run


def program(folder, *words, wait=True):
    """The program itself, in a folder of its own."""
    command = [sys.executable, str(ROOT / "train/synthetic_train.py"), *FLAGS, *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return (process.communicate(timeout=900), process.returncode) if wait else process


def weights(folder, name=LAST):
    return load(folder / name).arrays


def same(one, other):
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def rows(folder):
    with (folder / "progress.txt").open() as file:
        return [{name: float(x) for name, x in row.items()} for row in csv.DictReader(file, delimiter="\t")]


def long_and_short(folder):
    """The settings of one GPU, where long and short jobs arrive together: the shortest first is best for the wait."""
    (folder / "one.toml").write_text('[[pools]]\nname = "only"\nnodes = [{count = 1, gpus = 1}]\n')
    rng = np.random.default_rng(0)
    lines = []
    for i in range(600):
        cells = [-1] * 19
        cells[0], cells[1], cells[3], cells[4] = f"j{i}", i // 6 * 4000, int(rng.choice([20, 2000])), 1
        lines.append(",".join(map(str, cells)))
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    return {
        "cluster": str(folder / "one.toml"), "workload": str(folder / "jobs.csv"), "score_type": "wait",
        "load": 0.0, "seq_len": 12, "window": 8, "trajs": 40, "num_envs": 20, "epochs": 12, "minibatch": 64,
        "lr": 3e-3, "val_windows": 20, "train_iters": 4, "report_windows": 0, "warm_start": False,
    }  # fmt: skip


def test_what_a_run_writes(tmp_path, capsys):
    train(tmp_path)
    table = rows(tmp_path)
    assert [row["Epoch"] for row in table] == [1, 2]
    decisions = np.cumsum([row["EpLen"] * row["Episodes"] for row in table])
    assert [row["TotalEnvInteracts"] for row in table] == pytest.approx(decisions)
    assert all(row["Episodes"] == 3 for row in table)
    assert rows(tmp_path)[0].keys() >= {
        "AverageEpRet", "StdEpRet", "MaxEpRet", "MinEpRet", "AverageVVals", "LossPi", "LossV", "DeltaLossPi",
        "DeltaLossV", "Entropy", "KL", "ClipFrac", "StopIter", "GradNorm", "LearningRate", "Exploration",
        "AgentScore", "BaselineScore", "ValGain", "Time",
    }  # fmt: skip
    comma = (tmp_path / "curve.csv").read_text()
    assert comma == (tmp_path / "progress.txt").read_text().replace("\t", ",")
    settings = from_settings(Config, json.loads((tmp_path / "config.json").read_text()), "")
    assert Config(**settings) == Config(**TINY)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["REPORT"].keys() == {"agent", "fcfs", "sjf", "saf"}
    assert report["REPORT"]["fcfs"]["gain"] == 0.0  # the baseline itself
    out = capsys.readouterr().out
    assert "VAL " in out
    assert "REPORT " in out


def test_tensorboard_can_read_it(tmp_path):
    train(tmp_path)
    import tensorflow as tf

    tags = {
        value.tag
        for path in tmp_path.glob("events.*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    assert {"loss/LossPi", "loss/Entropy", "loss/KL", "loss/GradNorm", "rate/LearningRate", "rate/Exploration",
            "score/AgentScore", "score/BaselineScore"} <= tags  # fmt: skip


def test_equal_seeds_give_equal_weights(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(tmp_path / name, seed=seed)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


@pytest.mark.parametrize(("schedule", "split"), [("constant", 2), ("cosine", 3)])
def test_four_epochs_are_some_and_then_the_rest(tmp_path, schedule, split):
    more = {"lr_schedule": schedule, "lr_decay_epochs": 6, "exploration_noise": 0.2, "clone": "sjf", "clone_epochs": 1}
    train(tmp_path / "a", epochs=4, val_every=2, **more)
    train(tmp_path / "b", epochs=split, val_every=2, **more)
    config, flags = (
        Config(**(TINY | {"epochs": 4, "resume_from": str(tmp_path / "b")})),
        {"epochs": 4, "resume_from": ""},
    )
    again, checkpoint = resumed(config, flags)
    assert again.clone == "sjf"
    Run(again, tmp_path / "b", checkpoint).go()
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert same(weights(tmp_path / "a", BEST), weights(tmp_path / "b", BEST))
    times = {"CollectTime", "UpdateTime", "Time"}
    for one, other in zip(rows(tmp_path / "a"), rows(tmp_path / "b"), strict=True):
        mine, its = ({k: v for k, v in row.items() if k not in times} for row in (one, other))
        assert str(mine) == str(its)  # nan too


@pytest.mark.parametrize("mode", LOOKAHEAD_MODES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_network_trains_with_every_lookahead(tmp_path, architecture, mode):
    train(tmp_path, policy_arch=architecture, lookahead_mode=mode, epochs=1, trajs=2, report_windows=0, val_windows=1,
          action_mode="fit" if mode in ("off", "cdf") else "reserve")  # fmt: skip
    assert np.isfinite(rows(tmp_path)[0]["LossPi"])


@pytest.mark.parametrize(
    "settings",
    [{"rollout_steps": 40, "trajs": 100}, {"score_type": "3"}, {"backfil": True}, {"preset": "baseline_stable"},
     {"arrival_mode": "bursty"},
     {"runtime_info": "hidden"}, {"allocation": "milp", "seq_len": 6}, {"accumulate": 2, "ent_coef": 0.01},
     {"normalize_values": False, "normalize_advantages": False, "max_grad_norm": 0.0},
     {"reward": "terminal"},
     {"horizon_factor": 1.25, "gamma": 0.99}],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_settings_that_matter(tmp_path, settings):
    train(tmp_path, epochs=1, **settings)
    row = rows(tmp_path)[0]
    assert np.isfinite([row["LossPi"], row["LossV"], row["Entropy"], row["KL"]]).all()
    if "rollout_steps" in settings:
        assert 40 <= row["TotalEnvInteracts"] < 40 + 3


def test_a_residual_policy_begins_at_its_baseline(tmp_path):
    train(tmp_path, residual="fcfs", epochs=1, pi_lr=0.0)
    assert rows(tmp_path)[0]["ValGain"] == 0.0  # the most likely actions are the baseline's


def test_keys_learned_before_the_first_epoch_repeat_and_are_gone_on_with(tmp_path, capsys):
    """Learning run times from a trace, then PPO: two epochs are one and one more, bit for bit."""
    more = {"clone": "saf@oracle", "clone_loss": "log_key", "clone_epochs": 2, "action_mode": "fit", "window": 16,
            "runtime_info": "predicted", "sched_algo": "sjf"}  # fmt: skip
    train(tmp_path / "a", epochs=2, **more)
    assert "learned the keys of saf@oracle" in "".join(capsys.readouterr())
    train(tmp_path / "b", epochs=1, **more)
    config = Config(**(TINY | {"epochs": 2, "resume_from": str(tmp_path / "b")}))
    again, checkpoint = resumed(config, {"epochs": 2, "resume_from": ""})
    Run(again, tmp_path / "b", checkpoint).go()
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_what_a_policy_began_as_stays_where_imitation_is_worse(tmp_path, monkeypatch):
    more = {"sched_algo": "sjf", "residual": "sjf", "clone": "saf", "clone_loss": "log_key", "action_mode": "fit",
            "pi_lr": 0.0, "epochs": 1}  # fmt: skip
    gains, look, rng = [], Run._look, np.random.default_rng(0)

    def _look(run, looked):
        look(run, looked)
        gains.append(looked["ValGain"])

    def _learn_nonsense(_config, _told, learner, _screen, _decay):
        for variable in learner.policy.trainable_variables:
            variable.assign(20.0 * rng.standard_normal(variable.shape))

    monkeypatch.setattr(Run, "_look", _look)
    monkeypatch.setattr("train.run.learn_keys", _learn_nonsense)
    train(tmp_path / "run", **(long_and_short(tmp_path) | more))
    assert gains[0] == 0.0 > gains[1]
    told = load(tmp_path / "run" / BEST).told
    assert (told["val_gain"], told["val_epoch"]) == (0.0, 0)


def test_of_several_decays_the_keys_that_are_best_on_validation_windows_are_gone_on_with(tmp_path, monkeypatch):
    more = {"sched_algo": "sjf", "residual": "sjf", "clone": "saf", "clone_loss": "log_key", "action_mode": "fit",
            "pi_lr": 0.0, "epochs": 1, "clone_decay": ("0.3", "0", "0.1")}  # fmt: skip
    gains, look, learned, begun = [], Run._look, {}, []

    def _look(run, looked):
        look(run, looked)
        gains.append(looked["ValGain"])

    def _learn(_config, told, learner, _screen, decay):
        begun.append([v.numpy().copy() for v in learner.policy.variables])
        learned[decay] = len(told.keys)
        for variable in learner.policy.trainable_variables:
            variable.assign(
                0.0 * variable if decay == 0.0 else 20.0 * np.random.default_rng(0).normal(size=variable.shape)
            )

    monkeypatch.setattr(Run, "_look", _look)
    monkeypatch.setattr("train.run.learn_keys", _learn)
    train(tmp_path / "run", **(long_and_short(tmp_path) | more))
    assert list(learned) == [0.3, 0.0, 0.1]
    assert len(set(learned.values())) == 1
    for again in begun[1:]:
        assert all((a == b).all() for a, b in zip(begun[0], again, strict=True)), "each begins where the first began"
    assert gains[:2] == [0.0, gains[3]]
    assert gains[1] < gains[2] == gains[4] == 0.0
    assert all(
        not w.any() for name, w in weights(tmp_path / "run").items() if name.startswith("pi_") and "opt" not in name
    )


def test_decays_that_cannot_be_or_do_nothing(tmp_path):
    for wrong in (("-1",), ("2",), ("nan",), ("x",), ()):
        with pytest.raises(ConfigError, match="clone_decay"):
            train(tmp_path / "a", clone="saf", clone_loss="log_key", action_mode="fit", clone_decay=wrong)
    with pytest.raises(ConfigError, match=r"clone_decay 0\.1 does nothing without clone and clone_loss log_key"):
        train(tmp_path / "a", clone_decay=("0.1",), clone_loss="log_key", action_mode="fit")


def test_a_decay_that_is_named_twice_is_tried_once():
    more = {"clone": "saf", "clone_loss": "log_key", "action_mode": "fit", "clone_decay": ("0.1", "0", "0.10", "0.0")}
    assert Config(**(TINY | more)).decays == (0.1, 0.0)


def test_a_clone_decides_as_what_it_imitates(tmp_path, capsys):
    train(tmp_path, clone="fcfs", clone_epochs=30, trajs=30, epochs=1, pi_lr=0.0, seq_len=40)
    told = float(capsys.readouterr().out.split("with probability ")[1].split()[0])
    assert told > 0.8


def test_pre_trained_weights(tmp_path):
    train(tmp_path / "a")
    train(tmp_path / "b", pre_trained=True, trained_model=str(tmp_path / "a" / BEST), pi_lr=0.0, vf_lr=0.0, epochs=1)
    a, b = weights(tmp_path / "a", BEST), weights(tmp_path / "b")
    assert all((a[name] == b[name]).all() for name in a if name.startswith(("pi_", "vf_")))
    with pytest.raises(ConfigError, match="the networks differ"):
        train(tmp_path / "c", pre_trained=True, trained_model=str(tmp_path / "a"), hidden=("9",))


def test_early_stopping(tmp_path):
    train(tmp_path, epochs=9, early_stopping_patience=2, pi_lr=0.0, report_windows=0)
    assert len(rows(tmp_path)) == 2


def test_what_was_looked_at_before_the_first_epoch_takes_no_patience(tmp_path):
    more = {"residual": "sjf", "clone": "saf", "clone_loss": "log_key", "action_mode": "fit", "clone_epochs": 1,
            "clone_lr": 0.0, "clone_decay": ("0", "0.1", "0.2")}  # fmt: skip
    train(tmp_path, epochs=9, early_stopping_patience=2, pi_lr=0.0, report_windows=0, **more)
    assert len(rows(tmp_path)) == 2


def test_it_learns_the_best_policy_of_a_tiny_cluster(tmp_path):
    settings = long_and_short(tmp_path)
    begin = time.monotonic()
    train(tmp_path / "run", **settings)
    learned = max(row["ValGain"] for row in rows(tmp_path / "run") if np.isfinite(row["ValGain"]))
    train(tmp_path / "sjf", **(settings | {"residual": "sjf", "pi_lr": 0.0, "epochs": 1}))
    best = rows(tmp_path / "sjf")[0]["ValGain"]
    assert best > 0.2
    assert learned > 0.95 * best
    assert time.monotonic() - begin < 120


def test_a_killed_run_can_be_gone_on_with(tmp_path):
    process = program(tmp_path, "--epochs", "500", "--exp_name", "k", wait=False)
    folder = tmp_path / "data/logs/k/k_s0"
    done = 0
    for wait in (0.05, 0.3, 0.75):
        deadline = time.monotonic() + 600
        while not (folder / LAST).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(wait)
        process.kill()
        process.communicate()
        epoch = load(folder / LAST).told["epoch"]
        assert epoch >= done
        done = epoch
        process = program(tmp_path, "--epochs", "500", "--exp_name", "k", "--resume_from", str(folder), wait=False)
        deadline = time.monotonic() + 600
        while load(folder / LAST).told["epoch"] <= done and time.monotonic() < deadline:
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "To go on: --resume_from" in out
    assert load(folder / LAST).told["epoch"] > done


@pytest.mark.parametrize("patience", [0, 1])
def test_a_run_interrupted_in_its_first_epoch_goes_on_as_if_it_had_not_been(tmp_path, monkeypatch, patience):
    more = {"clone": "saf", "clone_epochs": 2, "early_stopping_patience": patience, "early_stopping_threshold": 0.0}
    train(tmp_path / "a", **more)
    import train.rollouts as rollouts

    def _stop(*_args, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rollouts, "collect", _stop)
        with pytest.raises(SystemExit):
            train(tmp_path / "b", **more)
    (tmp_path / "b" / BEST).unlink()  # the last checkpoint has the best policy too
    again, checkpoint = resumed(Config(**(TINY | {"resume_from": str(tmp_path / "b")})), {"resume_from": ""})
    Run(again, tmp_path / "b", checkpoint).go()
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert same(weights(tmp_path / "a", BEST), weights(tmp_path / "b", BEST))


def test_a_mistake_leaves_an_earlier_run_where_it_is(tmp_path):
    train(tmp_path / "a")
    before = (tmp_path / "a" / LAST).read_bytes()
    with pytest.raises(BerthError):
        train(tmp_path / "a", workload="/nope.csv")
    assert (tmp_path / "a" / LAST).read_bytes() == before
    train(tmp_path / "a", pre_trained=True, trained_model=str(tmp_path / "a"), epochs=1)
    assert (tmp_path / "a.old1" / LAST).read_bytes() == before


def test_the_norm_of_accumulated_gradients_is_that_of_the_whole(tmp_path):
    one = train(tmp_path / "a", lr=0.0, train_iters=1, epochs=1, minibatch=100_000)
    many = train(tmp_path / "b", lr=0.0, train_iters=1, epochs=1, minibatch=7, accumulate=1000)
    assert one.interacts == many.interacts
    norms = [rows(tmp_path / name)[0]["GradNorm"] for name in "ab"]
    assert norms[0] == pytest.approx(norms[1], rel=0.05)


def test_checkpoints_that_are_none_are_told(tmp_path):
    for name, content in (("empty.npz", b""), ("text.npz", b"hello"), ("zip.npz", b"PK\x03\x04" + b"\0" * 40)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match="not a checkpoint of Berth, or a damaged one"):
            load(tmp_path / name)
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    with pytest.raises(ConfigError, match="not a checkpoint"):
        load(tmp_path / "foreign.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ConfigError, match="not a checkpoint"):
        load(tmp_path / "array.npy")
    save(tmp_path / "whole.npz", {"pi_0": np.arange(5000.0)}, {"epoch": 1})
    with pytest.raises(ConfigError, match="no settings"):
        load(tmp_path / "whole.npz")
    data = bytearray((tmp_path / "whole.npz").read_bytes())
    for at in (len(data) // 2, len(data) // 3):
        damaged = data.copy()
        damaged[at] ^= 0xFF
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(ConfigError, match="damaged"):
            load(tmp_path / "damaged.npz")
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ConfigError, match="damaged"):
        load(tmp_path / "cut.npz")
    save(tmp_path / "older.npz", {}, {})
    text = (tmp_path / "older.npz").read_bytes()
    assert FORMAT.encode() in text
    np.savez(
        tmp_path / "older.npz", told=np.frombuffer(json.dumps({"format": "berth checkpoint 0"}).encode(), np.uint8)
    )
    with pytest.raises(ConfigError, match="berth checkpoint 0"):
        load(tmp_path / "older.npz")
    with pytest.raises(ConfigError, match=r"neither last\.npz nor best\.npz"):
        find(str(tmp_path), "--resume_from")
    with pytest.raises(ConfigError, match="no such file"):
        find(str(tmp_path / "nowhere"), "--resume_from")


def test_a_resumed_run_keeps_its_settings(tmp_path):
    train(tmp_path)
    config, flags = read_config("synthetic", ["--resume_from", str(tmp_path), "--epochs", "5"])
    again, _ = resumed(config, flags)
    assert again.epochs == 5
    assert again.trajs == 3
    for words, message in (
        (["--gamma", "0.5"], "the run has 1.0"),
        (["--seed", "3"], "the run has 0"),
        (["--lr", "0.1"], r"the run has \(0.005, 0.005\)"),
        (["--attn", "1"], "the run has kernel"),
        (["--epochs", "1"], "has had 2 already"),
    ):
        config, flags = read_config("synthetic", ["--resume_from", str(tmp_path), *words])
        with pytest.raises(ConfigError, match=message):
            resumed(config, flags)
    again, _ = resumed(*read_config("synthetic", ["--resume_from", str(tmp_path), "--policy_arch", "kernel"]))
    assert again.architecture == "kernel"
    config, flags = read_config("philly", ["--resume_from", str(tmp_path)])
    with pytest.raises(ConfigError, match="a run on synthetic"):
        resumed(config, flags)
    whole = load(tmp_path / LAST)
    for name, value in (("epoch", "x"), ("begun", None), ("interacts", None)):
        save(tmp_path / "odd.npz", whole.arrays, whole.told | {name: value})
        with pytest.raises(ConfigError, match=f"{name} is "):
            resumed(*read_config("synthetic", ["--resume_from", str(tmp_path / "odd.npz")]))
    save(tmp_path / "odd.npz", whole.arrays | {"pi_0": whole.arrays["pi_0"] * np.nan}, whole.told)
    with pytest.raises(ConfigError, match="not made of finite numbers"):
        load(tmp_path / "odd.npz")
    config, flags = read_config("synthetic", ["--resume_from", str(tmp_path / BEST)])
    with pytest.raises(ConfigError, match="no state to go on from"):
        resumed(config, flags)


SEEDS_FLAGS = [
    "--workload x.csv --epochs 3 --trajs 7 --seed 2 --sched_algo 4 --exp_name e --attn 1 --backfil 1 --score_type 1 "
    "--batch_job_slice 1000 --use_milp_allocation 0 --pre_trained 1 --trained_model data/logs/e/e_s0",
    "--lr 1e-4 --lr-schedule cosine --lr-warmup-steps 100 --early-stopping-patience 200 "
    "--early-stopping-threshold 0.01 --save-freq 250 --resume-from x.npz "
    "--gamma 0.995 --lam 0.99 --clip-coef 0.2 --ent-coef 0.01 --vf-coef 2.0 "
    "--rollout-steps 12288 --total-timesteps 50000000 --exploration-noise 0.1 --exploration-decay 0.99 --log-dir e",
    "--preset baseline_stable --policy-arch attn --lookahead-mode cdf --total-timesteps 200000 --jobs-per-episode 400 "
    "--max-queue-size 50 --arrival-mode bursty",
]


@pytest.mark.parametrize("words", SEEDS_FLAGS)
def test_the_seeds_flags_are_taken(words):
    config, flags = read_config("philly", words.split())
    assert len(flags) == sum(word.startswith("--") for word in words.split())
    if "jobs-per-episode" in words:
        assert (config.seq_len, config.window, config.architecture) == (400, 50, "attn")
    if "clip-coef" in words:
        assert config.clip_ratio == 0.2
        assert config.name == "e"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--policy_arch atn", "did you mean attn"),
        ("--lr_schedule cosin", "did you mean cosine"),
        ("--epochs 0", "epochs 0: want a number from 1"),
        ("--epochs many", "wanted a whole number"),
        ("--gamma 2", "gamma 2: want a number from 0 to 1"),
        ("--attn 1 --policy_arch mlp", "disagree"),
        ("--len 10 --jobs_per_episode 20", "two names of one setting"),
        ("--pre_trained 1", "want --trained_model"),
        ("--trained_model x", "does nothing without --pre_trained"),
        ("--rollout_steps 100 --trajs 5", "give one of them"),
        ("--hidden 32,x", "want widths"),
        ("--residual random", "want a policy with a formula"),
        ("--residual sjf --runtime_info hidden", "needs run times"),
        ("--clone sjff", "did you mean sjf"),
        ("--residual sjf --clone fcfs", "want one policy"),
        ("--split test", "reports on test"),
        ("--exp_name ../x", "want a folder's name"),
        (f"--exp_name {'日' * 50}", "want a folder's name"),
        ("--attn 1 --no_attn", "two names of one setting"),
        ("--config nowhere.json", "want a JSON file"),
        ("--epoch 3", "did you mean --epochs"),
    ],
)
def test_mistakes_are_told(words, message):
    with pytest.raises(ConfigError, match=message):
        read_config("philly", words.split())


def test_the_readmes_and_the_makefiles_commands_are_taken():
    text = (ROOT / "README.md").read_text() + (ROOT / "Makefile").read_text()
    commands = re.findall(r"python train/([a-z]+)_train\.py (.*)", text)
    assert len(commands) >= 6
    assert {cluster for cluster, _ in commands} == {"philly", "helios", "alibaba", "synthetic", "lsf"}
    for cluster, words in commands:
        if cluster == "lsf":
            assert read_host_config(words.split())[0].name == "trial"
            continue
        assert read_config(cluster, words.split())[0].cluster == cluster


def test_settings_from_a_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(to_settings(Config(**TINY))))
    config, _ = read_config("synthetic", ["--config", str(file), "--epochs", "7"])
    assert (config.epochs, config.seq_len, config.hidden) == (7, 12, ("8", "4"))
    for text, message in (('{"epoch": 3}', "did you mean epochs"), ("[1]", "JSON object"), ("{", "want a JSON file")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_config("synthetic", ["--config", str(file)])


def test_lr_sets_both_rates_unless_one_is_given():
    assert Config().rates == (5e-3, 5e-3)
    assert Config(lr=0.01).rates == (0.01, 0.01)
    assert Config(lr=0.01, vf_lr=0.5).rates == (0.01, 0.5)


def test_schedules_by_hand():
    at = lambda name, epoch: rate_at(name, 2.0, epoch, 10, 4)  # noqa: E731
    assert [at("constant", e) for e in (0, 5, 20)] == [2.0, 2.0, 2.0]
    assert [at("linear", e) for e in (0, 5, 10, 20)] == [2.0, 1.0, 0.0, 0.0]
    assert [at("cosine", e) for e in (0, 5, 10)] == pytest.approx([2.0, 1.0, 0.0])
    assert [at("exponential", e) for e in (0, 5, 10)] == pytest.approx([2.0, 0.2, 0.02])
    assert [at("warmup_cosine", e) for e in (0, 1, 3, 4, 7, 10)] == pytest.approx([0.5, 1.0, 2.0, 2.0, 1.0, 0.0])
    assert all(at(name, e) >= 0 for name in SCHEDULES for e in range(30))
    assert [exploration_at(0.4, 0.5, 0.1, e) for e in (0, 1, 2, 3)] == [0.4, 0.2, 0.1, 0.1]
    assert exploration_at(0.0, 0.5, 0.1, 0) == 0.0


def test_help_needs_no_tensorflow():
    code = "import sys, train.run\nsys.argv = ['x', '--help']\ntry: train.run.main('philly')\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print('tensorflow' in sys.modules)"],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    assert done.stdout.strip().endswith("False")
    for name in ("--jobs_per_episode", "--clip_coef", "--policy_arch", "--resume_from"):
        assert name in done.stdout


def test_the_program_keeps_an_earlier_run(tmp_path):
    for _ in range(2):
        (out, err), code = program(tmp_path, "--epochs", "1")
        assert code == 0, err
    assert "an earlier run of this name is now" in out
    assert (tmp_path / "data/logs/synthetic/synthetic_s0" / BEST).exists()
    assert (tmp_path / "data/logs/synthetic/synthetic_s0.old1" / BEST).exists()
    assert err == ""


def test_learning_curves(tmp_path, capsys):
    for seed in (0, 1):
        train(tmp_path / f"exp_s{seed}", seed=seed)
    plot.main([str(tmp_path / "exp_s0"), str(tmp_path / "exp_s1/curve.csv"), "--out", str(tmp_path / "both.png")])
    assert (tmp_path / "both.png").stat().st_size > 10_000
    curves = [plot.read_curve(tmp_path / f"exp_s{seed}") for seed in (0, 1)]
    where, mean, low, high = plot.averaged(curves, "Epoch", "AverageEpRet")
    assert where.tolist() == [1, 2]
    assert mean == pytest.approx((curves[0]["AverageEpRet"] + curves[1]["AverageEpRet"]) / 2)
    assert (low <= high).all()
    assert plot.experiment_of(tmp_path / "exp_s0") == plot.experiment_of(tmp_path / "exp_s1/curve.csv") == "exp"
    for words, message in (
        (["nowhere"], "want a run"),
        (["--out", "x.png"], "nothing to draw"),
        ([str(tmp_path / "exp_s0"), "--z"], "not a flag"),
        ([str(tmp_path / "exp_s0"), "--x", "Epch"], "did you mean Epoch"),
        ([str(tmp_path / "exp_s0/config.json")], "want a run that has finished"),
    ):
        with pytest.raises(ConfigError, match=message):
            plot.main(words)
