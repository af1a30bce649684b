"""The installed verl's configuration, composed by the Hydra that is installed with it.

    python -m aworld_train_bridge.verl.resolve_config

Every line of standard input is a request and is answered by a line of standard output, both JSON; it ends with its input. What Hydra has
composed for one request is there for the next:

* ``{"keys": {path: value}, "texts": [override], "groups": [override]}``: what verl has by itself, for reading a configuration of these keys.
  ``defaults`` is its tree with references kept, ``resolved`` the same with references replaced; ``parsed`` are the values of the texts,
  in their order, as Hydra reads them; ``values`` are the values of all keys with their references replaced.
* ``{"groups": [override], "overrides": [override], "environment"?: {name: value}, "validate"?: bool}``: ``tree``, composed and resolved,
  null where there are errors; ``environment`` is that of verl's processes from then on. With ``validate`` verl's own dataclasses and ``validate_config`` (verl/utils/config.py) look at it, and the names that the bridge relies on are compared.

An answer has the ``version`` of verl, and ``errors``: ``[{"key"?: str, "message": str}]``. Nothing of torch is imported unless ``validate``
asks for it. The exit status is 0 whenever answers were printed.
"""

from __future__ import annotations

import contextlib
import copy
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


def compose(overrides: list[str]) -> Any:
    """The composed configuration; raises what Hydra raises."""
    import hydra

    with hydra.initialize_config_dir(config_dir=config_directory(), version_base=None):
        return hydra.compose(config_name="ppo_trainer", overrides=overrides)


FILES: dict[tuple[str, ...], Any] = {}
"""What Hydra composed of the files that a list of groups chooses."""


def compose_over(groups: list[str], overrides: list[str]) -> Any:
    """As ``compose`` of both: what ``groups`` choose is read once, and Hydra itself lays the overrides over a copy of it."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser

    chosen = tuple(groups)
    if chosen not in FILES:
        FILES[chosen] = compose(groups)
    config = copy.deepcopy(FILES[chosen])
    ConfigLoaderImpl._apply_overrides_to_config(OverridesParser.create().parse_overrides(overrides), config)
    return config


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("See https://hydra.cc"))[:600] or type(error).__name__


def blame(groups: list[str], overrides: list[str], error: BaseException) -> list[Error]:
    """Which overrides fail by themselves; the whole message where none does."""
    found: list[Error] = []
    for override in [*groups, *overrides]:
        try:
            compose([override]) if override in groups else compose_over([], [override])
        except Exception as each:  # noqa: BLE001 - Hydra and OmegaConf have many kinds
            found.append({"key": override.lstrip("+~").split("=")[0], "message": first_line(each)})
    return found or [{"message": first_line(error)}]


def validate(config: Any) -> list[Error]:
    """What verl itself says: its dataclasses are made, and ``validate_config`` runs. Before that, what the bridge relies on."""
    from .private_names import changed

    if missing := changed():
        return [{"message": f"{each} Install a verl that was tested: aworld-train setup verl."} for each in missing]
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


def parse(texts: list[str]) -> tuple[list[tuple[str, Any]], list[Error]]:
    """Key and value of each override; errors name those that Hydra cannot read, and sweeps."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create()
    found: list[tuple[str, Any]] = []
    errors: list[Error] = []
    for text in texts:
        key = text.lstrip("+~").split("=")[0]
        try:
            override = parser.parse_override(text)
            if override.is_sweep_override():
                raise ValueError("several values with commas are a sweep; write [a,b] for a list")
            found.append((key, override.value()))
        except Exception as error:  # noqa: BLE001
            found.append((key, None))
            errors.append({"key": key, "message": first_line(error)})
    return found, errors


def read(keys: dict[str, Any], texts: list[str], groups: list[str]) -> dict[str, Any]:
    """verl's own tree with the groups chosen, and the values of a user's keys in it."""
    from omegaconf import OmegaConf, open_dict

    config = compose_over(groups, [])
    plain = OmegaConf.to_container(config, resolve=False)
    resolved = OmegaConf.to_container(config, resolve=True)
    parsed, errors = parse(texts)
    written = {**keys, **dict(parsed)}
    values: dict[str, Any] = {}
    with open_dict(config):
        for path, value in written.items():
            with contextlib.suppress(Exception):  # a key of an older verl may stand below one that is no mapping
                OmegaConf.update(config, path, value, force_add=True)
    for path in written:
        try:
            value = OmegaConf.select(config, path)
            values[path] = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        except Exception as error:  # noqa: BLE001
            errors.append({"key": path, "message": first_line(error)})
    return {"defaults": plain, "resolved": resolved, "parsed": [value for _, value in parsed], "values": values, "errors": errors}


def composed(groups: list[str], overrides: list[str], is_validated: bool) -> dict[str, Any]:
    """The tree of these overrides; every error of Hydra, OmegaConf and, where it is asked, verl."""
    from omegaconf import OmegaConf

    try:
        config = compose_over(groups, overrides)
    except Exception as error:  # noqa: BLE001
        return {"tree": None, "errors": blame(groups, overrides, error)}
    try:
        tree = OmegaConf.to_container(config, resolve=True)
    except Exception as error:  # noqa: BLE001
        return {"tree": None, "errors": [{"message": first_line(error)}]}
    return {"tree": tree, "errors": validate(config) if is_validated else []}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; problems of verl's installation are errors of it."""
    try:
        version = importlib.metadata.version("verl")
        config_directory()
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        return {"version": None, "errors": [{"message": f"{error}; install verl into this Python ({sys.executable})."}]}
    try:
        if "overrides" in request:
            os.environ.update(request.get("environment", {}))
            return {"version": version, **composed(request["groups"], request["overrides"], bool(request.get("validate")))}
        return {"version": version, **read(request["keys"], request["texts"], request["groups"])}
    except Exception as error:  # noqa: BLE001
        return {"version": version, "errors": [{"message": first_line(error)}]}


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
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line)), default=str) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
