"""SkyRL's Tinker server, its engine in the same environment: `serve_skyrl.py --port N …`.

SkyRL starts its engine by `uv run`, which would install it once more.
"""

import argparse
import sys


import skyrl.tinker.api as api
import uvicorn
from skyrl.tinker.config import EngineConfig, add_model, config_to_argv


def main() -> None:
    api._build_uv_run_cmd_engine = lambda _parent, config: [sys.executable, "-m", "skyrl.tinker.engine", *config_to_argv(config)]
    parser = argparse.ArgumentParser()
    add_model(parser, EngineConfig)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    fields = {name: value for name, value in vars(arguments).items() if name in EngineConfig.model_fields}
    api.app.state.engine_config = EngineConfig.model_validate(fields)
    uvicorn.run(api.app, host="127.0.0.1", port=arguments.port, log_level="warning", timeout_keep_alive=75)


if __name__ == "__main__":
    main()
