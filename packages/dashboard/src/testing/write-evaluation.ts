import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Episode, EvaluationReport, type RolloutRequest, type RunEvent, type TrainingTask, type Turn } from '@aworld-train/core'
import { type OwnedRunStore, openRunStore, writeJsonAtomically } from '@aworld-train/store'
import { compareEvaluations, writeParquet } from '@aworld-train/training'
import { openFolder } from '../folder-client.ts'
import { nameWith, type WrittenRun } from './write-run.ts'

const start = 1_800_000_000_000
const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 }

export interface WriteEvaluationOptions {
  readonly name?: string
  readonly tasks?: number
  /** Samples of each task. Default 4. */
  readonly samples?: number
  /** Text of questions, kinds, tools and answers. */
  readonly text?: string
  /** Tasks with these numbers are answered wrongly where they would be right. */
  readonly worse?: (task: number) => boolean
  /** Number of rollouts that have ended in a run that goes on; all of one that has ended. The next one runs. */
  readonly ended?: number
  /** Whether each turn has the ids of its tokens. */
  readonly hasTokens?: boolean
  /** Run that the report is compared with. */
  readonly against?: WrittenRun
}

export interface WrittenEvaluation extends WrittenRun {
  /** Ends the next `count` rollouts of a live run. */
  end(count: number): Promise<void>
}

/**
 * Writes an evaluation of a model behind an address: no tokens, but messages, tools and prices. By the number of a task its samples are all
 * right, all wrong, right and wrong, partly right, or right with the last one failed.
 */
export async function writeEvaluation({
  name = 'solver-eval',
  tasks: count = 5,
  samples = 4,
  text = 'gold',
  worse = () => false,
  ended,
  hasTokens = false,
  against,
}: WriteEvaluationOptions = {}): Promise<WrittenEvaluation> {
  const below = await mkdtemp(join(tmpdir(), 'aworld-train-evaluation-'))
  const id = `${name}-20270115-080000`
  const path = join(below, id)
  const tasks = Array.from({ length: count }, (_, index) => toTask(index, text))
  const evaluation = { samplesPerTask: samples, kindKey: 'kind', hasPrice: true }
  const store = await openRunStore({ path, manifest: { kind: 'evaluation', name, provenance: { evaluation } } })
  const answers = new Map(tasks.map(({ id: taskId }) => [taskId, { version: 1 as const, taskId, groundTruth: text }]))
  await writeParquet(tasks, answers, join(path, 'test_data.parquet'))
  const emit = (event: Record<string, unknown>) => store.appendEvent({ at: start, ...event } as RunEvent)
  const details = { agent: 'solver', model: 'gpt-5-mini at api.openai.com', tasks: `${count} x ${samples}` }
  emit({ type: 'run-start', version: 1, run: name, path, seed: 7, resumedFromStep: null, details })
  const requests = tasks.flatMap((task, index) => Array.from({ length: samples }, (_, sample) => toRequest(task, index, sample)))
  emit({ type: 'evaluation-start', name: 'eval', rollouts: requests.length })
  let next = 0

  async function end(number: number): Promise<void> {
    const those = requests.slice(next, next + number)
    next += those.length
    await Promise.all(those.map((request) => play(store, request, { text, worse, hasTokens })))
    for (const { key, split, task } of those)
      emit({
        type: 'rollout-end',
        rollout: key,
        attempt: 0,
        split,
        taskId: task.id,
        stopReason: 'completed',
        reward: 1,
        ...{ turns: 2, toolCalls: 1, sampledTokens: 0, durationMs: 60 },
      })
    const running = requests[next]
    if (running && number > 0) await store.begin(running)
  }

  await end(ended ?? requests.length)
  if (ended === undefined) {
    await finish(path, store, { name, samples, against })
    emit({ type: 'run-end', status: 'finished' })
    await store.close()
    await writeJsonAtomically(join(path, 'manifest.json'), { ...store.manifest, status: 'finished' })
  }
  return {
    ...{ below, path, id, store, end },
    async [Symbol.asyncDispose]() {
      if (ended !== undefined) await store.close()
      await rm(below, { recursive: true, force: true })
    },
  }
}

const kinds = ['lookup', 'sum', 'reading']

function toTask(index: number, text: string): TrainingTask {
  return {
    version: 1,
    id: `t-${index}`,
    hash: `hash-${index}`,
    input: `What is the symbol of the element with the number ${index}, and which of its isotopes is stable? ${text}`,
    data: {},
    dataSource: 'test',
    extraInfo: { kind: nameWith(kinds[index % kinds.length]!, text) },
  }
}

const toRequest = (task: TrainingTask, index: number, sample: number): RolloutRequest => ({
  version: 1,
  key: `evaluation/eval/${index}/${sample}`,
  task,
  group: `evaluation/eval/${index}`,
  sample,
  split: 'test',
  step: 0,
  kind: task.extraInfo['kind'] as string,
  policy: 'model',
  sampling,
  limits: {},
})

function rewardOf(index: number, sample: number, isWorse: boolean): number | null {
  const usual = [1, 0, sample % 2, 0.5, sample === 3 ? null : 1][index % 5]!
  return usual === null ? null : isWorse ? 0 : usual
}

