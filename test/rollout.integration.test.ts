import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Agent, toAgentProgram } from '@aworld-train/agent'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { type AgentProgram, type RolloutRequest, TrainError, type Turn } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner, type RolloutRunnerOptions } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { type ScriptedCompletion, scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { expect, test } from 'vitest'

const toolServer = fileURLToPath(new URL('../packages/environment/src/testing/tool-server.ts', import.meta.url))
const never = new AbortController().signal

type Say = (prompt: string, call: number) => Partial<ScriptedCompletion> & { readonly text: string }

const echo = '<tool_call>\n{"name": "echo", "arguments": {"text": "79"}}\n</tool_call>'
/** Calls the tool, then answers. */
const lookThenAnswer: Say = (prompt) => ({ text: prompt.includes('<|im_start|>tool') ? '79' : echo })

/** Every real part, before an engine that says what the test wants. */
async function openStage(say: Say, program: AgentProgram, options: Partial<RolloutRunnerOptions> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'rollout-integration-'))
  const model = await writeTinyModel({ directory, template: chatMlTemplate })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const engine = scriptedEngine({
    model,
    script: ({ promptTokenIds }, call) => {
      const { text, ...rest } = say(chat.decode([...promptTokenIds], { skipSpecialTokens: false }), call)
      return { tokenIds: [...chat.encode(text), ...model.stopTokenIds], ...rest }
    },
  })
  const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat } }, aliases: { '*': 'policy' }, seed: 1 })
  const environment = createEnvironment({ baseDirectory: directory })
  const path = join(directory, 'run')
  const newRunner = (store: RolloutRunnerOptions['store']) =>
    createRolloutRunner({
      program,
      gateway,
      environment,
      reward: {
        name: 'exact',
        score: async ({ episode, answer }) => ({ reward: episode.answer === answer.groundTruth ? 1 : 0, scores: {} }),
        close: async () => {},
      },
      store,
      answerKey: (taskId) => ({ version: 1, taskId, groundTruth: '79' }),
      concurrency: 8,
      ...options,
    })
  return {
    engine,
    gateway,
    environment,
    path,
    newRunner,
    async [Symbol.asyncDispose]() {
      await environment.close()
      await gateway.close()
      await engine.close()
      await rm(directory, { recursive: true })
    },
  }
}

const mcpConfig = {
  mcpServers: { tools: { command: process.execPath, args: [toolServer, '--count'], stateless: true } },
}
const chemist = () => toAgentProgram(new Agent({ name: 'chemist', mcpConfig }))

function requests(count: number): RolloutRequest[] {
  return Array.from({ length: count }, (_, index) => ({
    version: 1,
    key: `train/${index}`,
    task: {
      version: 1,
      id: `gold-${index}`,
      hash: 'hash',
      input: 'What is the atomic number of gold?',
      data: {},
      dataSource: 'test',
      extraInfo: {},
    },
    group: 'gold',
    sample: index,
    split: 'train',
    policy: 'policy',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 256, stop: [], seed: 0 },
    limits: {},
  }))
}

interface WireMessage {
  readonly role: string
  readonly content: string | null
  readonly tool_call_id?: string
}

const user: WireMessage = { role: 'user', content: 'Go on.' }

/** A program that knows nothing but its base URL. */
function plainAgent(run: (ask: (messages: readonly WireMessage[]) => Promise<WireMessage>) => Promise<string | null>): AgentProgram {
  return {
    agents: [{ name: 'agent', trainable: true }],
    async run(_, context) {
      const { baseUrl } = context.policy()
      const ask = async (messages: readonly WireMessage[]) => {
        const response = await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'any', messages }),
          signal: context.signal,
        })
        if (!response.ok) throw new Error(`status ${response.status}`)
        return ((await response.json()) as { choices: { message: WireMessage }[] }).choices[0]!.message
      }
      return { answer: await run(ask), messages: [] }
    },
  }
}

const tokensOf = (turns: readonly Turn[]) => turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)

test('an agent with tools runs over HTTP and MCP; every side counts the same', async () => {
  await using stage = await openStage(lookThenAnswer, chemist())
  const store = await openRunStore({ path: stage.path })
  const runner = stage.newRunner(store)
  const episodes = await runner.runAll(requests(24), never)
  expect(episodes.map(({ stopReason, reward, answer, error }) => [stopReason, reward, answer, error])).toEqual(
    Array(24).fill(['completed', 1, '79', undefined]),
  )
  for (const { trajectories, toolCalls, messages } of episodes) {
    const [first, second] = trajectories[0]!.turns
    expect(second?.parent).toBe(0)
    expect(toolCalls).toMatchObject([
      { agent: 'chemist', turn: 0, id: first?.toolCalls[0]?.id, name: 'echo', content: '79', isError: false },
    ])
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  }
  const turns = episodes.flatMap(({ trajectories }) => trajectories.flatMap((trajectory) => trajectory.turns))
  expect(turns.length).toBe(48)
  expect([stage.engine.requests.length, stage.gateway.counts().calls, store.counts().turns]).toEqual([48, 48, 48])
  expect([stage.engine.sampledTokens(), store.counts().sampledTokens]).toEqual([tokensOf(turns), tokensOf(turns)])
  expect(await stage.environment.counts()).toMatchObject({ toolCalls: 24, toolErrors: 0, serverToolCalls: 24 })
  expect(runner.counts()).toMatchObject({ toolCalls: 24, toolErrors: 0, finished: 24 })
  expect([...store.episodes()]).toEqual(episodes)
  await store.close()
})

