"""The short rollouts of the other engines as plain tasks of Ray, without us. Prints one JSON line."""

import json, sys, time, urllib.request  # noqa: E401

import ray

OPTIONS = json.loads(sys.argv[1])
STARTED = time.monotonic()


# As many at once as there are workers of ours.
@ray.remote(num_cpus=OPTIONS["cpus"] / OPTIONS["workers"])
def rollout():
    body = {"model": "bench", "messages": [{"role": "user", "content": "plan 0"}]}
    url = f"http://127.0.0.1:{OPTIONS['upstreamPort']}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return not json.load(response)["choices"][0]["message"].get("tool_calls")


ray.init(address=OPTIONS["address"], log_to_driver=False)
ray.get(rollout.remote())
start_seconds = time.monotonic() - STARTED
# So that all processes are there.
ray.get([rollout.remote() for _ in range(OPTIONS["slots"])])
started = time.monotonic()
ended = ray.get([rollout.remote() for _ in range(OPTIONS["count"])])
print(json.dumps({"seconds": time.monotonic() - started, "startSeconds": start_seconds, "failed": ended.count(False)}), flush=True)
