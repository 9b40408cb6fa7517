"""Every model that ships has a card, and the card tells of that very model."""

import pytest

from benchmarks.model_cards import LIMITS, write_card
from envs.clusters import CLUSTERS
from tests.conftest import ROOT
from train.checkpoint import load


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_card_tells_of_the_models_beside_it(cluster):
    card = (ROOT / "models" / cluster / "README.md").read_text()
    names = {path.stem for path in (ROOT / "models" / cluster).glob("*.npz")}
    assert names == set(LIMITS) - ({"real_hidden"} if cluster == "synthetic" else set())
    for info in names:
        told = load(ROOT / "models" / cluster / f"{info}.npz").told
        part = card.split(f"## {info}.npz")[1].split("\n## ")[0]
        assert f"seed {told['settings']['seed']}, gain {told['val_gain']:+.4f}" in part
        assert f"--seed {told['settings']['seed']}" in part  # the command that made it
        assert "95 %" in part
        assert LIMITS[info] in part


def test_a_card_is_made_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.model_cards.MODELS", tmp_path)
    (tmp_path / "philly").mkdir()
    model = load(ROOT / "models/philly/hidden.npz")
    rival = {"name": "sjf fit", "mean": 20.0, "change": -0.5, "low": -0.6, "high": -0.4, "seeds": [-0.5, -0.4]}
    row = {"cluster": "philly", "info": "hidden", "data": "sample", "score": "wait", "mean": 10.0, "trace": "some.csv",
           "windows": 100, "training": "python train/philly_train.py --exp_name philly_hidden --seed 0",
           "rival": rival, "hindsight": rival}  # fmt: skip
    others = [row | {"cluster": "helios"}, row | {"data": "real"}, row | {"info": "oracle"},
              row | {"training": "python train/philly_train.py --exp_name another --seed 0"}]  # fmt: skip
    card = write_card("philly", {"hidden": model}, [row, *(one | {"mean": 77.0} for one in others)]).read_text()
    assert "| wait, s | 10.00 | sjf fit 20.00 | -50.0 % [-60.0, -40.0] | sjf fit | -50.0 % [-60.0, -40.0] |" in card
    assert "77" not in card
    assert "The best of 2 seeds" in card
    assert f"python train/philly_train.py --exp_name philly_hidden --seed {model.told['settings']['seed']}" in card


def test_a_real_model_without_rows_is_not_said_to_be_of_the_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.model_cards.MODELS", tmp_path)
    (tmp_path / "philly").mkdir()
    models = dict.fromkeys(("hidden", "real_hidden"), load(ROOT / "models/philly/hidden.npz"))
    sample, real = write_card("philly", models, []).read_text().split("## real_hidden.npz")
    assert "Data: the shipped sample," in sample
    assert "Data: a real trace," in real
