import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Episode, HealthSample, RolloutRequest, RunEvent, StepSample, ToolResult, Turn, WorkerHealth } from '@aworld-train/core'
import { type OwnedRunStore, openRunStore, writeJsonAtomically } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'

/** Text of models, tools and pages that would do harm if it were taken for markup, style or terminal codes. */
export const hostile =
  '<script>window.harmed = 1</script><img src=x onerror="window.harmed = 1"><style>body{display:none}</style><a href="javascript:window.harmed=1" onclick="window.harmed = 1">x</a>\u001b[31mred\u001b]0;title\u0007 </script>{{harm}} \u202eright to left'

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 }
const start = 1_800_000_000_000
/** The rollout whose first attempt failed. */
const again = 'train/2/1/1'
export const bytes = (text: string) => [...Buffer.from(text)]
/** A name that people and servers choose, with the text appended if it would do harm. */
export const nameWith = (name: string, text: string) => (text === hostile ? `${name} ${hostile}` : name)

export interface WrittenRun extends AsyncDisposable {
  /** Folder that holds only the run. */
  readonly below: string
  readonly path: string
  readonly id: string
  /** The run's owner. It is already closed unless the run is live. */
  readonly store: OwnedRunStore
}

export interface WriteRunOptions {
  readonly name?: string
  /** Whether the run goes on: its owner stays open, and a rollout is running. */
  readonly isLive?: boolean
  /** Tokens that one rollout samples in its last turn. */
  readonly longTokens?: number
  /** Text of questions, answers, tools and agents. */
  readonly text?: string
  /** Whether the helper asks for the policy `reader`, whose vocabulary has the ids of bytes in the opposite order. */
  readonly hasReader?: boolean
  /** Result of the tool of the first training rollout. */
  readonly returned?: ToolResult
  /** Page that shows desktops of its rollouts. */
  readonly desktopUrl?: string
}

/**
 * Writes a run of two steps with two groups of two samples each, evaluated before and after. One agent calls another, one rollout
 * fails, and one takes two attempts.
 */
