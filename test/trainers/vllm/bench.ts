import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChatModel, loadChatModel } from '@aworld-train/chat'
import type { ModelDescription, ReportedCompletion, Sampling } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engines/local'
import { createVllmTokenEngine, createWeightUpdater, type Publication, type RemoteTokenEngine } from '@aworld-train/engines/remote'
import { request } from 'undici'
import { startVllm } from './start-vllm.ts'
import { contextLength, makeBlankModel, makeOtherWeights, makeToolModel } from './tool-model.ts'
import { writeAdapter } from './write-adapter.ts'

export const tolerance = 1e-3
/** A temperature at which the model says what it was taught: at 1 it says something else once in 70 calls. */
export const sure = 0.4

export const sampling = (overrides: Partial<Sampling> = {}): Sampling => ({
  temperature: 1,
  topP: 1,
  topK: 0,
  maxTokens: 24,
  stop: [],
  seed: 0,
  ...overrides,
})

/** Logprobs of the embedded engine over the weights of a folder. */
async function recompute(weights: string, rows: readonly Int32Array[], temperature: number): Promise<readonly Float32Array[]> {
  const local = await createLocalEngine({ model: weights, simd: 'plain', threads: 2 })
  try {
    return await local.learner.logprobs(rows, temperature)
  } finally {
    await local.close()
  }
}

type Tokens = Pick<ReportedCompletion, 'promptTokenIds' | 'completionTokenIds' | 'rolloutLogprobs'>

/** A vLLM over a tiny model that was taught some answers, with other weights of it in folders beside. */
export interface VllmBench {
  readonly url: string
  readonly model: ModelDescription
  readonly chat: ChatModel
  /** The weights that were published last. */
  readonly version: number
  /** The number of weights that are about to be published. */
  nextVersion(): number
  /** `base`, which the server starts with, `blank`, `first`, `second`, `adapter` and `merged`. */
  folder(name: string): string
  prompt(text: string): Int32Array
  tokenEngine(route?: 'generate' | 'completions'): Promise<RemoteTokenEngine>
  /** Publishes a folder through an engine's fleet; what the servers sample then is compared with `checkedAgainst`. */
  publish(
    engine: RemoteTokenEngine,
    name: string,
    options?: Partial<Publication> & { checkedAgainst?: string },
  ): ReturnType<ReturnType<typeof createWeightUpdater>['publish']>
  /** Between reported logprobs and those of the weights of a folder. */
  largestDifference(name: string, tokens: Tokens, temperature?: number): Promise<number>
  metric(name: string): Promise<number>
  close(): Promise<void>
}

export async function openVllmBench(): Promise<VllmBench> {
  await using stack = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'aworld-train-vllm-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  const folder = (name: string) => join(directory, name)
  await makeBlankModel(folder('blank'))
  const model = { ...(await makeToolModel(folder('base'))), name: 'tiny' }
  const chat = await loadChatModel({ directory: model.directory, stopTokenIds: model.stopTokenIds })
  await makeOtherWeights(folder('base'), folder('first'), 'the time is a sum of words. ')
  await makeOtherWeights(folder('base'), folder('second'), 'four and five; five and four. ')
  await writeAdapter(folder('base'), folder('adapter'), folder('merged'))
  const server = await startVllm({ model: folder('base'), served: 'tiny', contextLength, readyWithinMs: 400_000 })
  stack.defer(() => server.stop())
  let version = 0

  const bench: VllmBench = {
    url: server.url,
    model,
    chat,
    get version() {
      return version
    },
    nextVersion: () => ++version,
    folder,
    prompt: (text) => chat.createConversation().prepare({ messages: [{ role: 'user', content: text }], tools: [] }).promptTokenIds,
    tokenEngine: (route = 'generate') => createVllmTokenEngine({ replicas: [server.url], model, served: 'tiny', route, maxInFlight: 64 }),
    publish(engine, name, { checkedAgainst = name, ...publication } = {}) {
      const updater = createWeightUpdater({
        fleet: engine.fleet,
        check: {
          engine,
          prompts: ['time', 'sum', 'a word never seen'].map(bench.prompt),
          tolerance,
          recompute: (rows, temperature) => recompute(folder(checkedAgainst), rows, temperature),
        },
      })
      version = Math.max(version, engine.weightVersion()) + 1
      return updater.publish({ version, directory: folder(name), ...publication }, new AbortController().signal)
    },
    async largestDifference(name, { promptTokenIds, completionTokenIds, rolloutLogprobs }, temperature = 1) {
      const [row] = await recompute(folder(name), [Int32Array.of(...promptTokenIds, ...completionTokenIds)], temperature)
      return Math.max(...rolloutLogprobs.map((logprob, index) => Math.abs(logprob - row![promptTokenIds.length + index]!)))
    },
    async metric(name) {
      const { body } = await request(`${server.url}/metrics`)
      return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(await body.text())?.[1])
    },
    close: () => closing.disposeAsync(),
  }
  // The first call compiles for some seconds.
  const engine = await bench.tokenEngine()
  await bench.publish(engine, 'base')
  await engine.close()
  const closing = stack.move()
  return bench
}
