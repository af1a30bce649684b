import {
  checkRows,
  checkUpdate,
  type Learner,
  type ModelDescription,
  orAborted,
  type UpdateMetrics,
  type UpdateRequest,
} from '@aworld-train/core'
import { errorMessage, TrainError } from '@aworld-train/protocol'
import type { ServiceAdapter, ServiceSession, Submitted } from '../service/service-session.ts'
import { createWeightGate, type WeightGate } from '../weight-gate.ts'
import { decodeForwardBackward, type ForwardBackwardResult, type WireRow } from '../wire/messages.ts'
import { type CheckpointPointer, readPointer, writePointer } from './checkpoint-pointer.ts'
import { checkTerms, type LossReduction, type LossRequest, lossFigures, needsLogprobs, toLossRequest } from './loss-request.ts'

/** What samples at present. */
export interface PublishedWeights {
  readonly gate: WeightGate
  version(): number
  /** `tinker://model/sampler_weights/name`. Throws POLICY_UNAVAILABLE between a load and the publish after it. */
  path(): string
}

export interface PolicyOptions {
  readonly session: ServiceSession
  readonly model: ModelDescription
  readonly reduction: LossReduction
  /** What checkpoints say of where they are. */
  readonly place: Pick<CheckpointPointer, 'service' | 'baseModel' | 'rank'>
  /** Every call rejects with its reason at once; what the service had taken it still does, so that nothing can be trained any more. */
  readonly signal: AbortSignal
}

export interface AdapterPolicy {
  readonly learner: Learner
  readonly weights: PublishedWeights
  close(): Promise<void>
}

/** Makes an adapter and publishes it as version 0. */
export async function createPolicy(options: PolicyOptions): Promise<AdapterPolicy> {
  const remote = await options.session.createAdapter()
  const policy = new RemotePolicy(options, remote)
  try {
    await policy.publish()
  } catch (error) {
    await policy.close()
    throw error
  }
  return { learner: policy, weights: policy, close: () => policy.close() }
}

/** Calls are served in their order. What changes weights waits for the samples in flight: a server may draw them from the new ones. */
class RemotePolicy implements Learner, PublishedWeights {
  readonly gate = createWeightGate()
  readonly #options: PolicyOptions
  #remote: ServiceAdapter
  #last: Promise<unknown> = Promise.resolve()
  #version = -1
  #path: string | null = null
  /** Updates since the weights were published or loaded, and the version that they were saved under. */
  #updates = 0
  #loadedVersion: number | null = null
  /** Whether the optimiser has moments. */
  #isStepped = false
  #failure: unknown = null
  #saved = 0

  constructor(options: PolicyOptions, remote: ServiceAdapter) {
    this.#options = options
    this.#remote = remote
  }

  version(): number {
    return this.#version
  }

  path(): string {
    if (this.#path !== null) return this.#path
    throw new TrainError('POLICY_UNAVAILABLE', 'A checkpoint was loaded and is not published, so nothing samples; call publish().')
  }

  update(request: UpdateRequest): Promise<UpdateMetrics> {
    return this.#inTurn(() => this.gate.alone(() => this.#update(request)))
  }

  logprobs(rows: readonly Int32Array[], temperature: number): Promise<Float32Array[]> {
    return this.#inTurn(() => this.#logprobs(rows, temperature))
  }

  publish(): Promise<number> {
    return this.#inTurn(() => this.gate.alone(() => this.#publish()))
  }

  save(directory: string): Promise<void> {
    return this.#inTurn(async () => {
      const weightVersion = this.#loadedVersion === null ? this.#version + Math.min(this.#updates, 1) : this.#loadedVersion + this.#updates
      await writePointer(directory, { version: 1, ...this.#options.place, path: await this.#saveState(), weightVersion })
    })
  }

  load(directory: string): Promise<void> {
    return this.#inTurn(() =>
      this.gate.alone(async () => {
        const { path, weightVersion, service } = await readPointer(directory)
        if (service !== this.#options.place.service) {
          const message = `The weights of ${directory} are at ${service}, and tinker.url is ${this.#options.place.service}; set tinker.url, or TINKER_BASE_URL, to ${service}.`
          throw new TrainError('CONFIG_INVALID', message)
        }
        await this.#replace(path, true)
        this.#loadedVersion = weightVersion
        this.#updates = 0
        this.#path = null
        this.#failure = null
      }),
    )
  }

