import type { GenerateRequest, GenerateResult, TokenEngine } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

export interface DescribeTokenEngineOptions {
  readonly name: string
  /** Creates an engine: one for the suite, and one for the test that closes it. */
  readonly create: () => Promise<TokenEngine>
  /** Ids of a prompt that fits the context with room for 64 tokens. */
  readonly promptTokenIds: Int32Array
  /** Makes the weights that sample newer by one version. Without it the tests of publishing do not run. */
  readonly publish?: ((engine: TokenEngine) => Promise<void> | void) | undefined
  /** Whether the engine draws at random. A seed then decides, and two draws differ. */
  readonly draws?: boolean | undefined
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[] | undefined
}

interface Observed {
  readonly result: GenerateResult | null
  readonly error: unknown
  readonly tokenIds: number[]
  readonly logprobs: number[]
}

/** The tests that every TokenEngine passes, on which the gateway and the ledger rely. */
export function describeTokenEngine(options: DescribeTokenEngineOptions): void {
  const { name, create, promptTokenIds, publish, draws = false, skip = [] } = options
  const reasons = new Map(skip.flatMap(({ reason, tests }) => tests.map((title) => [title, reason] as const)))
  let shared: TokenEngine
  const check = (title: string, run: (engine: TokenEngine) => Promise<void>) => {
    const reason = reasons.get(title)
    test(title, async (context) => {
      if (reason !== undefined) return context.skip(reason)
      await run(shared)
    })
  }

  const request = (overrides: Partial<GenerateRequest> = {}): GenerateRequest => ({
    promptTokenIds,
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0 },
    random: { seed: 7, task: 'contract', sample: 0, turn: 0 },
    affinity: 'contract.0',
    ...overrides,
  })
  const limited = (maxTokens: number) => ({ ...request().sampling, maxTokens })

  async function observe(engine: TokenEngine, call: GenerateRequest, signal = new AbortController().signal): Promise<Observed> {
    const tokenIds: number[] = []
    const logprobs: number[] = []
    const onTokens: GenerateRequest['onTokens'] = (ids, values) => {
      expect(values.length).toBe(ids.length)
      tokenIds.push(...ids)
      logprobs.push(...values)
    }
    try {
      return { result: await engine.generate({ ...call, onTokens }, signal), error: null, tokenIds, logprobs }
    } catch (error) {
      return { result: null, error, tokenIds, logprobs }
    }
  }

  describe(`token engine: ${name}`, () => {
    beforeAll(async () => {
      shared = await create()
    })
    afterAll(() => shared?.close())

    check('returns as many logprobs as ids, finite and not above 0', async (engine) => {
      const { tokenIds, logprobs } = await engine.generate(request(), new AbortController().signal)
      expect(tokenIds).toBeInstanceOf(Int32Array)
      expect(logprobs).toBeInstanceOf(Float32Array)
      expect(tokenIds.length).toBeGreaterThan(0)
      expect(logprobs.length).toBe(tokenIds.length)
      for (const value of logprobs) expect(value <= 0 && Number.isFinite(value)).toBe(true)
      for (const id of tokenIds) expect(id >= 0 && id < engine.model.vocabularySize).toBe(true)
    })

    check('stops at maxTokens with reason length, or before it at a stop token', async (engine) => {
      for (const maxTokens of [1, 2, 16]) {
        const { tokenIds, finishReason } = await engine.generate(request({ sampling: limited(maxTokens) }), new AbortController().signal)
        expect(tokenIds.length).toBeLessThanOrEqual(maxTokens)
        const stops = Array.from(tokenIds, (id) => engine.model.stopTokenIds.includes(id))
        expect(stops.indexOf(true)).toBe(finishReason.unified === 'stop' ? tokenIds.length - 1 : -1)
        if (finishReason.unified !== 'stop') {
          expect(finishReason.unified).toBe('length')
          expect(tokenIds.length).toBe(maxTokens)
        }
      }
    })

    check('hands over every token once, in order, as it is sampled', async (engine) => {
      const { result, tokenIds, logprobs } = await observe(engine, request())
      expect(tokenIds).toEqual(Array.from(result!.tokenIds))
      expect(logprobs).toEqual(Array.from(result!.logprobs))
    })

    check('counts the tokens it samples', async (engine) => {
      const before = engine.sampledTokens()
      const { result } = await observe(engine, request())
      expect(engine.sampledTokens() - before).toBe(result!.tokenIds.length)
    })

    check('has spans of weight versions that begin at token 0 and ascend', async (engine) => {
      const { tokenIds, weightVersions } = await engine.generate(request(), new AbortController().signal)
      expect(weightVersions[0]).toEqual({ fromToken: 0, version: engine.weightVersion() })
      for (const [index, span] of weightVersions.entries()) {
        expect(span.fromToken).toBeLessThan(tokenIds.length)
        if (index > 0) expect(span.fromToken).toBeGreaterThan(weightVersions[index - 1]!.fromToken)
      }
    })

    check('answers the same call with the same tokens, whatever else runs', async (engine) => {
      const alone = await engine.generate(request(), new AbortController().signal)
      const others = [1, 2, 3].map((turn) => request({ random: { ...request().random, turn } }))
      const together = await Promise.all([request(), ...others].map((call) => engine.generate(call, new AbortController().signal)))
      if (draws) expect(Array.from(together[0]!.tokenIds)).toEqual(Array.from(alone.tokenIds))
      if (draws) expect(Array.from(together[0]!.logprobs)).toEqual(Array.from(alone.logprobs))
      for (const { tokenIds, logprobs } of together) expect(logprobs.length).toBe(tokenIds.length)
    })

    check('rejects with the reason of the signal, and accounts for what was drawn until then', async (engine) => {
      const before = engine.sampledTokens()
      const controller = new AbortController()
      const reason = new Error('the client went away')
      const tokenIds: number[] = []
      const onTokens: GenerateRequest['onTokens'] = (ids) => {
        tokenIds.push(...ids)
        controller.abort(reason)
      }
      const call = engine.generate(request({ sampling: limited(64), onTokens }), controller.signal)
      const outcome = await call.then(
        (result) => result,
        (error: unknown) => error,
      )
      // A completion whose first piece is its last may end before it notices the abort.
      if (outcome instanceof Error) expect(outcome).toBe(reason)
      else expect((outcome as GenerateResult).tokenIds.length).toBe(tokenIds.length)
      expect(engine.sampledTokens() - before).toBe(tokenIds.length)
    })

    check('rejects at once when the signal is aborted already', async (engine) => {
      const before = engine.sampledTokens()
      const reason = new Error('cancelled before it began')
      const { error, tokenIds } = await observe(engine, request(), AbortSignal.abort(reason))
      expect(error).toBe(reason)
      expect(tokenIds).toEqual([])
      expect(engine.sampledTokens()).toBe(before)
    })

    check('goes on serving after an abort', async (engine) => {
      const controller = new AbortController()
      const onTokens = () => controller.abort(new Error('enough'))
      const aborted = Array.from({ length: 8 }, () => engine.generate(request({ sampling: limited(64), onTokens }), controller.signal))
      await Promise.allSettled(aborted)
      const { result } = await observe(engine, request())
      expect(result!.tokenIds.length).toBeGreaterThan(0)
    })

    check('refuses a prompt that leaves no room in the context', async (engine) => {
      const tooLong = new Int32Array(engine.model.contextLength).fill(promptTokenIds[0]!)
      const { error } = await observe(engine, request({ promptTokenIds: tooLong }))
      expect(error).toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
    })

    check('fails calls after it is closed', async () => {
      const engine = await create()
      await engine.close()
      const { error } = await observe(engine, request())
      expect(error).toBeInstanceOf(Error)
    })

    if (publish) {
      check('samples with the version that was published', async (engine) => {
        const before = engine.weightVersion()
        await publish(engine)
        expect(engine.weightVersion()).toBe(before + 1)
        const { weightVersions } = await engine.generate(request(), new AbortController().signal)
        expect(weightVersions).toEqual([{ fromToken: 0, version: before + 1 }])
      })
    }

    if (draws) {
      check('draws by the random key', async (engine) => {
        const texts = new Set<string>()
        for (const turn of [0, 1, 2, 3]) {
          const { tokenIds } = await engine.generate(request({ random: { ...request().random, turn } }), new AbortController().signal)
          texts.add(tokenIds.join())
        }
        expect(texts.size).toBeGreaterThan(1)
      })
    }
  })
}