export async function writeRun({
  name = 'tiny',
  isLive = false,
  longTokens = 0,
  text = 'six',
  hasReader = false,
  returned,
  desktopUrl,
}: WriteRunOptions = {}): Promise<WrittenRun> {
  const below = await mkdtemp(join(tmpdir(), 'aworld-train-dashboard-'))
  const id = `${name}-20270115-080000`
  const path = join(below, id)
  const store = await openRunStore({ path, manifest: { name, provenance: { sandboxes: [{ desktopUrl }] } } })
  for (const policy of hasReader ? ['policy', 'reader'] : [''])
    await writeTinyModel({ directory: join(path, 'tokenizer', policy), template: 'unused' })
  if (hasReader) await reverseIds(join(path, 'tokenizer', 'reader', 'tokenizer.json'))
  await writeFile(join(path, 'final_trainer.yaml'), 'training: { logprobCheck: { tolerance: 1.0e-7 } }\n')
  await store.setState('warnings', [{ code: 'CONFIG_NOTE', count: 2, messages: [`Mind the gap: ${text}`] }])
  const emit = (event: Record<string, unknown>) => store.appendEvent({ at: start, ...event } as RunEvent)
  emit({
    type: 'run-start',
    version: 1,
    run: name,
    path,
    seed: 7,
    resumedFromStep: null,
    details: { policy: text, engine: 'written', agent: 'solver' },
    ...(hasReader && { policyOfAgent: { solver: 'policy', helper: 'reader' } }),
  })

  async function play(request: RolloutRequest, reward: number | null, logprob: number, completion = `${text} ${reward}`): Promise<void> {
    await store.queue(request)
    const lost = { code: 'WORKER_LOST', boundary: 'agent', retryable: true, message: `Its worker is gone: ${text}` } as const
    const isAgain = request.key === again
    if (isAgain) await store.begin(request)
    const { attempt } = await store.begin(
      request,
      isAgain ? { worker: { name: `gpu-2/0 ${text}`, agent: null }, endedAt: Date.now(), error: lost } : null,
    )
    const result = (request.key === 'train/1/0/0' && returned) || { content: text, isError: true }
    const turns = turnsOf(request, logprob, completion, text, hasReader).map((turn) => ({
      ...turn,
      attempt,
      messagesDelta: turn.messagesDelta.map((message) => (message.role === 'tool' ? { ...message, content: result.content } : message)),
    }))
    for (const turn of turns) await store.appendTurn(request.key, attempt, turn.agent, turn)
    const episode = toEpisode(request, turns, reward, completion, text, hasReader)
    const toolCalls = episode.toolCalls.map((call) => ({ ...call, ...result }))
    await store.finish({ ...episode, attempt, toolCalls }, isAgain ? { name: 'gpu-1/0', agent: null } : null)
    const { key: rollout, split } = request
    const counts = { turns: turns.length, toolCalls: 1, sampledTokens: 8, durationMs: 60 }
    emit({
      type: 'rollout-end',
      rollout,
      attempt,
      split,
      taskId: request.task.id,
      stopReason: reward === null ? 'failed' : 'completed',
      reward,
      ...counts,
    })
  }

  const evaluate = async (evaluation: string, step: number, reward: (task: number) => number) => {
    for (const task of [0, 1, 2]) {
      const key = `evaluation/${evaluation}/${task}`
      await play(toRequest(`${key}/0`, key, `held-out-${task}`, 'test', step, text), reward(task), -0.2)
    }
  }
  await evaluate('before', 0, (task) => (task === 0 ? 1 : 0))
  for (const step of [1, 2]) {
    const samples: StepSample[] = []
    for (const group of [0, 1]) {
      for (const sample of [0, 1]) {
        const key = `train/${step}/${group}/${sample}`
        const request = toRequest(key, `train/${step}/${group}`, `task-${group}`, 'train', step, text)
        const isLong = longTokens > 0 && step === 2 && group === 0 && sample === 0
        const reward = group === 1 ? 1 : sample === 0 ? 1 : step === 2 ? null : 0
        await play(
          request,
          reward,
          sample === 0 ? -0.1 : -2,
          isLong ? 'long '.repeat(Math.ceil(longTokens / 5)).slice(0, longTokens) : undefined,
        )
        const tokens = turnsOf(request, -1, isLong ? 'x'.repeat(longTokens) : `${text} ${reward}`, text)
          .filter(({ agent }) => agent === 'solver')
          .reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)
        const outcome =
          group === 0
            ? ({ advantage: sample === 0 ? 0.7 : -0.7, reason: null } as const)
            : ({ advantage: null, reason: 'zero-variance-group' } as const)
        samples.push({
          rollout: key,
          agent: 'solver',
          trajectory: 'solver',
          step,
          turns: [0, 1],
          tokens,
          ...outcome,
          trainerLogprobs: group === 0 ? new Float32Array(tokens).fill(-0.11) : null,
        })
        const ofHelper = { rollout: key, agent: 'helper', trajectory: 'helper', step, turns: [0], tokens: bytes('help').length }
        if (hasReader) samples.push({ ...ofHelper, ...outcome, trainerLogprobs: null })
      }
    }
    const metrics = {
      rewardMean: 0.7,
      entropy: 0.2,
      loss: -0.1,
      gradNorm: 0.5,
      stepMs: 1200,
      updateMs: 300,
      rolloutMs: 700,
      maxLogprobDifference: step * 1e-6,
      [nameWith('patience', text)]: 3,
      ...(hasReader && metricsOfTwo(step)),
    }
    const trained = [...new Set(samples.filter(({ reason }) => reason === null).map(({ rollout }) => rollout))]
    await store.commitStep({ step, weightVersion: step + 1, rollouts: trained, metrics, checkpoint: null }, samples)
    emit({ type: 'step-end', step, steps: 3, weightVersion: step + 1, metrics })
  }
  for (let index = 0; index < 4; index++) {
    const at = isLive ? Date.now() - 2_000 * (4 - index) : start + 2_000 * index
    await store.keepHealth(healthSample(at, index, text), workersAt(at, isLive, text))
  }
  if (isLive) {
    const request = toRequest('train/3/0/0', 'train/3/0', 'task-0', 'train', 3, text)
    await store.begin(request)
    const [first, , answered] = turnsOf(request, -0.3, 'one turn', text, hasReader)
    for (const turn of hasReader ? [first!, answered!] : [first!]) await store.appendTurn(request.key, 0, turn.agent, turn)
    emit({ type: 'step-start', step: 3, steps: 3 })
  } else {
    await evaluate('after', 2, (task) => (task === 2 ? 0 : 1))
    emit({ type: 'run-end', status: 'finished' })
  }
  if (!isLive) {
    await store.close()
    await writeJsonAtomically(join(path, 'manifest.json'), { ...store.manifest, status: 'finished' })
  }
  return {
    below,
    path,
    id,
    store,
    async [Symbol.asyncDispose]() {
      if (isLive) await store.close()
      await rm(below, { recursive: true, force: true })
    },
  }
}

