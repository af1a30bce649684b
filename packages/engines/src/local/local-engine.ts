import { availableParallelism } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { type Learner, type ModelDescription, type TokenEngine, TrainError } from '@aworld-train/core'
import { readCheckpoint, writeCheckpoint, writeModel } from './files/checkpoint.ts'
import { loadModelFolder, readJsonObject } from './files/model-files.ts'
import { chooseTier, loadKernels, type SimdTier } from './kernels/load-kernels.ts'
import { createLearner, type TrainerState } from './learner/learner.ts'
import type { ModelConfig } from './model-config.ts'
import { createPool, type Pool } from './pool/pool.ts'
import { Sampler } from './sampler/sampler.ts'
import { cacheBytes } from './sampler/sampler-layout.ts'
import { type TokenizerJson, tokenBytes } from './tokenizer/tokenizer-json.ts'

export interface LocalEngineOptions {
  /** A Hugging Face folder: config.json, model.safetensors, tokenizer.json, …, such as one that `initModel` makes or a checkpoint. */
  readonly model: string
  /** Name of the policy. Default: that of the folder. */
  readonly name?: string | undefined
  /** Number of worker threads. Default: the machine's parallelism, at most 8. */
  readonly threads?: number | undefined
  /** `auto` (default) takes relaxed SIMD if the machine has it. `plain` gives the same bits on every machine. */
  readonly simd?: 'auto' | SimdTier | undefined
  /** Number of gradient buffers. Bits of training depend on it and not on `threads`. Default 4. */
  readonly shards?: number | undefined
  /** Rows that sample at once; more calls queue. Default 64, or fewer if their caches would take more than 1 GiB. */
  readonly maxRows?: number | undefined
  /** Tokens of one forward and backward pass. Default 512. */
  readonly microBatchTokens?: number | undefined
}

export interface LocalEngine {
  readonly engine: TokenEngine
  readonly learner: Learner
  readonly tier: { readonly simd: SimdTier; readonly threads: number; readonly shards: number }
  readonly config: ModelConfig
  /** Writes the trainer's weights as a Hugging Face folder without optimiser state. It appears whole or not at all. */
  saveModel(directory: string): Promise<void>
  /** Ends calls in flight and the threads. Closing the token engine does the same. */
  close(): Promise<void>
}

const maxThreads = 8
const defaultThreads = () => Math.min(maxThreads, availableParallelism())
const maxCacheBytes = 2 ** 30
/** Tokens of one decode step of a thread. With more, the matrix product gains nothing, and others wait for a long prompt. */
const leastStepTokens = 128

/**
 * The SIMD tier and the worker threads that an engine takes on this machine by default. Throws CONFIG_INVALID if its kernels cannot run.
 */
export async function probeMachine(): Promise<{ readonly simd: SimdTier; readonly threads: number }> {
  const { tier } = await loadKernels(chooseTier())
  return { simd: tier, threads: defaultThreads() }
}

/**
 * Starts the embedded policy over a model folder: one pool of threads that samples and trains. The folder's weights are version 0 and the
 * optimiser is fresh, even if the folder is a checkpoint (`learner.load` continues one). Rejects with CONFIG_INVALID, CHECKPOINT_CORRUPT or
 * POLICY_WORKER_DIED.
 */
export async function createLocalEngine(options: LocalEngineOptions): Promise<LocalEngine> {
  const directory = resolve(options.model)
  const { config, stopTokenIds } = await loadModelFolder(directory)
  const tokenizer = await loadTokenizer(join(directory, 'tokenizer.json'))
  const { threads = defaultThreads(), shards = 4, microBatchTokens = 512 } = options
  const rows = options.maxRows ?? Math.max(1, Math.min(64, Math.floor(maxCacheBytes / cacheBytes(config).row)))
  checkCounts({ threads, shards, maxRows: rows, microBatchTokens })
  const kernels = await loadKernels(chooseTier(options.simd === 'auto' ? undefined : options.simd))
  const pool = await createPool({
    kernels,
    layout: {
      model: config,
      threads,
      shards,
      microBatchTokens,
      batchTokens: Math.max(65_536, 4 * config.contextLength),
      batchRows: 4_096,
      sampling: { rows, stepTokens: Math.max(leastStepTokens, rows) },
    },
  })
  try {
    const sampler = new Sampler({ pool, stopTokenIds, tokenBytes: tokenBytes(tokenizer) })
    const { learner, saveModel } = createPolicyLearner(pool, sampler, directory)
    const { parameters } = await readCheckpoint(directory, pool.layout.table.parameters)
    pool.views.f32.set(parameters, pool.layout.parameters / 4)
    await pool.run('pack')
    await sampler.publish()
    const close = async (): Promise<void> => {
      await sampler.close()
      await pool.close()
    }
    const description: ModelDescription = {
      name: options.name ?? basename(directory),
      directory,
      contextLength: config.contextLength,
      vocabularySize: config.vocabularySize,
      stopTokenIds,
    }
    const engine: TokenEngine = {
      name: 'local',
      model: description,
      generate: (request, signal) => sampler.generate(request, signal),
      weightVersion: () => sampler.weightVersion(),
      sampledTokens: () => sampler.sampledTokens(),
      close,
    }
    return { engine, learner, tier: { simd: kernels.tier, threads, shards }, config, saveModel, close }
  } catch (error) {
    await pool.close()
    throw error
  }
}

