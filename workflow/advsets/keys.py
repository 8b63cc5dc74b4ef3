"""The reference of configuration keys, written out of the schemas (`config/README.md`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from advsets.schemas import schema, yaml_number

_INTRO = """# Configuration

A run is one YAML file: `snakemake --configfile config/demo.yaml`. Unknown keys are refused, and
every default below is filled in; `results/<run>/run_config.yaml` shows the merged result before
anything runs. The tables of data sets and models are YAML files of rows; give your own beside ours:

```yaml
run: mine
dataset_tables: [config/datasets.yaml, my_datasets.yaml]
model_tables: [config/models.yaml, my_models.yaml]
datasets: [my_set]
adversaries: [my_model, minilm_l3]
evaluated_models: [my_model, minilm_l3, minilm_l6]
```

| file | what |
|---|---|
| `config.yaml` | the study of Phang et al. 2021 |
| `demo.yaml` | the embedded default of `make demo` |
| `smoke.yaml` | the same steps in small, for the tests |
| `datasets.yaml`, `models.yaml` | data sets and models, a row each |
| `predictions.yaml` | imported models, whose predictions others made, a row each |
| `figures.yaml` | figures, a row each |

`a.b` below is key `b` of mapping `a`, and `NAME` stands for a name of yours;
`source(hub).repo` is key `repo` of a `source` whose `kind` is
`hub`. A key that is `required` has no default. This page is written out of `workflow/schemas/` by
`make docs`."""

_HEAD = "| key | type | default | meaning | source of the default |\n|---|---|---|---|---|"

_SOURCES = {
    "filter.n_partitions": "64 in Le Bras et al. 2020 and Sakaguchi et al. 2020",
    "filter.threshold": "0.75 in Le Bras et al. 2020 and Sakaguchi et al. 2020",
    "filter.train_size": "our choice; second-hand: WinoGrande 10,000 of 47,000 rows, SNLI about 50,000 of 550,000",
    "filter.slice_size": "our choice; second-hand: WinoGrande 500 of 47,000 rows, SNLI 10,000 of 550,000",
    "filter.comparison": "`more_than` in Phang et al. 2021, `at_least` in the older papers",
    "filter.C": "scikit-learn's default",
    "filter.standardise": "our choice; not in the papers",
    "cost.gpu_tflops": "NVIDIA A100, data sheet: bf16 and fp16, dense",
    "cost.gpu_float32_tflops": "NVIDIA A100, data sheet: fp32",
    "cost.cpu_gflops": "the demo's fine-tuning on an AMD EPYC: about 50",
    "cost.filter_gflops": "filtering rounds in `make bench` on an AMD EPYC: 11 to 13",
    "cost.passes_per_round": "`make bench`: 12 to 15",
}
_OUR_CHOICE = ("cost.", "cluster.", "fine_tune.", "split.", "filter.", "evaluate.", "fine_tuning_seeds.", "embed.")


def reference() -> str:
    """Markdown of every key: type, default, meaning, and where a default comes from."""
    parts = [_INTRO]
    for name, title in (
        ("config", "Run"),
        ("datasets", "Data sets table"),
        ("models", "Models table"),
        ("predictions", "Predictions table"),
        ("figures", "Figures table"),
    ):
        node = schema(name)
        if "properties" not in node:
            node = node["additionalProperties"]
        parts.append(f"\n## {title}\n\n{_HEAD}")
        parts.extend(_rows(node, ""))
    return "\n".join(parts) + "\n"


def _rows(node: dict[str, Any], prefix: str) -> Iterator[str]:
    required = node.get("required", [])
    for key, child in node.get("properties", {}).items():
        path = f"{prefix}{key}"
        default = "required" if key in required else _code(child.get("default")) if "default" in child else ""
        nested = "properties" in child or "oneOf" in child
        origin = _SOURCES.get(path, "our choice" if path.startswith(_OUR_CHOICE) else "")
        yield (
            f"| `{path}` | {_type(child)} | {'' if nested and default == '`{}`' else default} |"
            f" {child.get('description', '')} | {origin} |"
        )
        yield from _rows(child, f"{path}.")
        extra = child.get("additionalProperties")
        if isinstance(extra, dict) and "properties" in extra:
            yield from _rows(extra, f"{path}.NAME.")
        for option in child.get("oneOf", []):
            kind = option["properties"]["kind"]["const"]
            rest = {k: v for k, v in option["properties"].items() if k != "kind"}
            yield from _rows({**option, "properties": rest}, f"{path}({kind}).")


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(_code(value) for value in node["enum"])
    kinds = node.get("type", "")
    names = {"object": "mapping", "array": "list of " + node.get("items", {}).get("type", "value")}
    return " or ".join(str(names.get(kind, kind)) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _code(value: Any) -> str:
    """Value as it would stand in YAML."""
    return f"`{yaml_number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)}`"
