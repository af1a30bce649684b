import { createHash } from 'node:crypto'
import {
  type AgentAnswer,
  type AgentTask,
  type BudgetLimits,
  type Environment,
  type Message,
  type PolicyEndpoint,
  TrainError,
  toTrainError,
} from '@aworld-train/core'
import { Agent } from './agent.ts'
import { type AgentGraph, createAgentGraph } from './agent-graph.ts'
import { createProgramRun, runProgram } from './agent-program.ts'
import { createLocalContext } from './local-context.ts'
import { createModelTransport, type ModelTransport } from './model-client.ts'
import { messagesOf } from './program-run.ts'
import { RunConfig, type RunConfigOptions } from './run-config.ts'
import { Swarm } from './swarm.ts'
import { Task, type TaskOptions, type TaskResponse, type TaskStatus } from './task.ts'

export interface RunnersOptions {
  /** Serves the tools of agents with an `mcpConfig`. The caller closes it. */
  readonly environment?: Environment | undefined
  /** The model of agents without an endpoint of their own. */
  readonly policy?: PolicyEndpoint | undefined
  readonly limits?: BudgetLimits | undefined
  /** Sends the requests to models. Default: connections of these Runners' own, without timeouts. */
  readonly fetch?: typeof fetch | undefined
  /** Runs `work` once for each of `keys`, in their order and at most `slots` at once. By default each slot is a loop. */
  readonly runInSlots?: typeof runSeveral | undefined
}

/** Options of a call of Runners. */
export interface TaskRunOptions {
  readonly signal?: AbortSignal | undefined
  readonly runConf?: RunConfig | RunConfigOptions | undefined
}

export type TaskInput = Task | TaskOptions

/** Asks agents outside a training run. Whatever happens to a task is in its response; misuse throws. */
export interface Runners {
  /** Asks one agent or swarm one question. */
  run(input: string | readonly Message[], source: Agent | Swarm, options?: TaskRunOptions): Promise<TaskResponse>
  run(task: TaskInput, options?: TaskRunOptions): Promise<TaskResponse>
  /** The same as `run`. Nothing blocks in JavaScript, so it returns a promise too. */
  syncRun: Runners['run']
  /** Responses by task id, for one task or several. */
  runTask(tasks: TaskInput | readonly TaskInput[], options?: TaskRunOptions): Promise<Record<string, TaskResponse>>
  /** Runs all tasks, several at once. A task that fails does not affect the others. */
  execTasks(
    tasks: readonly TaskInput[],
    runConf?: RunConfig | RunConfigOptions,
    signal?: AbortSignal,
  ): Promise<Record<string, TaskResponse>>
  /**
   * Runs tasks in order; the answer of one is the input of the next. After a failure the rest are `cancelled`,
   * because an error is never an input.
   */
  serialExecTasks(
    tasks: readonly TaskInput[],
    runConf?: RunConfig | RunConfigOptions,
    signal?: AbortSignal,
  ): Promise<Record<string, TaskResponse>>
}

/** Creates Runners over an environment. Without one, agents with an `mcpConfig` are refused. */
export function createRunners(options: RunnersOptions = {}): Runners {
  const { runInSlots = runSeveral } = options
  const run = async (first: unknown, second?: unknown, third?: TaskRunOptions): Promise<TaskResponse> => {
    const [input, { runConf, signal } = {}] =
      second instanceof Agent || second instanceof Swarm ? [named(first, second), third] : [first, second as TaskRunOptions]
    const task = prepare(input as TaskInput)
    toRunConfig(runConf).concurrency()
    const response = await withTransport(options.fetch, (transport) => runOne(task, options, transport, signal))
    if (response.error?.boundary === 'config') throw response.error
    return response
  }

  const execTasks: Runners['execTasks'] = async (inputs, runConf, signal) => {
    const tasks = prepareAll(inputs)
    const concurrency = toRunConfig(runConf).concurrency()
    return withTransport(options.fetch, async (transport) => {
      const responses = new Map<string, TaskResponse>()
      const byId = new Map(tasks.map((task) => [task.task.id, task]))
      await runInSlots([...byId.keys()], concurrency, async (id) => {
        responses.set(id, await runOne(byId.get(id)!, options, transport, signal))
      })
      return Object.fromEntries(tasks.map(({ task }) => [task.id, responses.get(task.id)!]))
    })
  }

  const serialExecTasks: Runners['serialExecTasks'] = async (inputs, runConf, signal) => {
    const tasks = prepareAll(inputs)
    toRunConfig(runConf).concurrency()
    return withTransport(options.fetch, async (transport) => {
      const responses: Record<string, TaskResponse> = {}
      let previous: TaskResponse | null = null
      for (const next of tasks) {
        if (previous && !previous.success) {
          responses[next.task.id] = notRun(next.task, previous)
        } else {
          const task: Task = previous ? next.task.withInput(previous.answer!) : next.task
          responses[task.id] = await runOne({ ...next, task }, options, transport, signal)
        }
        previous = responses[next.task.id]!
      }
      return responses
    })
  }

  const runTask: Runners['runTask'] = (tasks, { runConf, signal } = {}) =>
    execTasks(Array.isArray(tasks) ? tasks : [tasks], runConf, signal)

  return { run, syncRun: run, runTask, execTasks, serialExecTasks }
}

