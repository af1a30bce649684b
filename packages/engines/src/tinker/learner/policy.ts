import {
  checkRows,
  checkUpdate,
  errorMessage,
  type Learner,
  type ModelDescription,
  orAborted,
  TrainError,
  type UpdateMetrics,
  type UpdateRequest,
} from '@aworld-train/core'
import type { ServiceAdapter, ServiceSession, Submitted } from '../service/service-session.ts'
import { createWeightGate, type WeightGate } from '../weight-gate.ts'
import { decodeForwardBackward, type ForwardBackward, type ForwardBackwardResult, type WireRow } from '../wire/messages.ts'
import { type CheckpointPointer, readPointer, writePointer } from './checkpoint-pointer.ts'
import { checkTerms, type LossReduction, lossFigures, needsLogprobs, type SentRow, toLossRequest } from './loss-request.ts'
import { rowKey } from './merge-rows.ts'

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
  /** What the service said of rows since the last update: the logprob of each token but the first, by `rowKey`. */
  readonly #scored = new Map<string, Float32Array>()
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

  publish(leastVersion = 0): Promise<number> {
    return this.#inTurn(() => this.gate.alone(() => this.#publish(leastVersion)))
  }

  save(directory: string): Promise<void> {
    return this.#inTurn(async () => {
      const weightVersion = this.#loadedVersion === null ? this.#version + Math.min(this.#updates, 1) : this.#loadedVersion + this.#updates
      await writePointer(directory, { version: 1, ...this.#options.place, path: await this.#saveState(), weightVersion })
    })
  }

  load(directory: string, agreed?: () => Promise<void>): Promise<void> {
    return this.#inTurn(() =>
      this.gate.alone(async () => {
        const { path, weightVersion, service } = await readPointer(directory)
        if (service !== this.#options.place.service) {
          const message = `The weights of ${directory} are at ${service}, and tinker.url is ${this.#options.place.service}; set tinker.url, or TINKER_BASE_URL, to ${service}.`
          throw new TrainError('CONFIG_INVALID', message)
        }
        await this.#replace(path, true, agreed)
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
    const { klCoefficient, entropyCoefficient } = { klCoefficient: 0, entropyCoefficient: 0, ...loss }
    const { maxGradNorm, weightDecay } = optimizer
    checkTerms({ klCoefficient, entropyCoefficient, maxGradNorm, weightDecay, temperature: request.temperature ?? 1 })
    const { reduction } = this.#options
    const lossRequest = toLossRequest(request, reduction)
    const rows = needsLogprobs(loss, reduction) ? await this.#withLogprobs(lossRequest.rows) : lossRequest.rows.map(({ wire }) => wire)
    const adam = {
      learning_rate: optimizer.learningRate,
      beta1: optimizer.betas[0],
      beta2: optimizer.betas[1],
      eps: optimizer.epsilon,
      weight_decay: 0,
    }
    const { passed, stepped } = await this.#pass({ ...lossRequest, rows }, adam)
    const logprobs = request.samples.map(() => new Float32Array())
    for (const [row, { members }] of lossRequest.rows.entries())
      for (const index of members) logprobs[index] = passed.logprobs[row]!.filter((_, at) => request.samples[index]!.lossMask[at + 1] === 1)
    const figures = lossFigures(request, logprobs)
    if (!Number.isFinite(figures.loss)) {
      const message = `The loss of an update over ${request.samples.length} samples is ${figures.loss}, and the service has made the update; run the same command again, which resumes from the last checkpoint.`
      this.#failure = new TrainError('TRAINER_NOT_FINITE', message)
      throw this.#failure
    }
    this.#updates++
    this.#isStepped = true
    const gradNorm = gradNormIn(passed.metrics) ?? gradNormIn(stepped)
    return {
      ...figures,
      ...(gradNorm !== undefined && { gradNorm }),
      kl: 0,
      logprobs,
    }
  }

  /** Gradient and step are sent together, since a service may work in cycles of some seconds. A failure between them leaves weights that nobody knows. */
  async #pass(loss: Omit<ForwardBackward, 'modelId' | 'seqId' | 'forwardOnly'>, adam: Record<string, number>) {
    this.#throwFailure()
    this.#scored.clear()
    const backward = await this.#remote.submitForwardBackward({ ...loss, forwardOnly: false })
    try {
      const step = await this.#remote.submit('optim_step', { adam_params: adam })
      const [passed, stepped] = await Promise.allSettled([this.#decoded(backward, loss.rows), step.result()])
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
    this.#scored.clear()
    await this.#score(rows)
    return rows.map((row) => {
      // Nothing predicts the first token.
      const logprobs = new Float32Array(row.length)
      logprobs.set(this.#scored.get(rowKey(row)) ?? [], 1)
      return logprobs
    })
  }

  /** The rows with what the learner has now of their tokens, which is not asked for where it was since the last update. */
  async #withLogprobs(rows: readonly SentRow[]): Promise<readonly WireRow[]> {
    await this.#score(rows.map(({ tokenIds }) => tokenIds))
    return rows.map(({ tokenIds, wire }) => ({ ...wire, inputs: { ...wire.inputs, logprobs: this.#scored.get(rowKey(tokenIds))! } }))
  }

  /** Asks for the logprobs of rows, of equal ones once. */
  async #score(rows: readonly Int32Array[]): Promise<void> {
    this.#throwFailure()
    const missing = new Map(rows.filter(({ length }) => length > 1).map((row) => [rowKey(row), row]))
    for (const key of this.#scored.keys()) missing.delete(key)
    if (missing.size === 0) return
    const wires = Array.from(missing.values(), (row) => ({
      tokens: row.slice(0, -1),
      inputs: { target_tokens: row.slice(1), weights: new Float32Array(row.length - 1).fill(1) },
    }))
    const request = { rows: wires, lossFunction: 'cross_entropy', lossConfig: {}, forwardOnly: true }
    const { logprobs } = await this.#decoded(await this.#remote.submitForwardBackward(request), wires)
    for (const [row, key] of [...missing.keys()].entries()) this.#scored.set(key, logprobs[row]!)
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

  async #publish(leastVersion: number): Promise<number> {
    const least = this.#loadedVersion === null ? 0 : this.#loadedVersion + this.#updates
    await this.#publishPath(Math.max(this.#version + 1, leastVersion, least))
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

  /** Weights are loaded by the first request of a model alone, so that loading takes a new one, which replaces the old once `agreed` resolves. */
  async #replace(path: string, optimizer: boolean, agreed?: () => Promise<void>): Promise<void> {
    this.#scored.clear()
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
    try {
      await agreed?.()
    } catch (error) {
      await fresh.unload().catch(() => {})
      throw error
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

/** The norm of the gradient, which servers report under names of their own. */
const gradNormIn = (metrics: Readonly<Record<string, number>>): number | undefined =>
  Object.entries(metrics).find(([name]) => /grad_?norm/i.test(name))?.[1]
