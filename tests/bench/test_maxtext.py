"""Steps of MaxText's configurations: those of measured runs, each family, and wrong ones."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from shardcore.bench.leaderboard import costed
from shardcore.bench.rows import read_rows
from shardcore.calculus.hardware import hardware
from shardcore.cli import main
from shardcore.errors import LoweringError
from shardcore.maxtext import facts
from shardcore.maxtext.config import Config, read_config
from shardcore.maxtext.mesh import chips_of

from tests.bench.conftest import HAS_JAX
from tests.deep import sampled

needs_jax = pytest.mark.skipif(not HAS_JAX, reason="jax needs Python 3.11")
pytest.importorskip("yaml")

HOST = "=offload "
QKV = "query_proj=offload key_proj=offload value_proj=offload"
CUSTOM = "remat_policy=custom decoder_layer_input=offload"
TPU = "use_iota_embed=true"
BLOCKS = "sa_block_q=2048 sa_block_kv=2048 sa_block_q_dkv=2048 sa_block_kv_dkv=2048"
FUSED = f"sa_use_fused_bwd_kernel=true {BLOCKS}"
SPLIT = f"{BLOCKS} sa_block_q_dq=2048 sa_block_kv_dq=2048"
SMALL = f"{FUSED} sa_block_q=1024 sa_block_kv=1024"
SHORT = "sa_block_q=1024 sa_block_q_dkv=2048 sa_block_q_dq=2048"
LOCAL = "local_sa_block_q=1024 local_sa_block_kv=1024 local_sa_block_q_dkv=1024"
# A measured run by its row, as a configuration: model, tokens, sequences of a device, the rest.
ROWS = {
    1: f"deepseek3-671b 4096 8 {TPU} {CUSTOM} compile_topology=tpu7x-256 ici_fsdp_parallelism=256 "
    f"{FUSED}",
    2: f"deepseek3-671b 4096 8 {TPU} {CUSTOM} compile_topology=tpu7x-256 quantization=fp8_full "
    f"{FUSED}",
    4: f"gemma4-26b 4096 16 {TPU} {CUSTOM} compile_topology=tpu7x-512 "
    f"{SMALL} sa_block_q_dkv=1024 sa_block_kv_dkv=1024",
    5: f"gemma4-31b 8192 4 {TPU} remat_policy=custom out_proj=device compile_topology=tpu7x-128 "
    "ici_fsdp_transpose_parallelism=8 ici_fsdp_parallelism=16 "
    f"{FUSED} sa_block_q_dkv=1024 {LOCAL} local_sa_block_kv_dkv=2048",
    6: f"qwen3-235b-a22b 4096 16 {CUSTOM} compile_topology=tpu7x-512 {SMALL}",
    7: f"qwen3-235b-a22b 4096 16 {CUSTOM} compile_topology=tpu7x-512 quantization=fp8_full {SMALL}",
    8: "gpt3-175b 2048 3 remat_policy=full compile_topology=v6e-256 "
    "override_model_config=true trainable_position_size=2048 "
    f"{SHORT}",
    9: f"llama3.1-405b 8192 1 {TPU} {CUSTOM} compile_topology=v6e-256 "
    "compile_topology_num_slices=2 dcn_fsdp_parallelism=2 dcn_data_parallelism=1 "
    f"{SHORT}",
    10: f"llama3.1-70b 8192 2 {TPU} {CUSTOM} {QKV} compile_topology=v6e-64 {FUSED}",
    12: f"llama3.1-70b 8192 5 {TPU} {CUSTOM} {QKV} compile_topology=v6e-256 {FUSED}",
    13: f"llama3.1-8b 8192 3 {TPU} {CUSTOM} {QKV} out_proj=offload compile_topology=v6e-8 {FUSED}",
    16: f"deepseek3-671b 8192 6 {CUSTOM} out_proj=offload compile_topology=v5p-1024 {SPLIT}",
    17: f"llama4-17b-128e 8192 4 {CUSTOM} {QKV} out_proj=offload compile_topology=v5p-256 "
    "ici_tensor_parallelism=4 use_custom_sort_vjp=false "
    f"{SPLIT}",
    18: f"llama4-17b-16e 8192 8 {CUSTOM} compile_topology=v5p-1024 {SPLIT} "
    "use_custom_sort_vjp=false",
    19: "llama2-7b 4096 4 remat_policy=minimal_flash scan_layers=false hardware=gpu "
    "ici_fsdp_parallelism=8 dcn_data_parallelism=2",
}

BASE = {"max_target_length": 512, "per_device_batch_size": 1, "compile_topology": "v6e-4"}

OF_BLOCKS = {model["decoder_block"]: name for name, model in facts.models().items()}.values()
COSTED = sampled(OF_BLOCKS, 2)
"""Models whose steps are costed: one of each kind of block, or of every second one."""


def written(folder: Path, text: str) -> str:
    path = folder / "config.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def settings(text: str) -> list[str]:
    name, time, batch, *rest = text.split()
    return [
        f"model_name={name}",
        f"max_target_length={time}",
        f"per_device_batch_size={batch}",
        *rest,
    ]


def refusal(folder: Path, text: str, *given: str, **how: object) -> LoweringError:
    from shardcore.maxtext.step import step_of

    with pytest.raises(LoweringError) as caught:
        step_of(read_config(written(folder, text), given), **how)  # type: ignore[arg-type]
    assert caught.value.code == "maxtext-config"
    return caught.value


@needs_jax
@pytest.mark.parametrize("number", ROWS)
def test_measured_runs_have_the_same_step(number: int, tmp_path: Path) -> None:
    from shardcore.bench.rebuilt import training_of
    from shardcore.maxtext.step import step_of

    row = read_rows()[number - 1]
    step = step_of(
        read_config(written(tmp_path, ""), settings(ROWS[number])),
        hardware=None if row.chip.startswith("tpu") else row.chip,
        devices=None if row.chip.startswith("tpu") else row.number_of("chips"),
    )
    assert step.chips.topology == (row.columns["topology"] or None)
    assert (step.chips.hardware, step.chips.count) == (row.chip, row.number_of("chips"))
    assert step.chips.slices == int(row.columns["slices"] or 1) or row.chip == "h100-a3"
    expected = training_of(row)
    assert expected.remat is not None
    assert step.run.remat is not None
    assert set(step.run.remat.offloaded) == set(expected.remat.offloaded)
    model = dataclasses.replace(
        step.run.model, name=expected.model.name, family=expected.model.family
    )
    assert dataclasses.replace(step.run, model=model, remat=expected.remat) == expected
    if number in (13, 19):
        [line] = costed([row])
        cost = step.cost()
        assert (cost.step_seconds, cost.peak_bytes) == (line.point, line.peak_bytes)


@needs_jax
@pytest.mark.parametrize("name", facts.models())
def test_every_model_has_a_step(name: str, tmp_path: Path) -> None:
    from shardcore.maxtext.step import step_of

    given = [*(f"{key}={value}" for key, value in BASE.items()), "override_model_config=true"]
    step = step_of(read_config(written(tmp_path, f"model_name: {name}"), given))
    assert step.run.sizes["fsdp"] == 4
    assert step.run.model.parameters > 1e8
    if name in COSTED:
        assert step.cost().step_seconds > 0


@needs_jax
@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama3.1-8b", 8.03),
        ("mixtral-8x7b", 46.7),
        ("deepseek2-16b", 15.7),
        ("gemma2-9b", 9.24),
        ("gemma3-12b", 11.8),
        ("qwen3-30b-a3b", 30.5),
        ("deepseek3-671b", 671),
        ("gpt3-175b", 175),
    ],
)
def test_sizes_are_those_published(name: str, billions: float, tmp_path: Path) -> None:
    from shardcore.maxtext.models import model_of

    model = model_of(read_config(written(tmp_path, f"model_name: {name}")))
    assert model.parameters / 1e9 == pytest.approx(billions, rel=0.01)


@needs_jax
def test_parts_of_a_batch_take_as_long_as_a_whole(tmp_path: Path) -> None:
    from shardcore.maxtext.step import step_of

    def seconds(parts: int, batch: int) -> tuple[float, int]:
        given = ["compile_topology=v6e-8", f"per_device_batch_size={batch}"]
        given += ["model_name=qwen3-0.6b", f"gradient_accumulation_steps={parts}"]
        cost = step_of(read_config(written(tmp_path, ""), given)).cost()
        return cost.step_seconds, cost.peak_bytes

    whole, parts = seconds(1, 8), seconds(4, 2)
    # Weights are gathered, and gradients added, for each part.
    assert whole[0] < parts[0] < 1.5 * whole[0]
    assert parts[1] < whole[1]


def test_chips_of_topologies_are_known() -> None:
    for target, torus in facts.topologies().items():
        config = Config({**facts.defaults(), "compile_topology": target})
        chips = chips_of(config, None, None, None)
        assert hardware(chips.hardware).name == chips.hardware
        assert (chips.slices, chips.topology) == (1, torus)
        if target.startswith(("v5e", "v6e", "tpu7x")):
            assert chips.devices == int(target.partition("-")[2])


def test_every_key_is_in_one_class() -> None:
    data = json.loads(Path(facts.__file__).with_name("keys.json").read_text("utf-8"))
    counts = {kind: len(data[kind]) for kind in facts.CLASSES}
    assert sum(counts.values()) == len(facts.classes()) == 698
    assert set(data["modelled"]) <= set(data["unmodelled"])
    for name, model in facts.models().items():
        assert set(model) <= set(facts.classes()), name


@needs_jax
def test_what_is_not_modelled_is_listed(tmp_path: Path) -> None:
    from shardcore.maxtext.step import step_of

    given = [*(f"{key}={value}" for key, value in BASE.items()), "model_name=qwen3-0.6b"]
    given += ["use_batch_split_schedule=true", "quantization=int8", "gradient_clipping_threshold=0"]
    step = step_of(read_config(written(tmp_path, "enable_checkpointing: false"), given))
    expected = {"use_qk_norm", "normalize_embedding_logits"}
    assert set(step.unmodelled) == expected | {"use_batch_split_schedule", "quantization"}


HOSTILE = {
    "a: [": "not YAML",
    "- 1": "mapping",
    "? [1]\n: 2": "a key is a name",
    "steps: 1\nsteps: 2": "given twice",
    "decoder_block: &a [*a]": "not YAML",
    "steps: 2024-99-99": "not YAML",
    "steps: !!python/object/apply:os.system [ls]": "not YAML",
    "steps: " + "[" * 20_000: "nested too deeply",
    "\0": "not YAML",
    "per_device_batch_sise: 4": "no key",
    "per_device_batch_size: .nan": "positive number",
    "per_device_batch_size: [4]": "not a number",
    "per_device_batch_size: 0.3": "whole number",
    "scan_layers: 7": "not true or false",
    "base_num_decoder_layers: 1e30": "not from",
    "base_num_decoder_layers: 100000": "at most",
    "base_emb_dim: -5": "not from",
    "model_name: {}": "not a string",
    "model_name: llama9": "not modelled",
    "decoder_block: olmo3": "not modelled",
    "remat_policy: most": "not modelled",
    "base_num_kv_heads: 3": "not divided",
    "ici_tensor_parallelism: 3": "does not multiply",
    "ici_fsdp_parallelism: 3": "does not multiply",
    "ici_tensor_parallelism: 0": "neither",
    "ici_tensor_parallelism: -1": "are -1",
    "ici_pipeline_parallelism: 2": "not modelled",
    "base_config: ../../nothing\\0": "",
    "compile_topology: v9-4": "not modelled",
    "num_experts: 8": "experts of",
}


@needs_jax
@pytest.mark.parametrize("text", HOSTILE)
def test_wrong_configurations_are_refused(text: str, tmp_path: Path) -> None:
    given = [f"{key}={value}" for key, value in BASE.items() if f"{key}:" not in text]
    if "nothing" in text:
        with pytest.raises(OSError, match="nothing"):
            read_config(written(tmp_path, text))
        return
    error = refusal(tmp_path, text, *given)
    assert HOSTILE[text] in str(error)
    assert len(str(error)) < 4000


@needs_jax
def test_errors_have_place_and_hint(tmp_path: Path) -> None:
    error = refusal(tmp_path, "steps: 5\nper_device_batch_sise: 4\n")
    assert (error.line, error.column) == (2, 1)
    assert error.hint == 'did you mean "per_device_batch_size"?'
    error = refusal(tmp_path, "model_name: llama3.1-8b\n", "base_emb_dim=4")
    assert "override_model_config" in str(error.hint)
    text = "model_name: llama3.1-8b\nici_tensor_parallelism: 16\n"
    error = refusal(tmp_path, text, "compile_topology=v6e-16")
    assert "key: heads of 8 is not divided over 16 devices of tensor" in error.message
    assert "give --hardware" in str(refusal(tmp_path, "model_name: llama3.1-8b\n").hint)
    error = refusal(tmp_path, text, hardware="tpu-v6e", topology="axb")
    assert error.hint == "write --topology 16x16, or 4x4x8"
    config = read_config(written(tmp_path, text), ["learning_rate=1e-5"])
    assert config.values["learning_rate"] == 1e-5
    for setting in ("", "steps", "=4", "steps=[", "steps=1\nlog: 2"):
        assert refusal(tmp_path, "", setting)


def test_files_stand_on_others(tmp_path: Path) -> None:
    (tmp_path / "own.yml").write_text("base_config: base.yml\nsteps: 3\nvocab_size: 512\n")
    path = written(tmp_path, "base_config: own.yml\nsteps: 4\nmodel_name: llama2-7b\n")
    config = read_config(path)
    assert (config.values["steps"], config.values["vocab_size"]) == (4, 32000)
    assert config.overruled == ("vocab_size",)
    loop = written(tmp_path, "base_config: config.yml\n")
    with pytest.raises(LoweringError, match="on each other"):
        read_config(loop)


@needs_jax
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "model_name: qwen3-0.6b\ncompile_topology: v5e-4\n")
    assert main(["maxtext", path, "--set", "per_device_batch_size=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["batch"] == 8
    assert found["not_modelled"]["use_qk_norm"] == "True"
    assert found["cost"]["step_seconds"] > 0
    assert main(["maxtext", path, "--set", "vocab_sise=2"]) == 1
    assert 'did you mean "vocab_size"?' in capsys.readouterr().err


def test_keys_of_the_compiler_and_of_routing_are_not_called_harmless() -> None:
    kinds = facts.classes()
    for key in ("compile_xla_flags", "shardy", "load_balance_loss_weight", "mtp_num_layers"):
        assert kinds[key] == "unmodelled"
    for key in ("learning_rate", "checkpoint_period", "rope_max_timescale", "dataset_path"):
        assert kinds[key] == "harmless"