/** Runners for agents that have endpoints of their own and no MCP servers. */
export const Runners: Runners = createRunners()

async function runSeveral(keys: readonly string[], slots: number, work: (key: string) => Promise<void>): Promise<void> {
  const queue = keys.values()
  const slot = async () => {
    for (const key of queue) await work(key)
  }
  await Promise.all(Array.from({ length: Math.min(slots, keys.length) }, slot))
}

async function withTransport<Value>(
  ownFetch: typeof fetch | undefined,
  use: (transport: ModelTransport) => Promise<Value>,
): Promise<Value> {
  const transport = createModelTransport(ownFetch)
  try {
    return await use(transport)
  } finally {
    await transport.close()
  }
}

interface PreparedTask {
  readonly task: Task
  readonly graph: AgentGraph
}

const named = (input: unknown, source: Agent | Swarm) => ({ input, ...(source instanceof Agent ? { agent: source } : { swarm: source }) })

function prepare(input: TaskInput): PreparedTask {
  const task = input instanceof Task ? input : new Task(input)
  return { task, graph: createAgentGraph(task.source) }
}

const toRunConfig = (input: RunConfig | RunConfigOptions | undefined): RunConfig =>
  input instanceof RunConfig ? input : new RunConfig(input)

function prepareAll(inputs: readonly TaskInput[]): readonly PreparedTask[] {
  const tasks = inputs.map(prepare)
  const ids = new Set<string>()
  for (const { task } of tasks) {
    if (ids.has(task.id))
      throw new TrainError('CONFIG_INVALID', `Two tasks have the id "${task.id}"; responses are kept by id, so give each its own.`)
    ids.add(task.id)
  }
  return tasks
}

function toProtocolTask({ id, input }: Task): AgentTask {
  const hash = createHash('sha256').update(JSON.stringify(input)).digest('hex')
  return { version: 1, id, hash, input: input as AgentTask['input'], data: {}, dataSource: '' }
}

async function runOne(
  { task, graph }: PreparedTask,
  { environment, policy, limits = {} }: RunnersOptions,
  transport: ModelTransport,
  outer?: AbortSignal,
): Promise<TaskResponse> {
  const started = performance.now()
  const deadline = task.timeoutSeconds === undefined ? undefined : AbortSignal.timeout(task.timeoutSeconds * 1000)
  const signal = AbortSignal.any([outer, deadline].filter((entry) => entry !== undefined))
  const local = createLocalContext({ task: toProtocolTask(task), graph, signal, limits, environment, policy })
  const run = createProgramRun(graph, local.context, transport, [])
  const finish = (outcome: Pick<TaskResponse, 'answer' | 'status' | 'msg' | 'error'>, messages: readonly Message[]): TaskResponse => ({
    id: task.id,
    success: outcome.status === 'success',
    ...outcome,
    usage: run.spent.usage,
    timeCost: (performance.now() - started) / 1000,
    messages,
    invocations: local.invocations(),
    toolCalls: local.toolCalls,
  })
  try {
    const { answer, messages, stopped } = await runProgram(local.context.task, run)
    if (answer !== null) return finish({ answer, status: 'success', msg: '', error: null }, messages)
    const error = noAnswer(task, stopped)
    return finish({ answer, status: 'failed', msg: error.message, error }, messages)
  } catch (thrown) {
    const error = signal.aborted ? abortError(task, outer) : toTrainError(thrown, 'AGENT_FAILED')
    const status: TaskStatus = !signal.aborted ? 'failed' : outer?.aborted ? 'cancelled' : 'timeout'
    return finish({ answer: null, status, msg: error.message, error }, messagesOf(run))
  } finally {
    await local.close()
  }
}

function noAnswer({ id }: Task, stopped: AgentAnswer['stopped']): TrainError {
  if (!stopped) return new TrainError('AGENT_FAILED', `Task "${id}": the agent gave no answer.`)
  return new TrainError('AGENT_LIMIT', `Task "${id}": the agent stopped at its limit of turns without an answer; raise maxTurns.`)
}

function abortError({ id, timeoutSeconds }: Task, outer: AbortSignal | undefined): TrainError {
  if (outer?.aborted) return new TrainError('AGENT_FAILED', `Task "${id}" was cancelled.`, { cause: outer.reason })
  return new TrainError('AGENT_LIMIT', `Task "${id}" ran longer than its timeout of ${timeoutSeconds} s; raise "timeout".`)
}

/** The response of a task that did not run because an earlier one failed. Its message names the first failure. */
function notRun({ id }: Task, previous: TaskResponse): TaskResponse {
  const msg = previous.status === 'cancelled' ? previous.msg : `Not run: task "${previous.id}" before it failed: ${previous.msg}`
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 }
  const error = new TrainError('AGENT_FAILED', msg, { cause: previous.error })
  return {
    id,
    answer: null,
    success: false,
    status: 'cancelled',
    msg,
    error,
    usage,
    timeCost: 0,
    messages: [],
    invocations: [],
    toolCalls: [],
  }
}