/** Metrics by policy and role. */
const metricsOfTwo = (step: number): Record<string, number> => ({
  'policy/policy/loss': -0.1,
  'policy/reader/loss': -0.2,
  'role/solver/reward': 0.7,
  'role/solver/turns': 8,
  'role/solver/malformedTurns': 1,
  'role/solver/sampledTokens': 100,
  'role/solver/groupsWithVariance': 1,
  'role/helper/reward': 0.1 * step,
  'role/helper/turns': 4,
  'role/helper/malformedTurns': 2,
  'role/helper/sampledTokens': 16,
  'role/helper/groupsWithVariance': 0,
})

async function reverseIds(file: string): Promise<void> {
  const tokenizer = JSON.parse(await readFile(file, 'utf8'))
  const { vocab } = tokenizer.model
  for (const character of Object.keys(vocab)) vocab[character] = 255 - vocab[character]
  await writeFile(file, JSON.stringify(tokenizer))
}

/** A process whose second server is down, and whose trainer has reconnected. */
const healthSample = (at: number, index: number, text: string): HealthSample => ({
  at,
  queued: 12 - index,
  running: index,
  retries: index,
  calls: index,
  memoryBytes: 300e6 + index * 1e6,
  eventLoopMs: { p99: 1.2 * index, most: 8 * index },
  engines: {
    policy: {
      ready: true,
      reason: null,
      weightVersion: 2,
      replicas: [
        { name: 'gpu-1:8000', ready: true, reason: null, inFlight: index, queued: 1, oldestQueuedMs: 250 },
        { name: `gpu-2:8000 ${text}`, ready: false, reason: 'unhealthy', inFlight: 0, queued: 0, oldestQueuedMs: 0 },
      ],
    },
  },
  channel: { workers: 2, open: index, calls: index, reconnects: 1, lost: 0, rejected: 0 },
})

/** A worker that has the running rollout, and one that was lost with an attempt. */
const workersAt = (at: number, isLive: boolean, text: string): WorkerHealth[] => [
  {
    name: 'gpu-1/0',
    status: 'connected',
    slots: 16,
    heardAt: at - 800,
    lostAttempts: 0,
    assignments: isLive ? [{ key: 'train/3/0/0', attempt: 0 }] : [],
  },
  { name: `gpu-2/0 ${text}`, status: 'lost', slots: 16, assignments: [], heardAt: at - 30_000, lostAttempts: 1 },
]

export function toRequest(key: string, group: string, taskId: string, split: string, step: number, text: string): RolloutRequest {
  const task = {
    version: 1,
    id: taskId,
    hash: 'hash',
    input: `What is ${taskId}? ${text}`,
    data: {},
    dataSource: 'test',
    extraInfo: {},
  } as const
  return {
    version: 1,
    key,
    task,
    group,
    sample: Number(key.split('/').at(-1)),
    split,
    step,
    kind: nameWith(taskId.endsWith('0') ? 'easy' : 'hard', text),
    policy: 'policy',
    sampling,
    limits: {},
  }
}

type TurnParts = Pick<Turn, 'messagesDelta' | 'message' | 'toolCalls' | 'timing'> & Partial<Turn>

export interface TurnTokens {
  readonly agent: string
  readonly trajectory: string
  /** A turn after the first one continues the one before it. */
  readonly index: number
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  /** Of most tokens. Each seventh one has twice this. */
  readonly logprob: number
}