  resetOptimizer(): Promise<void> {
    return this.#inTurn(() =>
      this.gate.alone(async () => {
        if (!this.#isStepped) return
        await this.#replace(await this.#saveState(), false)
        // The published path was of the old adapter; updates that it does not have wait for their own publish.
        if (this.#updates > 0) this.#path = null
        else await this.#publishPath(this.#version)
      }),
    )
  }

  async close(): Promise<void> {
    await Promise.race([this.#remote.unload().catch(() => {}), new Promise((resolve) => setTimeout(resolve, unloadMs).unref())])
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#options
    const result = this.#last.then(() => {
      signal.throwIfAborted()
      return work()
    })
    this.#last = result.catch(() => {})
    return orAborted(result, signal)
  }

  async #update(request: UpdateRequest): Promise<UpdateMetrics> {
    const { optimizer, loss } = request
    checkUpdate(request, this.#options.model)
    const { klCoefficient, entropyCoefficient } = loss.kind === 'ppo-clip' ? loss : { klCoefficient: 0, entropyCoefficient: 0 }
    const { maxGradNorm, weightDecay } = optimizer
    checkTerms({ klCoefficient, entropyCoefficient, maxGradNorm, weightDecay, temperature: request.temperature ?? 1 })
    const { reduction } = this.#options
    // A supervised loss may need what the learner thinks now of the rows that are trained.
    const first = needsLogprobs(loss, reduction)
      ? await this.#forward(toLossRequest({ ...request, loss: sequenceMean }, reduction).rows.map(({ wire }) => wire))
      : []
    const lossRequest = toLossRequest(request, reduction, first.map(afterFirst))
    const adam = {
      learning_rate: optimizer.learningRate,
      beta1: optimizer.betas[0],
      beta2: optimizer.betas[1],
      eps: optimizer.epsilon,
      weight_decay: 0,
    }
    const { passed, stepped } = await this.#pass(lossRequest, adam)
    const logprobs = lossRequest.rows.map(({ sample }, row) => passed.logprobs[row]!.filter((_, at) => sample.lossMask[at + 1] === 1))
    const figures = lossFigures(request, lossRequest.rows, logprobs)
    if (!Number.isFinite(figures.loss)) {
      const message = `The loss of an update over ${request.samples.length} samples is ${figures.loss}, and the service has made the update; run the same command again, which resumes from the last checkpoint.`
      this.#failure = new TrainError('TRAINER_NOT_FINITE', message)
      throw this.#failure
    }
    this.#updates++
    this.#isStepped = true
    const byIndex = new Map(lossRequest.rows.map(({ index }, row) => [index, logprobs[row]!]))
    const gradNorm = gradNormIn(passed.metrics) ?? gradNormIn(stepped)
    return {
      ...figures,
      ...(gradNorm !== undefined && { gradNorm }),
      kl: 0,
      logprobs: request.samples.map((_, index) => byIndex.get(index) ?? new Float32Array()),
    }
  }

  /** Gradient and step are sent together, since a service may work in cycles of some seconds. A failure between them leaves weights that nobody knows. */
  async #pass(loss: LossRequest, adam: Record<string, number>) {
    this.#throwFailure()
    const backward = await this.#remote.submitForwardBackward({ ...loss, rows: loss.rows.map(({ wire }) => wire), forwardOnly: false })
    try {
      const step = await this.#remote.submit('optim_step', { adam_params: adam })
      const [passed, stepped] = await Promise.allSettled([
        this.#decoded(
          backward,
          loss.rows.map(({ wire }) => wire),
        ),
        step.result(),
      ])
      if (passed.status === 'rejected') throw passed.reason
      if (stepped.status === 'rejected') throw stepped.reason
      const metrics = Buffer.isBuffer(stepped.value) ? undefined : stepped.value['metrics']
      return { passed: passed.value, stepped: (metrics ?? {}) as Readonly<Record<string, number>> }
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  async #logprobs(rows: readonly Int32Array[], temperature: number): Promise<Float32Array[]> {
    checkRows(rows, this.#options.model)
    if (temperature !== 1)
      throw new TrainError(
        'CONFIG_INVALID',
        `A Tinker service scores tokens at temperature 1 alone, and it is ${temperature} here; set sampling.temperature to 1.`,
      )
    const scored = rows.flatMap((row) =>
      row.length < 2
        ? []
        : [{ tokens: row.slice(0, -1), inputs: { target_tokens: row.slice(1), weights: new Float32Array(row.length - 1).fill(1) } }],
    )
    const results = scored.length === 0 ? [] : await this.#forward(scored)
    let next = 0
    return rows.map((row) => (row.length < 2 ? new Float32Array(row.length) : afterFirst(results[next++]!)))
  }

  async #forward(rows: readonly WireRow[]): Promise<readonly Float32Array[]> {
    this.#throwFailure()
    const submitted = await this.#remote.submitForwardBackward({ rows, lossFunction: 'cross_entropy', lossConfig: {}, forwardOnly: true })
    return (await this.#decoded(submitted, rows)).logprobs
  }

  async #decoded(submitted: Submitted, rows: readonly WireRow[]): Promise<ForwardBackwardResult> {
    const message = await submitted.result()
    const { service } = this.#options.place
    try {
      if (!Buffer.isBuffer(message)) throw new RangeError('it is JSON')
      const result = decodeForwardBackward(message)
      const wrong = rows.findIndex(({ tokens }, row) => result.logprobs[row]?.length !== tokens.length)
      if (wrong >= 0)
        throw new RangeError(`row ${wrong} has ${result.logprobs[wrong]?.length} logprobs for ${rows[wrong]!.tokens.length} tokens`)
      return result
    } catch (cause) {
      const problem = `${service} answered forward_backward with what cannot be read: ${errorMessage(cause)}; check its version.`
      throw new TrainError('POLICY_RESPONSE_INVALID', problem, { cause })
    }
  }

