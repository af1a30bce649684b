import {
  type AgentAnswer,
  type AgentDeclaration,
  type AgentTask,
  Message,
  orAborted,
  type RolloutContext,
  TrainError,
} from '@aworld-train/core'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { type AgentGraph, createAgentGraph } from './agent-graph.ts'
import { inContext } from './in-context.ts'
import { createModelTransport, type ModelTransport } from './model-client.ts'
import { describeValue } from './named-options.ts'
import type { ProgramRun } from './program-run.ts'
import type { AgentFunction, AgentFunctionContext, AgentProgramOptions, AgentSource, ClosableAgentProgram } from './program-types.ts'
import { runGraph } from './run-graph.ts'
import { sideBySide } from './side-by-side.ts'
import { Swarm } from './swarm.ts'

/** Turns an agent, a swarm or a function into the program that the rollout runner runs. Throws AGENT_INVALID for anything else. */
export function toAgentProgram(source: AgentSource, options: AgentProgramOptions = {}): ClosableAgentProgram {
  if (source instanceof Agent || source instanceof Swarm) return programOf(source, options)
  if (typeof source === 'function') return functionProgram(source, options)
  throw new TrainError(
    'AGENT_INVALID',
    `The agent is ${describeValue(source)}; pass an Agent, a Swarm or a function (task, context) => answer.`,
  )
}

function programOf(source: Agent | Swarm, { policyBaseUrls = [] }: AgentProgramOptions): ClosableAgentProgram {
  const graph = createAgentGraph(source)
  let transport: ModelTransport | undefined
  return {
    agents: graph.agents.map((agent) => declare(agent, graph, policyBaseUrls)),
    sideBySide: sideBySide(graph),
    run: (task, context) => {
      transport ??= createModelTransport()
      return runProgram(task, createProgramRun(graph, context, transport, policyBaseUrls))
    },
    async close() {
      await transport?.close()
      transport = undefined
    },
  }
}

/** Creates the shared state of one run of a program. */
export function createProgramRun(
  graph: AgentGraph,
  context: RolloutContext,
  transport: ModelTransport,
  policyBaseUrls: readonly string[],
): ProgramRun {
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 }
  const spent = { modelCalls: 0, usage, metSharedLimit: false }
  return { graph, context, transport, policyBaseUrls, runGraph, spent, transcripts: [], steps: new Map(), callers: [] }
}

/** Runs a program on its task. */
export async function runProgram({ input }: AgentTask, run: ProgramRun): Promise<AgentAnswer> {
  const messages: readonly Message[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  const answer = await runGraph(run.graph.graph, { input: messages, place: '', startedBy: [] }, run, run.context.signal)
  return run.spent.metSharedLimit ? { ...answer, metSharedLimit: true } : answer
}

function declare(agent: Agent, graph: AgentGraph, policyBaseUrls: readonly string[]): AgentDeclaration {
  const { conf, mcpConfig, mcpServers, blackToolActions: hiddenTools } = agent
  const signs = conf.frozenSigns()
  if (signs !== null) {
    throw new TrainError(
      'CONFIG_INVALID',
      `Agent "${graph.nameOf(agent)}" has no address and would be trained, but its AgentConfig has ${signs}. Set llmBaseUrl, whose environment variable may be missing, or set llmProvider to "policy" for the model in training.`,
    )
  }
  const trainable = conf.isTrainable(policyBaseUrls)
  const definitions = agent.tools.length === 0 ? undefined : agent.tools.map(({ definition }) => definition)
  const functions = definitions?.map(({ name }) => name)
  return {
    name: graph.nameOf(agent),
    trainable,
    model: conf.gatewayModel,
    policy: conf.policyModel,
    mcpConfig,
    mcpServers,
    hiddenTools,
    functions,
    definitions,
  }
}

/** Name of a plain function in a program. */
const functionName = 'agent'

function functionProgram(source: AgentFunction, { functionTools }: AgentProgramOptions): ClosableAgentProgram {
  return createFunctionProgram([{ name: functionName, trainable: true, randomKey: 'prompt', ...functionTools }], source)
}

/** Makes a program of a function. Its context is that of the first agent, unless the function names another. */
export function createFunctionProgram(agents: readonly AgentDeclaration[], source: AgentFunction): ClosableAgentProgram {
  const names = agents.map(({ name }) => name)
  return {
    agents,
    async run(task, context) {
      const functionContext = toFunctionContext(context, names[0]!)
      const returned = await inContext(context, () => orAborted(source(task, functionContext), context.signal), names.join(', '))
      return readAnswer(returned)
    },
    close: async () => {},
  }
}

function toFunctionContext(context: RolloutContext, first: string): AgentFunctionContext {
  const { rollout, attempt, task, signal, limits } = context
  return {
    rollout,
    attempt,
    task,
    file: (name) => context.file(name),
    signal,
    limits,
    policy: (agent = first, place) => context.policy(agent, place),
    tools: (agent = first, place) => context.tools(agent, place),
    state: (definition) => context.state(definition),
    invoke: (agent, options) => context.invoke(agent, options),
    runTool: (agent, call, run, place) => context.runTool(agent, call, run, place),
    ...context.policy(first),
  }
}

const Answer = z.strictObject({ answer: z.string().nullable(), messages: z.array(Message).optional() })

function readAnswer(returned: unknown): AgentAnswer {
  if (returned === null || typeof returned === 'string') return { answer: returned, messages: [] }
  const parsed = Answer.safeParse(returned)
  if (parsed.success) return { answer: parsed.data.answer, messages: parsed.data.messages ?? [] }
  const issue = typeof returned === 'object' ? ` (${parsed.error.issues[0]!.path.join('.')}: ${parsed.error.issues[0]!.message})` : ''
  throw new TrainError(
    'AGENT_FAILED',
    `The agent function returned ${describeValue(returned)}${issue}; return the answer as text, { answer, messages } or null.`,
  )
}
