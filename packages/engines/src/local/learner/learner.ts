import {
  checkRows,
  checkUpdate,
  type Learner,
  lossWeights,
  TrainError,
  trainedLength,
  type UpdateMetrics,
  type UpdateRequest,
} from '@aworld-train/core'
import { shardResultDoubles } from '../layout.ts'
import type { Pool } from '../pool/pool.ts'
import { commandsOf, writeRows, writeSamples } from './batch-writer.ts'
import type { DistinctRow, FoldedRows } from './fold-rows.ts'
import { lossKinds, setting, shardResult } from './settings.ts'

/** Views into the arena of the state that a checkpoint holds. Offsets are those of the parameter table. */
export interface TrainerState {
  readonly parameters: Float32Array
  readonly firstMoment: Float32Array
  readonly secondMoment: Float32Array
  /** Updates since the optimiser was fresh. */
  readonly step: number
}

/** The steps that the owner of the learner implements. */
export interface LearnerHooks {
  /** Makes sampling use the weights (parameters and their packed form in the arena); resolves to their version. */
  publish(leastVersion?: number): Promise<number>
  save(directory: string, state: TrainerState): Promise<void>
  /** Reads a checkpoint into the state's views, whole or not at all, once `agreed` resolves. Resolves to its step. */
  load(directory: string, state: TrainerState, agreed?: () => Promise<void>): Promise<number>
}

/**
 * The trainer over a pool: one call at a time, in order. Its weights are those in the arena; call `pool.run('pack')` after writing them.
 */
export function createLearner(pool: Pool, hooks: LearnerHooks): Learner {
  return new PoolLearner(pool, hooks)
}