/** A turn that sampled these tokens. */
export const toTurn = ({ agent, trajectory, index, promptIds, ids, logprob }: TurnTokens, rest: TurnParts): Turn => ({
  version: 2,
  attempt: 0,
  agent,
  trajectory,
  index,
  parent: index === 0 ? null : index - 1,
  branchReasons: index === 0 ? ['root'] : [],
  promptTokenIds: Int32Array.from(promptIds),
  completionTokenIds: Int32Array.from(ids),
  rolloutLogprobs: Float32Array.from(ids, (_, at) => (at % 7 === 3 ? logprob * 2 : logprob)),
  weightVersions: [{ fromToken: 0, version: 2 }],
  finishReason: { unified: 'stop', raw: 'stop' },
  delivered: 'delivered',
  sampling,
  usage: { promptTokens: promptIds.length, completionTokens: ids.length, cachedTokens: 0 },
  capture: { tokens: 'token-in', logprobs: 'temperature' },
  ...rest,
})

/** Two turns of the solver with a tool call between them, and one of a helper that it asks. */
function turnsOf({ task }: RolloutRequest, logprob: number, completion: string, text: string, hasReader = false): Turn[] {
  const question = task.input as string
  const prompt = [256, ...bytes(`user\n${question}`), 257]
  const call = { id: 'call-0', name: nameWith('lookup', text), arguments: JSON.stringify({ name: text }) }
  const opening = bytes('<tool_call>')
  const helperIds = (text: string) => bytes(text).map((id) => (hasReader ? 255 - id : id))
  const next = [...prompt, ...opening, 257, ...bytes(`tool\n${text}`), 257]
  const turn = (agent: string, index: number, promptIds: readonly number[], ids: readonly number[], rest: TurnParts) =>
    toTurn({ agent, trajectory: agent, index, promptIds, ids, logprob }, rest)
  return [
    turn('solver', 0, prompt, opening, {
      messagesDelta: [{ role: 'user', content: question }],
      message: { role: 'assistant', content: null, toolCalls: [call] },
      toolCalls: [call],
      timing: { startedAt: start + 1, endedAt: start + 21.5 },
    }),
    turn('solver', 1, next, bytes(completion), {
      messagesDelta: [{ role: 'tool', content: text, toolCallId: 'call-0', name: nameWith('lookup', text) }],
      ...(completion === `${text} 0` && { unparsed: ['call-invalid'] }),
      message: { role: 'assistant', content: completion },
      toolCalls: [],
      timing: { startedAt: start + 31, endedAt: start + 51 },
    }),
    turn(nameWith('helper', text), 0, helperIds(text), helperIds('help'), {
      messagesDelta: [{ role: 'user', content: text }],
      message: { role: 'assistant', content: 'help' },
      toolCalls: [],
      timing: { startedAt: start + 52, endedAt: start + 55 },
    }),
  ]
}

function toEpisode(
  request: RolloutRequest,
  turns: readonly Turn[],
  reward: number | null,
  answer: string,
  text: string,
  hasReader: boolean,
): Episode {
  const error = { code: 'REWARD_FAILED', boundary: 'reward', retryable: false, message: `The reward failed: ${text}` } as const
  return {
    version: 2,
    rollout: request.key,
    attempt: 0,
    taskId: request.task.id,
    group: request.group,
    sample: request.sample,
    split: request.split,
    trajectories: ['solver', nameWith('helper', text)].map((agent) => ({
      version: 2,
      id: agent,
      agent,
      policy: hasReader && agent !== 'solver' ? 'reader' : 'policy',
      trainable: agent === 'solver',
      startedBy: agent === 'solver' ? [] : [{ trajectory: 'solver', turn: 0, toolCall: 'call-0' }],
      timing: null,
      turns: turns.filter((turn) => turn.agent === agent),
    })),
    toolCalls: [
      {
        agent: 'solver',
        trajectory: 'solver',
        turn: 0,
        id: 'call-0',
        name: nameWith('lookup', text),
        arguments: '{}',
        content: text,
        isError: true,
        timing: { startedAt: start + 22, endedAt: start + 30 },
      },
    ],
    answer,
    messages: [],
    scores: { [nameWith('exact', text)]: 1 },
    reward,
    stopReason: reward === null ? 'failed' : 'completed',
    ...(reward === null && { error }),
    timing: { startedAt: start, endedAt: start + 60 },
  }
}
