"""Driver of Spark that runs each worker in a job of one partition, and prints a line of JSON for what becomes of each."""

import json, os, subprocess, sys, threading, time  # noqa: E401

from pyspark import InheritableThread, SparkConf, SparkContext

MISUSE, COORDINATOR_GONE = 2, 3


def report(**fields):
    sys.stdout.write("AWORLD_TRAIN " + json.dumps(fields) + "\n")
    sys.stdout.flush()


def run_worker(entry):
    """Runs the process of a worker where Spark has placed it; returns its exit code and what it printed last."""
    # The standard input ends with this process, and by that the worker sees that it is gone.
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    process = subprocess.Popen(entry["command"], env={**os.environ, **entry["env"]}, **pipes)
    tail = []
    for line in process.stderr:
        sys.stderr.write(line)
        tail = [*tail[-19:], line]
    return process.wait(), "".join(tail)[-2000:]


def keep(context, entry):
    """Runs a worker again and again until it has left, or cannot run."""
    name, short_lives = entry["name"], 0
    while name not in leaving:
        started = time.monotonic()
        context.setJobGroup(name, f"worker {name} of AWorld Train", interruptOnCancel=True)
        try:
            [(code, printed)] = context.parallelize([entry], 1).map(run_worker).collect()
            how = f"ended with code {code}" if code >= 0 else f"ended by signal {-code}"
        except Exception as error:  # Whatever Spark lost it by.
            code, how, printed = -1, "was lost by Spark", str(error).strip()[-2000:]
        if code in (0, COORDINATOR_GONE) or name in leaving:
            break
        short_lives = short_lives + 1 if time.monotonic() - started < 5 else 0
        if code == MISUSE or short_lives >= (5 if code > 0 else 12):
            report(failed=f'Worker "{name}" cannot run: it {how}, and printed: {printed.strip() or "nothing"}')
            break
        report(name=name, state="starting", how=how, printed=printed)
        time.sleep(min(1.6, 0.1 * 2**short_lives))
    report(name=name, state="ended", how="", printed="")


def watch(context, running):
    """Says which workers have got their place."""
    tracker = context.statusTracker()
    while True:
        time.sleep(1)
        for name in list(running):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            active = any(stage and stage.numActiveTasks > 0 for stage in stages)
            if active and not running[name]:
                report(name=name, state="running", how="", printed="")
            running[name] = active


plan, leaving, running = json.loads(os.environ.pop("AWORLD_TRAIN_LAUNCH")), set(), {}
spark = SparkContext(conf=SparkConf().setMaster(plan["master"]).setAppName(plan["name"]).setAll(plan["properties"].items()))
threading.Thread(target=watch, args=(spark, running), daemon=True).start()
report(ready=True)
# What Node writes: workers to start, and names of those that leave. It ends with the process that started this one.
for text in sys.stdin:
    command = json.loads(text)
    for entry in command["start"]:
        running[entry["name"]] = False
        InheritableThread(target=keep, args=(spark, entry), daemon=True).start()
    for name in command["cancel"]:
        leaving.add(name)
        spark.cancelJobGroup(name)
spark.cancelAllJobs()
spark.stop()
os._exit(0)