/** The learner of a pool that also samples. Its commands run between decode steps, never beside them. */
function createPolicyLearner(pool: Pool, sampler: Sampler, modelDirectory: string): Pick<LocalEngine, 'learner' | 'saveModel'> {
  const { layout, views } = pool
  const { parameters } = layout.table
  // Number of updates since the weights were published or loaded, and the version that they were saved under.
  let updates = 0
  let loadedVersion: number | null = null
  const save = async (directory: string, state: TrainerState): Promise<void> => {
    const weightVersion = loadedVersion === null ? sampler.weightVersion() + Math.min(updates, 1) : loadedVersion + updates
    await writeCheckpoint(directory, { ...state, weightVersion }, { parameters, modelDirectory })
  }
  const load = async (directory: string, state: TrainerState, agreed?: () => Promise<void>): Promise<number> => {
    const read = await readCheckpoint(directory, parameters)
    await agreed?.()
    state.parameters.set(read.parameters)
    state.firstMoment.set(read.firstMoment)
    state.secondMoment.set(read.secondMoment)
    loadedVersion = read.weightVersion
    updates = 0
    return read.step
  }
  const publish = async (leastVersion = 0): Promise<number> => {
    // Updates that are repeated after a resume get versions of their own, so that no version stands for two sets of weights.
    const version = await sampler.publish(Math.max(leastVersion, loadedVersion === null ? 0 : loadedVersion + updates))
    loadedVersion = null
    updates = 0
    return version
  }
  const trainer = createLearner(pool, { publish, save, load })
  const inTurn = createTurns()
  const betweenSteps = <T>(work: () => Promise<T>): Promise<T> => inTurn(() => sampler.exclusive(work))
  const learner: Learner = {
    update: (request) =>
      betweenSteps(async () => {
        const metrics = await trainer.update(request)
        updates++
        return metrics
      }),
    logprobs: (rows, temperature) => betweenSteps(() => trainer.logprobs(rows, temperature)),
    publish: (leastVersion) => betweenSteps(() => trainer.publish(leastVersion)),
    load: (directory, agreed) => betweenSteps(() => trainer.load(directory, agreed)),
    // Sampling reads a copy of the weights, so it continues while these calls use the trainer's.
    save: (directory) => inTurn(() => trainer.save(directory)),
    resetOptimizer: () => inTurn(() => trainer.resetOptimizer()),
  }
  const saveModel = (directory: string): Promise<void> =>
    inTurn(() => {
      const start = layout.parameters / 4
      return writeModel(directory, views.f32.slice(start, start + layout.table.count), { parameters, modelDirectory })
    })
  return { learner, saveModel }
}

/** Runs asynchronous work one at a time, in the order of the calls. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }
}

async function loadTokenizer(path: string): Promise<Pick<TokenizerJson, 'added_tokens' | 'model'>> {
  const { model, added_tokens = [] } = (await readJsonObject(path)) as Partial<TokenizerJson>
  if (typeof model?.vocab !== 'object' || Array.isArray(model.vocab)) {
    throw new TrainError('CONFIG_INVALID', `${path} has no vocabulary by token (model.vocab); use a tokenizer of the BPE kind.`)
  }
  return { model, added_tokens }
}

function checkCounts(counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TrainError('CONFIG_INVALID', `${name} is ${value}; it must be a positive integer.`)
  }
}