class PoolLearner implements Learner {
  readonly #pool: Pool
  readonly #hooks: LearnerHooks
  #step = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(pool: Pool, hooks: LearnerHooks) {
    this.#pool = pool
    this.#hooks = hooks
  }

  update(request: UpdateRequest): Promise<UpdateMetrics> {
    return this.#inTurn(() => this.#update(request))
  }

  logprobs(rows: readonly Int32Array[], temperature: number): Promise<Float32Array[]> {
    return this.#inTurn(() => this.#logprobs(rows, temperature))
  }

  publish(leastVersion?: number): Promise<number> {
    return this.#inTurn(() => this.#hooks.publish(leastVersion))
  }

  save(directory: string): Promise<void> {
    return this.#inTurn(() => this.#hooks.save(directory, this.#state()))
  }

  load(directory: string, agreed?: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      this.#step = await this.#hooks.load(directory, this.#state(), agreed)
      await this.#pool.run('pack')
    })
  }

  resetOptimizer(): Promise<void> {
    return this.#inTurn(async () => {
      const { firstMoment, secondMoment } = this.#state()
      firstMoment.fill(0)
      secondMoment.fill(0)
      this.#step = 0
    })
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  #state(): TrainerState {
    const { layout, views } = this.#pool
    const view = (address: number): Float32Array => views.f32.subarray(address / 4, address / 4 + layout.table.count)
    const { parameters, firstMoment, secondMoment } = layout
    return { parameters: view(parameters), firstMoment: view(firstMoment), secondMoment: view(secondMoment), step: this.#step }
  }

  async #update(request: UpdateRequest): Promise<UpdateMetrics> {
    const { layout, views } = this.#pool
    const { samples, loss, referenceLogprobs: references } = request
    checkUpdate(request, layout.model)
    const weights = lossWeights(samples, loss.aggregation)
    const results = layout.shardResults / 8
    views.f64.fill(0, results, results + layout.options.shards * shardResultDoubles)
    const rows = samples.map((sample) => sample.tokenIds.subarray(0, trainedLength(sample)))
    const logprobs: Float32Array[] = []
    await this.#run('gradient', rows, {
      write: (command) => {
        this.#writeSettings(request)
        return writeSamples(layout, views, command, { samples, weights, references, loss })
      },
      read: (sample, places) => {
        const { lossMask } = samples[sample]!
        const trained = places.filter((_, position) => lossMask[position] === 1)
        logprobs[sample] = Float32Array.from(trained, (place) => views.f32[layout.batch.logprobs / 4 + place]!)
      },
    })
    await this.#pool.run('apply', { prepare: () => this.#writeSettings(request) })
    const metrics = this.#metrics()
    if (views.f64[layout.settings / 8 + setting.applied] !== 1) {
      const what = Number.isFinite(metrics.loss) ? `norm of the gradient is ${metrics.gradNorm}` : `loss is ${metrics.loss}`
      throw new TrainError(
        'TRAINER_NOT_FINITE',
        `Update ${this.#step + 1} was not made: the ${what} over ${samples.length} samples; the weights are as before.`,
        {
          details: { loss: String(metrics.loss), gradNorm: String(metrics.gradNorm), trainedTokens: metrics.trainedTokens },
        },
      )
    }
    this.#step++
    return { ...metrics, logprobs }
  }

  async #logprobs(rows: readonly Int32Array[], temperature: number): Promise<Float32Array[]> {
    const { layout, views } = this.#pool
    checkRows(rows, layout.model)
    const logprobs: Float32Array[] = []
    await this.#run('logprobs', rows, {
      write: (command) => {
        views.f64[layout.settings / 8 + setting.inverseTemperature] = inverse(temperature)
        return writeRows(layout, views, command)
      },
      read: (row, places) => {
        const logprobOf = (place: number): number => views.f32[layout.batch.logprobs / 4 + place]!
        logprobs[row] = Float32Array.from(places, (place, i) => (i === 0 ? 0 : logprobOf(place)))
      },
    })
    return logprobs
  }

  /** Runs a command over rows, several times if there are too many for one. `read` gets the places of each row's tokens in the batch. */
  async #run(
    command: 'gradient' | 'logprobs',
    rows: readonly Int32Array[],
    { write, read }: { write(rows: readonly DistinctRow[]): FoldedRows; read(row: number, places: Int32Array): void },
  ): Promise<void> {
    for (const distinct of commandsOf(rows, this.#pool.layout)) {
      let places: FoldedRows['places'] = []
      await this.#pool.run(command, {
        prepare: () => {
          ;({ places } = write(distinct))
        },
      })
      for (const [index, { members }] of distinct.entries()) for (const row of members) read(row, places[index]!)
    }
  }

  #writeSettings({ loss, optimizer, temperature = 1, referenceLogprobs }: UpdateRequest): void {
    const { layout, views } = this.#pool
    const write = (name: keyof typeof setting, value: number): void => {
      views.f64[layout.settings / 8 + setting[name]] = value
    }
    const policy = loss.kind === 'ppo-clip'
    write('lossKind', lossKinds.indexOf(loss.kind))
    write('clipLow', policy ? loss.clipLow : 0)
    write('clipHigh', policy ? loss.clipHigh : 0)
    write('klCoefficient', policy ? loss.klCoefficient : 0)
    write('entropyCoefficient', loss.kind === 'sft' ? 0 : loss.entropyCoefficient)
    write('hasReference', policy && referenceLogprobs ? 1 : 0)
    write('inverseTemperature', inverse(temperature))
    write('learningRate', optimizer.learningRate)
    write('beta1', optimizer.betas[0])
    write('beta2', optimizer.betas[1])
    write('epsilon', optimizer.epsilon)
    write('weightDecay', optimizer.weightDecay)
    write('maxGradNorm', optimizer.maxGradNorm)
    write('step', this.#step + 1)
  }

  #metrics(): UpdateMetrics {
    const { layout, views } = this.#pool
    const sum = (name: keyof typeof shardResult): number => {
      let total = 0
      for (let shard = 0; shard < layout.options.shards; shard++) {
        total += views.f64[layout.shardResults / 8 + shard * shardResultDoubles + shardResult[name]]!
      }
      return total
    }
    const tokens = sum('tokens')
    return {
      loss: sum('loss'),
      gradNorm: views.f64[layout.settings / 8 + setting.gradNorm]!,
      clipFraction: sum('clipped') / tokens,
      entropy: sum('entropy') / tokens,
      kl: sum('kl') / tokens,
      trainedTokens: tokens,
    }
  }
}

/** Temperature 0 is greedy sampling, whose logprobs are of the bare logits. */
function inverse(temperature: number): number {
  return temperature > 0 ? 1 / temperature : 1
}
