"""Composes the installed verl's configuration with overrides and prints it as JSON.

    python -m aworld_train_bridge.verl.resolve_config [REQUEST]      (without it, the request is read from stdin)

The request is ``{"overrides": [...], "configName"?: str, "validate"?: bool, "schema"?: bool}``. A list of
requests is answered by a list, which imports torch once. An answer is one JSON object:

* ``version``: of the installed verl; ``tree``: the composed configuration with references resolved, null when it has errors;
* ``errors``: ``[{"override"?: str, "key"?: str, "message": str}]``;
* with ``validate``, verl's own dataclasses and ``validate_config`` (verl/utils/config.py) have looked at it too;
* with ``schema``, ``defaults`` (composed with nothing but the choice of groups, references kept) and ``extra`` (fields of verl's dataclasses that its
  YAML does not name, which an override has to add with ``+``).

Nothing of torch is imported unless ``validate`` or ``schema`` asks for it. The exit status is 0 whenever an answer was printed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from typing import Any, Iterator, TextIO

Error = dict[str, str]

PLACEHOLDERS = (
    "AWORLD_TRAIN_CHANNEL",
    "AWORLD_TRAIN_CHANNEL_TOKEN_FILE",
    "AWORLD_TRAIN_RUN",
    "AWORLD_TRAIN_RUN_PATH",
    "AWORLD_TRAIN_INCARNATION",
    "VERL_FILE_LOGGER_PATH",
    "VERL_USE_EXTERNAL_MODULES",
    "PYTHONPATH",
)
"""Variables of the bridge that an override may refer to with ``${oc.env:…}``."""


def config_directory() -> str:
    """Folder of verl's trainer configuration; ModuleNotFoundError where verl is not installed."""
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'verl'")
    return os.path.join(list(spec.submodule_search_locations)[0], "trainer", "config")


def compose(config_name: str, overrides: list[str]) -> Any:
    """The composed configuration; raises what Hydra raises."""
    import hydra

    with hydra.initialize_config_dir(config_dir=config_directory(), version_base=None):
        return hydra.compose(config_name=config_name, overrides=overrides)


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("See https://hydra.cc"))[:600] or type(error).__name__


def is_group(override: str) -> bool:
    """Whether an override chooses a file of a configuration group, such as ``model_engine=megatron``."""
    key = override.lstrip("+~").split("=")[0]
    return "@" in key or "/" in key or key == "model_engine"


def blame(config_name: str, overrides: list[str], error: BaseException) -> list[Error]:
    """Which overrides fail by themselves; the whole message where none does."""
    found: list[Error] = []
    for override in overrides:
        try:
            compose(config_name, [override])
        except Exception as each:  # noqa: BLE001 - Hydra and OmegaConf have many kinds
            found.append({"override": override, "key": override.lstrip("+~").split("=")[0], "message": first_line(each)})
    return found or [{"message": first_line(error)}]


def missing_keys(tree: Any, path: str = "") -> Iterator[str]:
    """Dotted paths whose value is still ``???``."""
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        here = f"{path}.{key}" if path else str(key)
        if value == "???":
            yield here
        else:
            yield from missing_keys(value, here)


def validate(config: Any) -> list[Error]:
    """What verl itself says: its dataclasses are made, and ``validate_config`` runs."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    def check(key: str, work: Any) -> Iterator[Error]:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - assertions, ValueErrors and Hydra's own
            yield {"key": key, "message": first_line(error.__cause__ or error)}

    errors = [
        error
        for key in ("rollout", "actor")
        for error in check(f"actor_rollout_ref.{key}", lambda key=key: omega_conf_to_dataclass(config.actor_rollout_ref[key]))
    ]
    if errors:
        return errors
    return list(
        check(
            "trainer",
            lambda: validate_config(
                config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config)
            ),
        )
    )


def extra_fields(tree: Any, path: str = "") -> Iterator[str]:
    """Fields of the dataclass behind each ``_target_`` that the tree does not name."""
    import dataclasses

    from hydra.utils import get_class

    if isinstance(tree, dict):
        target = tree.get("_target_")
        if isinstance(target, str) and target.startswith("verl."):
            try:
                fields = dataclasses.fields(get_class(target))
            except Exception:  # noqa: BLE001 - a class that this machine cannot import has no fields to show
                fields = ()
            for field in fields:
                if field.init and field.name not in tree and not field.name.startswith("_"):
                    yield f"{path}.{field.name}"
        for key, value in tree.items():
            yield from extra_fields(value, f"{path}.{key}" if path else str(key))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; problems of verl's installation are errors of it."""
    overrides = [str(each) for each in request.get("overrides", [])]
    config_name = request.get("configName", "ppo_trainer")
    result: dict[str, Any] = {"version": None, "tree": None, "errors": []}
    try:
        from omegaconf import OmegaConf

        result["version"] = importlib.metadata.version("verl")
        config_directory()
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        result["errors"] = [{"message": f"{error}; install verl into this Python ({sys.executable})."}]
        return result
    if request.get("schema"):
        try:
            defaults = OmegaConf.to_container(compose(config_name, [each for each in overrides if is_group(each)]), resolve=False)
        except Exception as error:  # noqa: BLE001
            result["errors"] = [{"message": first_line(error)}]
            return result
        result["defaults"] = defaults
        result["extra"] = sorted(extra_fields(defaults))
    try:
        config = compose(config_name, overrides)
    except Exception as error:  # noqa: BLE001
        result["errors"] = blame(config_name, overrides, error)
        return result
    try:
        tree = OmegaConf.to_container(config, resolve=True)
    except Exception as error:  # noqa: BLE001
        result["errors"] = [{"message": first_line(error)}]
        return result
    result["tree"] = tree
    result["missing"] = sorted(missing_keys(tree))
    if request.get("validate"):
        result["errors"] = validate(config)
    return result


@contextlib.contextmanager
def quiet_stdout() -> Iterator[TextIO]:
    """Gives the real stdout; what libraries print goes to stderr, also from below Python."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        yield own
    finally:
        own.flush()


def main() -> None:
    with quiet_stdout() as out:
        # Overrides name what a launch sets; here nothing is launched.
        for name in PLACEHOLDERS:
            os.environ.setdefault(name, "")
        request = json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read())
        json.dump([answer(each) for each in request] if isinstance(request, list) else answer(request), out, default=str)
        out.write("\n")


if __name__ == "__main__":
    main()
