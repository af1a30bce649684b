import assert from 'node:assert/strict'
import { Agent, execTasks, RunConfig, Runners, serialExecTasks, Task, type TaskOptions } from 'aworld-train'
import { withModelServer } from './parity-context.ts'
import type { ParityRow } from './parity-row.ts'

/** An agent whose endpoint nobody listens on. */
const unreachable = () => new Agent({ name: 'nobody', conf: { llmBaseUrl: 'http://127.0.0.1:9/v1', llmModelName: 'm', maxRetries: 0 } })

async function withAgent(use: (agent: Agent) => Promise<void>): Promise<void> {
  await withModelServer(({ baseUrl }) => use(new Agent({ name: 'asked', conf: { llmBaseUrl: baseUrl, llmModelName: 'm' } })))
}

/** Runners, tasks, run configuration. */
export const runnerRows: readonly ParityRow[] = [
  {
    theirs: '`await Runners.run(input=…, agent=…)`',
    ours: '`await Runners.run(input, agent)`, or `Runners.run({ input, agent })`',
    status: 'works',
    check: () =>
      withAgent(async (agent) => {
        assert.equal((await Runners.run('q', agent)).answer, 're: q')
        assert.equal((await Runners.run({ input: 'q', agent })).answer, 're: q')
      }),
  },
  {
    theirs: '`Runners.sync_run(input=…, agent=…)`',
    ours: '`await Runners.syncRun(input, agent)`',
    status: 'differs',
    note: 'Nothing blocks in JavaScript: it is `run`, and returns a promise.',
    check: () =>
      withAgent(async (agent) => {
        const promise = Runners.syncRun('q', agent)
        assert(promise instanceof Promise)
        assert.equal((await promise).answer, 're: q')
      }),
  },
  {
    theirs: '`await Runners.run_task(task, run_conf)`: responses by task id',
    ours: '`await Runners.runTask(task, { runConf })`',
    status: 'works',
    check: () =>
      withAgent(async (agent) => {
        const responses = await Runners.runTask([new Task({ id: 'a', input: '1', agent }), new Task({ id: 'b', input: '2', agent })], {
          runConf: { worker_num: 2 },
        })
        assert.deepEqual([responses['a']?.answer, responses['b']?.answer], ['re: 1', 're: 2'])
      }),
  },
  {
    theirs: '`exec_tasks(tasks, run_conf)`',
    ours: '`execTasks(tasks, runConf)`',
    status: 'works',
    note: 'One task that fails does not touch the others.',
    check: () =>
      withAgent(async (agent) => {
        const responses = await execTasks([
          { id: 'a', input: '1', agent },
          { id: 'b', input: '2', agent: unreachable() },
        ])
        assert.equal(responses['a']?.answer, 're: 1')
        assert.equal(responses['b']?.success, false)
      }),
  },
  {
    theirs: '`serial_exec_tasks(tasks, run_conf)`: the answer of a task is the input of the next; returns the last',
    ours: '`serialExecTasks(tasks, runConf)`: the same; returns all by task id',
    status: 'differs',
    note: 'After a failure the rest is not run; there the text of the error becomes the next input.',
    check: () =>
      withAgent(async (agent) => {
        const good = await serialExecTasks([
          { id: 'a', input: '1', agent },
          { id: 'b', input: 'unused', agent },
        ])
        assert.deepEqual([good['a']?.answer, good['b']?.answer], ['re: 1', 're: re: 1'])
        const bad = await serialExecTasks([
          { id: 'a', input: '1', agent: unreachable() },
          { id: 'b', input: 'x', agent },
        ])
        assert.equal(bad['b']?.status, 'cancelled')
      }),
  },
  {
    theirs: '`Task(id, name, input, agent, swarm, timeout)`',
    ours: '`new Task({ id, name, input, agent, swarm, timeout })`',
    status: 'works',
    note: '`timeout` in seconds; it cancels the tool calls that are running too.',
    check() {
      const agent = new Agent()
      const task = new Task({ id: 't', name: 'n', input: 'q', agent, timeout: 1200 })
      assert.deepEqual(
        [task.id, task.name, task.input, task.agent, task.swarm, task.timeoutSeconds],
        ['t', 'n', 'q', agent, undefined, 1200],
      )
      assert.throws(
        () => new Task({ input: 'q', agent, mcp_servers_conf: {} } as unknown as TaskOptions),
        /"mcp_servers_conf" is not supported/,
      )
    },
  },
  {
    theirs: '`TaskResponse`: `id`, `answer`, `success`, `msg`, `usage`, `time_cost`, `status`, `trajectory`',
    ours: '`TaskResponse`: `id`, `answer`, `success`, `msg`, `usage`, `timeCost`, `status`, `messages`, `toolCalls`, `invocations`',
    status: 'differs',
    note: '`messages` and `toolCalls` stand for the trajectory; `usage` has `promptTokens`, `completionTokens`.',
    check: () =>
      withAgent(async (agent) => {
        const response = await Runners.run({ id: 't', input: 'q', agent })
        const { timeCost, messages, invocations, ...rest } = response
        assert.deepEqual(rest, {
          id: 't',
          answer: 're: q',
          success: true,
          status: 'success',
          msg: '',
          error: null,
          usage: { promptTokens: 3, completionTokens: 2, cachedTokens: 0 },
          toolCalls: [],
        })
        assert.deepEqual(
          invocations.map(({ id }) => id),
          ['asked'],
        )
        assert(timeCost >= 0 && timeCost < 60)
        assert.equal(messages.at(-1)?.content, 're: q')
      }),
  },
  {
    theirs: "`RunConfig(engine_name='local', sequence_dependent=False, reuse_process=True)`, the defaults",
    ours: '`new RunConfig({ engineName, sequenceDependent, reuseProcess })`, the same defaults',
    status: 'works',
    check() {
      const { engineName, sequenceDependent, reuseProcess, respCarryContext, cls, jobName } = new RunConfig()
      assert.deepEqual(
        [engineName, sequenceDependent, reuseProcess, respCarryContext, cls, jobName],
        ['local', false, true, true, undefined, 'aworld_job'],
      )
      assert.equal(new RunConfig({ sequence_dependent: true, worker_num: 4 }).concurrency(), 1)
    },
  },
  {
    theirs: '`sequence_dependent=True`: `run_task` is `serial_exec_tasks`',
    ours: '`sequenceDependent: true`: one task after another, each with its own input',
    status: 'differs',
    note: '`serialExecTasks` hands answers on.',
    check: () =>
      withAgent(async (agent) => {
        const tasks = [
          { id: 'a', input: '1', agent },
          { id: 'b', input: '2', agent },
        ]
        const responses = await Runners.runTask(tasks, { runConf: { sequence_dependent: true } })
        assert.deepEqual([responses['a']?.answer, responses['b']?.answer], ['re: 1', 're: 2'])
      }),
  },
  {
    theirs: '`worker_num=1`, without effect on the local engine: all tasks start at once',
    ours: '`workerNum`: tasks at a time, 16 by default',
    status: 'differs',
    check() {
      assert.equal(new RunConfig().concurrency(), 16)
      assert.equal(new RunConfig({ worker_num: 4 }).concurrency(), 4)
    },
  },
  {
    theirs: "`engine_name='ray'`, `'spark'`, `'k8s'`",
    ours: '`executor.engineName` of a training and of `serve`; Runners refuse it: their tasks have live agents',
    status: 'differs',
    note: 'Rollouts of an agent in a module run on workers.',
    check() {
      for (const engine_name of ['ray', 'spark', 'k8s']) {
        const config = new RunConfig({ engine_name })
        assert.equal(config.engineName, engine_name)
        assert.throws(() => config.concurrency(), /have live agents, which no other process can have; use engineName "local"/)
      }
    },
  },
  {
    theirs: '`RunConfig.cls`: an engine class of your own',
    ours: '`executor.cls` of a training and of `serve`, `./launcher.ts#createLauncher`; Runners refuse it',
    status: 'differs',
    note: 'A launcher starts workers; what runs where is decided by the coordinator.',
    check: () => assert.throws(() => new RunConfig({ cls: class {} }).concurrency(), /a "cls" of your own: Runners start no workers/),
  },
  {
    theirs: '`reuse_process=False`: a pool of processes',
    ours: '`executor.workerNum` of a training and of `serve`; Runners refuse it: their tasks have live agents',
    status: 'differs',
    note: 'Agents wait for models and tools, which one process does for hundreds; tools run in processes of their own.',
    check: () => assert.throws(() => new RunConfig({ reuse_process: false }).concurrency(), /reuseProcess false: .* live agents/),
  },
  {
    theirs: '`resp_carry_context`',
    ours: 'accepted; a response has the messages, tool calls and invocations instead of a context',
    status: 'differs',
    check: () => assert.equal(new RunConfig({ resp_carry_context: false }).respCarryContext, false),
  },
]