  async #publish(): Promise<number> {
    const least = this.#loadedVersion === null ? 0 : this.#loadedVersion + this.#updates
    await this.#publishPath(Math.max(this.#version + 1, least))
    this.#loadedVersion = null
    this.#updates = 0
    return this.#version
  }

  /** Each publish has a name of its own: a server goes on serving what it loaded under an old one. */
  async #publishPath(version: number): Promise<void> {
    this.#throwFailure()
    this.#path = await this.#requestPath('save_weights_for_sampler', `sampler-${version}-${this.#saved++}`)
    this.#version = version
  }

  #saveState(): Promise<string> {
    this.#throwFailure()
    return this.#requestPath('save_weights', `state-${this.#saved++}`)
  }

  async #requestPath(type: string, name: string): Promise<string> {
    const answer = await (await this.#remote.submit(type, { path: name })).result()
    const path = Buffer.isBuffer(answer) ? undefined : answer['path']
    if (typeof path === 'string') return path
    throw new TrainError('POLICY_RESPONSE_INVALID', `${this.#options.place.service} answered ${type} without a path; check its version.`)
  }

  /** Weights are loaded by the first request of a model alone, so that loading takes a new one. */
  async #replace(path: string, optimizer: boolean): Promise<void> {
    const fresh = await this.#options.session.createAdapter()
    try {
      await (await fresh.submit('load_weights', { path, optimizer })).result()
    } catch (cause) {
      await fresh.unload().catch(() => {})
      const message = `${this.#options.place.service} cannot load ${path}: ${errorMessage(cause)}`
      // A service that cannot be asked, or has no room, says nothing of the weights.
      const isLost = !(cause instanceof TrainError) || cause.code === 'POLICY_FAILED' || cause.code === 'POLICY_WORKER_DIED'
      throw isLost ? new TrainError('CHECKPOINT_CORRUPT', message, { cause }) : cause
    }
    await this.#remote.unload().catch(() => {})
    this.#remote = fresh
    this.#isStepped = optimizer
  }

  #throwFailure(): void {
    if (this.#failure === null) return
    const message = `An update has failed on ${this.#options.place.service}, so its weights are unknown (${errorMessage(this.#failure)}); run the same command again, which resumes from the last checkpoint.`
    throw new TrainError('POLICY_WORKER_DIED', message, { cause: this.#failure })
  }
}

const unloadMs = 1_000
const sequenceMean = { kind: 'sft', aggregation: 'sequence-mean' } as const

/** Logprobs by token: the server's are of what follows each token, and nothing predicts the first. */
function afterFirst(following: Float32Array): Float32Array {
  const row = new Float32Array(following.length + 1)
  row.set(following, 1)
  return row
}

/** The norm of the gradient, which servers report under names of their own. */
const gradNormIn = (metrics: Readonly<Record<string, number>>): number | undefined =>
  Object.entries(metrics).find(([name]) => /grad_?norm/i.test(name))?.[1]
