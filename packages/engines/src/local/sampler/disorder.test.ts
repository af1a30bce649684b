import { setTimeout as sleep } from 'node:timers/promises'
import type { GenerateResult } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { streamOf, uniform } from '../random.ts'
import { never, request, sampleOf, startTinyEngine, type TinyRequest } from '../testing/tiny-model.ts'

const calls: readonly TinyRequest[] = Array.from({ length: 40 }, (_, i) => ({
  task: `t${i}`,
  affinity: `row-${i % 13}`,
  prompt: Array.from({ length: 1 + ((i * 29) % 120) }, (__, j) => (j * ((i % 4) + 3)) % 256),
  maxTokens: 1 + ((i * 17) % 60),
  stop: i % 6 === 0 ? ['ab', 'zzz', '\n'] : [],
}))

const visible = ({ tokenIds, logprobs, finishReason }: GenerateResult): unknown => ({
  ids: Array.from(tokenIds),
  logprobs: Array.from(logprobs),
  finishReason,
})

describe('calls that come, are given up and are interrupted at any moment', () => {
  it.each([1, 2, 3, 4])('leave the others alone, and every drawn token is handed over and counted (seed %i)', async (seed) => {
    await using local = await startTinyEngine({ maxRows: 6, threads: 2, shape: { contextLength: 256 } })
    const { engine, learner } = local
    const alone = await Promise.all(calls.map((call) => engine.generate(request(call), never)))
    const before = engine.sampledTokens()
    expect(before).toBe(alone.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0))

    const [high, low] = streamOf(['disorder', seed])
    let draws = 0
    const random = (): number => uniform(high, low, draws++)
    let handedOver = 0
    let abandoned = 0
    const one = async (call: TinyRequest, expected: GenerateResult): Promise<void> => {
      const controller = new AbortController()
      const [wait, patience, abortAt] = [random() * 30, random() * 20, Math.floor(random() * 40)]
      const gaveUp = random() < 0.3
      const byToken = random() < 0.5
      await sleep(wait)
      let seen = 0
      const onTokens = (ids: Int32Array): void => {
        seen += ids.length
        handedOver += ids.length
        if (gaveUp && byToken && seen >= abortAt) controller.abort(new Error('enough'))
      }
      const timer = gaveUp && !byToken ? setTimeout(() => controller.abort(new Error('late')), patience) : undefined
      try {
        const result = await engine.generate(request({ ...call, onTokens }), controller.signal)
        expect(visible(result)).toEqual(visible(expected))
        expect(seen).toBe(result.tokenIds.length)
      } catch (error) {
        if (!gaveUp) throw error
        expect(error).toBe(controller.signal.reason)
        abandoned++
      } finally {
        clearTimeout(timer)
      }
    }
    const optimizer = { learningRate: 0, betas: [0.9, 0.95] as const, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 }
    const interrupt = async (): Promise<void> => {
      for (let i = 0; i < 4; i++) {
        await sleep(random() * 15)
        await learner.update({ samples: [sampleOf([1, 2, 3, 4])], loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
        await learner.publish()
        await learner.logprobs([Int32Array.of(1, 2, 3)], 1)
      }
    }
    await Promise.all([...calls.map((call, i) => one(call, alone[i]!)), interrupt()])
    expect(engine.sampledTokens() - before).toBe(handedOver)
    expect(abandoned).toBeGreaterThan(0)
    expect(engine.weightVersion()).toBe(4)
    const after = await Promise.all(calls.map((call) => engine.generate(request(call), never)))
    expect(after.map(visible)).toEqual(alone.map(visible))
  })
})