test('the time limit aborts a completion in the engine and a call in the tool server', async () => {
  const hang = '<tool_call>\n{"name": "hang", "arguments": {}}\n</tool_call>'
  const limits = { timeoutMs: 1500 }
  for (const say of [() => ({ text: 'a long answer', pieceDelayMs: 500 }), () => ({ text: hang })] satisfies Say[]) {
    await using stage = await openStage(say, chemist(), { limits })
    const store = await openRunStore({ path: stage.path })
    const [episode] = await stage.newRunner(store).runAll(requests(1), never)
    expect(episode).toMatchObject({ stopReason: 'time-limit', reward: null, error: { code: 'AGENT_LIMIT' } })
    expect(stage.engine.inFlight()).toBe(0)
    expect(stage.engine.sampledTokens()).toBe(store.counts().sampledTokens)
    await store.close()
  }
})

test('the policy keeps calling: the episode ends at its limit of turns with a reward of 0', async () => {
  await using stage = await openStage(() => ({ text: echo }), chemist(), { limits: { maxTurns: 3 } })
  const store = await openRunStore({ path: stage.path })
  const [episode] = await stage.newRunner(store).runAll(requests(1), never)
  expect(episode).toMatchObject({ stopReason: 'turn-limit', reward: 0 })
  expect(episode?.trajectories[0]?.turns).toHaveLength(3)
  await store.close()
})

test('an engine that fails once gets the rollout a new attempt; no sampled token is lost', async () => {
  const say: Say = (prompt, call) => ({
    ...lookThenAnswer(prompt, call),
    ...(call === 1 && { error: new TrainError('POLICY_UNAVAILABLE', 'The engine is gone.') }),
  })
  const program = plainAgent(async (ask) => {
    const first = await ask([user])
    const second = await ask([user, first, { role: 'tool', tool_call_id: 'unknown', content: '79' }])
    return second.content
  })
  await using stage = await openStage(say, program)
  const store = await openRunStore({ path: stage.path })
  const runner = stage.newRunner(store)
  const [episode] = await runner.runAll(requests(1), never)
  expect(episode).toMatchObject({ attempt: 1, stopReason: 'completed', answer: '79', reward: 1 })
  expect(runner.counts()).toMatchObject({ retries: 1 })
  const { sampledTokens } = store.counts()
  const supersededTokens = store.supersededTokens()
  expect(sampledTokens).toBe(stage.engine.sampledTokens())
  expect(supersededTokens).toBe(runner.supersededTokens())
  expect(supersededTokens).toBeGreaterThan(0)
  await store.close()
})

test('an agent that edits its history gets a branch, kept and read back whole', async () => {
  const program = plainAgent(async (ask) => {
    const first = await ask([user])
    await ask([user, first, { role: 'user', content: 'And now?' }])
    const edited = await ask([user, { role: 'assistant', content: 'I said something else.' }, { role: 'user', content: 'And now?' }])
    return edited.content
  })
  await using stage = await openStage((_prompt, call) => ({ text: `answer ${call}` }), program)
  const store = await openRunStore({ path: stage.path })
  const [episode] = await stage.newRunner(store).runAll(requests(1), never)
  expect(episode).toMatchObject({ stopReason: 'completed', answer: 'answer 2', reward: 0 })
  const turns = episode!.trajectories[0]!.turns
  expect(turns.map(({ parent, branchReasons }) => [parent, branchReasons.length > 0])).toEqual([
    [null, true],
    [0, false],
    [null, true],
  ])
  await store.close()
  const again = await openRunStore({ path: stage.path })
  expect(again.episode(episode!.rollout)).toEqual(episode)
  expect(again.counts().sampledTokens).toBe(stage.engine.sampledTokens())
  await again.close()
})

test('an agent that never calls the model is a failure with a reason', async () => {
  await using stage = await openStage(
    lookThenAnswer,
    plainAgent(async () => '79'),
  )
  const store = await openRunStore({ path: stage.path })
  const [episode] = await stage.newRunner(store).runAll(requests(1), never)
  expect(episode).toMatchObject({ stopReason: 'no-model-call', reward: null, error: { code: 'AGENT_NO_MODEL_CALL' } })
  expect(stage.engine.requests).toEqual([])
  await store.close()
})

test('a stopped run keeps its results and goes on with the rest; every sampled token is on record', async () => {
  const say: Say = (prompt, call) => ({ ...lookThenAnswer(prompt, call), pieceDelayMs: 1 })
  await using stage = await openStage(say, chemist())
  const all = requests(30)
  const stop = new AbortController()
  const first = await openRunStore({ path: stage.path })
  const running = stage.newRunner(first).runAll(all, stop.signal)
  running.catch(() => {})
  while (first.counts().finished < 6) await sleep(5)
  stop.abort(new Error('SIGINT'))
  await expect(running).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  const kept = [...first.episodes()]
  expect(kept.length).toBeLessThan(30)
  expect(stage.engine.inFlight()).toBe(0)
  expect(first.counts().sampledTokens).toBe(stage.engine.sampledTokens())
  await first.close()

  const second = await openRunStore({ path: stage.path })
  const episodes = await stage.newRunner(second).runAll(all, never)
  expect(episodes.map(({ stopReason }) => stopReason)).toEqual(Array(30).fill('completed'))
  for (const episode of kept) expect(episodes.find(({ rollout }) => rollout === episode.rollout)).toEqual(episode)
  const { finished, sampledTokens } = second.counts()
  const inEpisodes = tokensOf(episodes.flatMap(({ trajectories }) => trajectories.flatMap(({ turns }) => turns)))
  expect(finished).toBe(30)
  expect([sampledTokens, inEpisodes + second.supersededTokens()]).toEqual([stage.engine.sampledTokens(), stage.engine.sampledTokens()])
  await second.close()
})
