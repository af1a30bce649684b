import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GenerateRequest, TrainingSample } from '@aworld-train/core'
import { type InitModelOptions, initModel } from '../files/init-model.ts'
import { createLocalEngine, type LocalEngine, type LocalEngineOptions } from '../local-engine.ts'
import { createVocabularyTokenizer } from '../tokenizer/vocabulary-tokenizer.ts'

/** A shape that samples thousands of tokens a second in any tier and has every part of a large one. */
export const tinyShape: InitModelOptions['config'] = {
  hiddenSize: 24,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 8,
  intermediateSize: 20,
  ropeTheta: 10_000,
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  qkNorm: true,
  contextLength: 96,
}

export interface TinyFolder {
  readonly directory: string
  /** A path in the same temporary folder. */
  path(name: string): string
  [Symbol.asyncDispose](): Promise<void>
}

/** Makes a model folder for tests: 272 tokens, of which 256 and 257 are ChatML's, and `<|im_end|>` stops. */
export async function makeTinyFolder(change: Partial<InitModelOptions['config']> = {}, initStd = 0.3): Promise<TinyFolder> {
  const home = await mkdtemp(join(tmpdir(), 'engine-local-'))
  const directory = join(home, 'model')
  const tokenizer = createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: ['iron', 'tin', 'what is '] })
  await initModel(directory, { config: { ...tinyShape, ...change }, tokenizer, chatTemplate: '{{ messages }}', seed: 1, initStd })
  return { directory, path: (name) => join(home, name), [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }) }
}

/** Starts an engine over a folder of its own. Both are gone when it is disposed of. */
export async function startTinyEngine({
  shape = {},
  ...options
}: Partial<LocalEngineOptions> & { readonly shape?: Partial<InitModelOptions['config']> } = {}): Promise<
  LocalEngine & { readonly folder: TinyFolder; [Symbol.asyncDispose](): Promise<void> }
> {
  const folder = await makeTinyFolder(shape)
  const engine = await createLocalEngine({ model: folder.directory, threads: 2, simd: 'plain', ...options }).catch(
    async (error: unknown) => {
      await folder[Symbol.asyncDispose]()
      throw error
    },
  )
  const dispose = async (): Promise<void> => {
    await engine.close()
    await folder[Symbol.asyncDispose]()
  }
  return { ...engine, folder, [Symbol.asyncDispose]: dispose }
}

export const never: AbortSignal = new AbortController().signal

export interface TinyRequest extends Partial<GenerateRequest['sampling']> {
  readonly prompt?: readonly number[]
  readonly task?: string
  readonly turn?: number
  readonly affinity?: string
  readonly onTokens?: GenerateRequest['onTokens']
}

/** A call with defaults for everything that a test does not set. */
export function request({
  prompt = [5, 6, 7, 8],
  task = 'a',
  turn = 0,
  affinity = task,
  onTokens,
  ...sampling
}: TinyRequest = {}): GenerateRequest {
  return {
    promptTokenIds: Int32Array.from(prompt),
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0, ...sampling },
    random: { seed: 7, task, sample: 0, turn },
    affinity,
    ...(onTokens && { onTokens }),
  }
}

/** A training sample in which all but the first token carry loss. */
export function sampleOf(tokenIds: readonly number[]): TrainingSample {
  return {
    version: 2,
    tokenIds: Int32Array.from(tokenIds),
    lossMask: Uint8Array.from(tokenIds, (_, index) => (index === 0 ? 0 : 1)),
    rolloutLogprobs: new Float32Array(tokenIds.length),
    weightVersions: [{ fromToken: 0, version: 0 }],
    reward: 1,
    advantage: 1,
    group: 'g',
    agent: 'agent',
    trajectory: 'agent',
    policy: 'policy',
    provenance: { rollout: 'r', attempt: 0, taskId: 't', sample: 0, turns: [0] },
  }
}