async function play(
  store: OwnedRunStore,
  request: RolloutRequest,
  { text, worse, hasTokens }: Required<Pick<WriteEvaluationOptions, 'text' | 'worse' | 'hasTokens'>>,
): Promise<void> {
  const index = Number(request.key.split('/')[2])
  const reward = rewardOf(index, request.sample, worse(index))
  const answer = reward === 1 ? text : `not ${text}, but ${request.sample}`
  const { attempt } = await store.begin(request)
  const tool = nameWith(request.sample % 2 === 0 ? 'lookup' : 'browser', text)
  const call = { id: 'call-0', name: tool, arguments: JSON.stringify({ number: index }) }
  const turns = [
    toTurn(0, {
      messagesDelta: [{ role: 'user', content: request.task.input as string }],
      message: { role: 'assistant', content: null, toolCalls: [call] },
      toolCalls: [call],
    }),
    toTurn(1, {
      messagesDelta: [{ role: 'tool', content: `Element ${index}: ${text}`, toolCallId: 'call-0', name: tool }],
      message: { role: 'assistant', content: `I looked it up and the answer is ${answer}.` },
      toolCalls: [],
    }),
  ]
  const ids = hasTokens ? { completionTokenIds: Int32Array.of(1, 2), rolloutLogprobs: Float32Array.of(-1, -2) } : {}
  for (const [index, turn] of turns.entries()) turns[index] = { ...turn, ...ids }
  for (const turn of turns) await store.appendTurn(request.key, attempt, 'solver', turn)
  const error = { code: 'FROZEN_MODEL_FAILED', boundary: 'gateway', retryable: false, message: `It answered 529: ${text}` } as const
  const episode: Episode = {
    version: 2,
    rollout: request.key,
    attempt,
    taskId: request.task.id,
    group: request.group,
    sample: request.sample,
    split: request.split,
    trajectories: [{ version: 2, id: 'solver', agent: 'solver', policy: 'model', trainable: false, startedBy: [], timing: null, turns }],
    toolCalls: [
      {
        ...{ agent: 'solver', trajectory: 'solver', turn: 0, id: 'call-0', name: tool, arguments: call.arguments },
        ...{ content: text, isError: false, timing: { startedAt: start + 22, endedAt: start + 30 } },
      },
    ],
    answer: reward === null ? null : answer,
    messages: [],
    scores: {},
    reward,
    stopReason: reward === null ? 'failed' : 'completed',
    ...(reward === null && { error }),
    timing: { startedAt: start, endedAt: start + 60 },
  }
  await store.finish(episode, null)
}

const toTurn = (index: number, rest: Pick<Turn, 'messagesDelta' | 'message' | 'toolCalls'>): Turn => ({
  version: 2,
  attempt: 0,
  agent: 'solver',
  trajectory: 'solver',
  index,
  parent: index === 0 ? null : index - 1,
  branchReasons: index === 0 ? ['root'] : [],
  promptTokenIds: new Int32Array(),
  completionTokenIds: new Int32Array(),
  rolloutLogprobs: new Float32Array(),
  weightVersions: [],
  finishReason: { unified: 'stop', raw: 'stop' },
  delivered: 'delivered',
  sampling,
  usage: { promptTokens: 2_000, completionTokens: 300, cachedTokens: 1_200 },
  capture: { tokens: 'none', logprobs: 'raw' },
  cost: 0.003,
  responseModel: 'gpt-5-mini-2026-08-01',
  timing: { startedAt: start + 1 + 30 * index, endedAt: start + 21 + 30 * index },
  ...rest,
})

/** The report that the numbers of the rollouts make. */
async function finish(
  path: string,
  store: OwnedRunStore,
  { name, samples, against }: { name: string; samples: number; against: WrittenRun | undefined },
): Promise<void> {
  const client = await openFolder(path)
  const other = against && (await openFolder(against.path))
  const calls = { agent: 0, gateway: 0, engine: 0 }
  const { numbers } = (await client.evaluation())!
  const report = EvaluationReport.parse({
    ...{
      version: 2,
      kind: 'evaluation',
      model: 'https://api.openai.com/v1#gpt-5-mini',
      checkpoint: null,
      run: name,
      path,
      agent: 'solver',
    },
    ...{ startedAt: store.manifest.createdAt, status: 'finished', seed: 7, sampling, samplesPerTask: samples, ...numbers },
    comparison: other ? compareEvaluations(client.compared(), other.compared()) : null,
    counts: { modelCalls: calls, toolCalls: { asked: 0, agent: 0, environment: 0, functions: 0, servers: 0 } },
    tokenReport: {
      ...{ version: 1, turns: 0, continuations: 0, roots: 0, branches: {}, repeated: 0, abandoned: 0, failed: 0 },
      ...{ tolerated: {}, unparsed: {}, ignored: {}, frozen: {} },
    },
    times: { wallMs: 41_000 },
    versions: {},
  })
  client.close()
  other?.close()
  await writeJsonAtomically(join(path, 'report.json'), report)
}
