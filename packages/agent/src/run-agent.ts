import { type AgentAnswer, type Invocation, type Message, type PolicyEndpoint, type ToolCall, TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { ProgramRun, RunAgent } from './program-run.ts'
import { runAfterModel, runAfterTool, runBeforeModel, runBeforeTool } from './run-hooks.ts'
import { createToolset, type Toolset } from './toolset.ts'
import { toWireTool } from './wire.ts'

/** Most model calls of one run of an agent if neither the agent nor the rollout sets a limit. */
const defaultMaxTurns = 10

/** Most repetitions of a refused call to an endpoint of the agent's own. */
const defaultMaxRetries = 2

/** The message after an unreadable call, which has no id that a tool's message could answer. */
const malformedCall: Message = {
  role: 'user',
  content: 'Error: this tool call cannot be read; its arguments must be a JSON object. Write the call again.',
}

/** Runs an agent as an invocation that has begun, and ends that. */
export const runAgent: RunAgent = async (agent, input, run, options) => {
  let answer: AgentAnswer | undefined
  try {
    answer = await runTurns(agent, input, run, options)
    options.transcript.messages = answer.messages
    return answer
  } finally {
    options.invocation.end(typeof answer?.answer === 'string')
  }
}

/** Calls the model and runs its tool calls until a message without tool calls, which is the answer, or until the turn limit. */
async function runTurns(
  agent: Agent,
  input: readonly Message[],
  run: ProgramRun,
  { invocation, transcript, signal }: Parameters<RunAgent>[3],
): Promise<AgentAnswer> {
  signal.throwIfAborted()
  const { context, graph, spent } = run
  const { hooks } = agent
  const name = graph.nameOf(agent)
  const client = connect(agent, invocation, run)
  const toolset = await createToolset(agent, invocation, run)
  const tools = toolset.definitions.map(toWireTool)
  const fields = agent.conf.requestFields()
  const ofRollout = context.limits.maxTurns ?? Number.POSITIVE_INFINITY
  const maxTurns = agent.maxTurns ?? context.limits.maxTurns ?? defaultMaxTurns

  let messages: readonly Message[] = startMessages(agent.systemPrompt, input)
  for (let turn = 0; turn < maxTurns && spent.modelCalls < ofRollout; turn += 1) {
    signal.throwIfAborted()
    transcript.messages = messages
    messages = await runBeforeModel(hooks, { agent: name, turn, messages, tools: toolset.definitions, signal })
    spent.modelCalls += 1
    const { isMalformedCall, ...reply } = await client.complete({ messages, tools, fields, turn }, signal)
    addUsage(spent, reply.usage)
    const message = await runAfterModel(hooks, { agent: name, turn, ...reply, signal })
    const calls = message.toolCalls ?? []
    messages = [...messages, message]
    transcript.messages = messages
    const reminder = calls.length === 0 && !isMalformedCall ? toolset.reminder() : null
    if (calls.length === 0 && !isMalformedCall && !reminder) return { answer: message.content ?? '', messages }
    if (turn + 1 >= maxTurns || spent.modelCalls >= ofRollout) break
    const results = calls.length === 0 ? [reminder ?? malformedCall] : await callTools(agent, name, turn, calls, toolset, signal)
    messages = [...messages, ...results]
  }
  if (spent.modelCalls >= ofRollout) spent.metSharedLimit = true
  return { answer: null, messages, stopped: 'turn-limit' }
}

function connect(agent: Agent, invocation: Invocation, { transport, policyBaseUrls }: ProgramRun) {
  const { conf } = agent
  const side = conf.isTrainable(policyBaseUrls) ? 'policy' : conf.gatewayModel === undefined ? 'own' : 'frozen'
  const endpoint = side === 'own' ? ownEndpoint(agent, invocation.agent) : invocation.policy()
  return transport.connect({ endpoint, side, maxRetries: conf.fields.maxRetries ?? defaultMaxRetries })
}

function ownEndpoint({ conf }: Agent, name: string): PolicyEndpoint {
  const { llmBaseUrl, llmModelName, llmApiKey } = conf
  if (llmModelName === undefined) {
    throw new TrainError('CONFIG_INVALID', `Agent "${name}" has an llmBaseUrl but no llmModelName; set it in its AgentConfig.`)
  }
  return { baseUrl: llmBaseUrl!, model: llmModelName, apiKey: llmApiKey ?? 'none' }
}

/** Puts the agent's system prompt before the input. A system message that opens the input joins it, so that there is only one. */
function startMessages(systemPrompt: string | undefined, input: readonly Message[]): Message[] {
  const messages = input.map((message) => ({ ...message }))
  if (systemPrompt === undefined) return messages
  const [first] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: systemPrompt }, ...messages]
  return [{ ...first, content: `${systemPrompt}\n\n${first.content ?? ''}`.trimEnd() }, ...messages.slice(1)]
}

/**
 * Runs the calls of one message at the same time. Messages come in the order of the calls. The first call that rejects aborts the others.
 */
async function callTools(
  agent: Agent,
  name: string,
  turn: number,
  calls: readonly ToolCall[],
  toolset: Toolset,
  signal: AbortSignal,
): Promise<Message[]> {
  const one = async (toolCall: ToolCall, place: number, limit: AbortSignal): Promise<Message> => {
    const before = await runBeforeTool(agent.hooks, { agent: name, turn, call: toolCall, signal: limit })
    const result = before.result ?? (await toolset.call(before.call, { turn, place }, limit))
    const { content } = await runAfterTool(agent.hooks, { agent: name, turn, call: before.call, result, signal: limit })
    return { role: 'tool', content, toolCallId: toolCall.id, name: before.call.name }
  }
  if (calls.length === 1) return [await one(calls[0]!, 0, signal)]
  const siblings = new AbortController()
  const limit = AbortSignal.any([signal, siblings.signal])
  try {
    return await Promise.all(calls.map((call, place) => one(call, place, limit)))
  } catch (error) {
    siblings.abort(error)
    throw error
  }
}

function addUsage({ usage }: ProgramRun['spent'], added: ProgramRun['spent']['usage'] | null): void {
  if (!added) return
  usage.promptTokens += added.promptTokens
  usage.completionTokens += added.completionTokens
  usage.cachedTokens += added.cachedTokens
}
