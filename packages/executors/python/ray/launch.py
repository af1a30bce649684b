"""Job of Ray that starts one actor a worker, and prints a line of JSON for what becomes of each; ends when all have left."""

import collections, json, os, queue, subprocess, sys, threading, time  # noqa: E401

import ray

MISUSE, COORDINATOR_GONE, PLAN = 2, 3, json.loads(os.environ["AWORLD_TRAIN_LAUNCH"])


@ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=4)
class Worker:
    """Keeps the process of a worker running. Ray itself starts the actor again when it is lost."""

    def __init__(self, name):
        self.name, self.process, self.leaving, self.news = name, None, False, queue.Queue()
        # The variables of the job are those of its actors; the token in them is for no agent and no tool.
        os.environ.pop("AWORLD_TRAIN_LAUNCH", None)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            self.report("starting", "was lost with its actor", "")

    def report(self, state, how="", printed=""):
        self.news.put({"name": self.name, "state": state, "how": how, "printed": printed})

    def next_report(self):
        return self.news.get()

    def run(self, command, env):
        """Returns None when the worker has left, or why it cannot run."""
        short_lives = 0
        while not self.leaving:
            started, tail = time.monotonic(), collections.deque(maxlen=20)
            # The standard input ends with this actor, and by that the worker sees that it is gone.
            pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
            self.process = subprocess.Popen(command, env={**os.environ, **env}, **pipes)
            self.report("running")
            reader = threading.Thread(target=self.read, args=(self.process.stderr, tail), daemon=True)
            reader.start()
            code = self.process.wait()
            reader.join(0.5)
            if code in (0, COORDINATOR_GONE):
                break
            short_lives = short_lives + 1 if time.monotonic() - started < 5 else 0
            how, printed = f"ended with code {code}" if code > 0 else f"ended by signal {-code}", "".join(tail)[-2000:]
            if code == MISUSE or short_lives >= (5 if code > 0 else 12):
                return f'Worker "{self.name}" cannot run: it {how}, and printed: {printed.strip() or "nothing"}'
            self.report("starting", how, printed)
            time.sleep(min(1.6, 0.1 * 2**short_lives))
        self.report("ended")

    def read(self, stream, tail):
        for line in stream:
            tail.append(line)
            sys.stderr.write(line)

    def drain(self):
        self.leaving = True
        if self.process:
            self.process.terminate()


ray.init(address="auto", namespace=PLAN["namespace"], log_to_driver=False)
for each in PLAN["drain"]:
    ray.get(ray.get_actor(**each).drain.remote(), timeout=60)
options = {"num_cpus": 1, **PLAN["resources"], "scheduling_strategy": "SPREAD"}
actors = {each["name"]: Worker.options(name=each["name"], **options).remote(each["name"]) for each in PLAN["start"]}
runs = [actors[each["name"]].run.remote(each["command"], each["env"]) for each in PLAN["start"]]
reports = {actor.next_report.remote(): actor for actor in actors.values()}
while runs:
    (done, *_), _ = ray.wait([*runs, *reports])
    value = ray.get(done)
    if done in reports:
        actor = reports.pop(done)
        reports[actor.next_report.remote()] = actor
    else:
        runs.remove(done)
        value = value and {"failed": value}
    if value:
        print("AWORLD_TRAIN " + json.dumps(value), flush=True)
    if value and "failed" in value:
        sys.exit(MISUSE)
