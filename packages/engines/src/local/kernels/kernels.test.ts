import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { Arena, createViews, type Views } from '../arena.ts'
import { createNumbers } from '../goldens/goldens.ts'
import type { Kernels } from './kernels.ts'
import { kernelsUrl, type SimdTier } from './load-kernels.ts'
import { attentionScratchBytes, gemmScratchBytes, packedFloats, roundUp } from './sizes.ts'
import { wasm } from './webassembly.ts'

interface Bench {
  readonly kernels: Kernels
  readonly views: Views
  readonly arena: Arena
  /** Address of fresh floats drawn from ±1. */
  random(count: number): number
  read(address: number, count: number): Float32Array
}

async function createBench(tier: SimdTier): Promise<Bench> {
  const pages = 256
  const memory = new wasm.Memory({ initial: pages, maximum: pages, shared: true })
  const { exports } = new wasm.Instance(new wasm.Module(await readFile(kernelsUrl(tier))), { env: { memory } })
  const views = createViews(memory.buffer)
  const arena = new Arena(65_536, pages * 65_536)
  const next = createNumbers(9)
  return {
    kernels: exports as unknown as Kernels,
    views,
    arena,
    random: (count) => {
      const address = arena.takeFloats(count)
      for (let i = 0; i < count; i++) views.f32[address / 4 + i] = next() * 2 - 1
      return address
    },
    read: (address, count) => views.f32.slice(address / 4, address / 4 + count),
  }
}

const canary = 12345.678
/** Scratch of exactly `bytes`, and a check that nothing was written after it. */
function guardedScratch({ arena, views }: Bench, bytes: number): { address: number; check(): void } {
  const address = arena.take(bytes)
  const guard = address + Math.ceil(bytes / 4) * 4
  arena.take(256)
  views.f32.fill(canary, guard / 4, guard / 4 + 32)
  return {
    address,
    check: () => expect([...views.f32.subarray(guard / 4, guard / 4 + 32)]).toEqual(new Array(32).fill(Math.fround(canary))),
  }
}

describe.each(['plain', 'relaxed'] as const)('%s', (tier) => {
  it.each([
    [1, 1, 1],
    [6, 8, 4],
    [7, 9, 5],
    [13, 31, 259],
    [97, 17, 64],
    [5, 523, 40],
    [200, 40, 513],
  ])('the product of %i x %i over %i agrees with sums in float64, in every form', async (M, N, K) => {
    const bench = await createBench(tier)
    const { kernels, random, read } = bench
    const scratch = guardedScratch(bench, gemmScratchBytes())
    for (const [ta, tb] of [
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ] as const) {
      const a = random(M * K)
      const b = random(K * N)
      const c = random(M * N)
      const before = read(c, M * N)
      kernels.gemm(ta, tb, M, N, K, a, ta ? M : K, b, tb ? K : N, c, N, 1, scratch.address)
      const [left, right, out] = [read(a, M * K), read(b, K * N), read(c, M * N)]
      let error = 0
      for (let i = 0; i < M; i++) {
        for (let j = 0; j < N; j++) {
          let sum = before[i * N + j]!
          for (let k = 0; k < K; k++) sum += left[ta ? k * M + i : i * K + k]! * right[tb ? j * K + k : k * N + j]!
          error = Math.max(error, Math.abs(out[i * N + j]! - sum))
        }
      }
      expect(error).toBeLessThan(2e-7 * K + 1e-6)
    }
    scratch.check()
  })

  it('a packed product has the bits of the plain one, and each row those it has alone', async () => {
    const bench = await createBench(tier)
    const { kernels, arena, random, read } = bench
    const [M, N, K] = [103, 45, 300]
    const a = random(M * K)
    const b = random(N * K)
    const packed = arena.takeFloats(packedFloats(K, N))
    const [c, d] = [arena.takeFloats(M * N), arena.takeFloats(N)]
    const scratch = arena.take(gemmScratchBytes())
    kernels.prepack(1, K, N, b, K, packed)
    kernels.gemmPacked(M, N, K, a, K, packed, c, N, 0, scratch)
    const together = read(c, M * N)
    kernels.gemm(0, 1, M, N, K, a, K, b, K, c, N, 0, scratch)
    expect(read(c, M * N)).toEqual(together)
    for (const row of [0, 5, 6, 95, 96, 102]) {
      kernels.gemmPacked(1, N, K, a + row * K * 4, K, packed, d, N, 0, scratch)
      expect(read(d, N)).toEqual(together.slice(row * N, (row + 1) * N))
    }
  })

  it.each([1, 2, 31, 32, 33, 100, 257])('attention over %i tokens stays in its scratch and agrees with float64', async (tokens) => {
    const bench = await createBench(tier)
    const { kernels, arena, random, read } = bench
    const [heads, kvHeads, headDim] = [4, 2, 24]
    const fused = (heads + 2 * kvHeads) * headDim
    const rotated = random(tokens * fused)
    const out = arena.takeFloats(tokens * heads * headDim)
    const dOut = random(tokens * heads * headDim)
    const dRotated = arena.takeFloats(tokens * fused)
    const scratch = guardedScratch(bench, attentionScratchBytes(tokens, headDim))
    kernels.attention(tokens, 0, heads, kvHeads, headDim, rotated, out, scratch.address)
    kernels.zero(dRotated, tokens * fused)
    kernels.attentionBackward(tokens, 0, heads, kvHeads, headDim, rotated, dOut, dRotated, scratch.address)
    scratch.check()
    const [x, y] = [read(rotated, tokens * fused), read(out, tokens * heads * headDim)]
    let error = 0
    for (const t of [0, tokens >> 1, tokens - 1]) {
      for (let h = 0; h < heads; h++) {
        const kv = h >> 1
        const at = (token: number, part: number): number => token * fused + part * headDim
        const scores = Array.from({ length: t + 1 }, (_, s) => {
          let sum = 0
          for (let i = 0; i < headDim; i++) sum += x[at(t, h) + i]! * x[at(s, heads + kv) + i]!
          return Math.exp(sum / Math.sqrt(headDim))
        })
        const total = scores.reduce((sum, value) => sum + value, 0)
        for (let i = 0; i < headDim; i++) {
          const expected = scores.reduce((sum, p, s) => sum + (p / total) * x[at(s, heads + kvHeads + kv) + i]!, 0)
          error = Math.max(error, Math.abs(expected - y[(t * heads + h) * headDim + i]!))
        }
      }
    }
    expect(error).toBeLessThan(1e-6)
    expect(read(dRotated, tokens * fused).every(Number.isFinite)).toBe(true)
  })

  it.each([1, 5, 8, 37])('log-softmax over %i tokens keeps extreme logits and NaN what they are', async (vocabulary) => {
    const { kernels, views, arena, read } = await createBench(tier)
    const stride = roundUp(vocabulary, 8)
    const logits = arena.takeFloats(stride)
    const [targets, stats] = [arena.takeFloats(1), arena.takeFloats(4)]
    const score = (values: (index: number) => number, target = 0, temperature = 1): { logprob: number; entropy: number } => {
      for (let i = 0; i < vocabulary; i++) views.f32[logits / 4 + i] = values(i)
      views.i32[targets / 4] = target
      kernels.headForward(1, vocabulary, stride, 1 / temperature, logits, targets, stats)
      const [, , logprob, entropy] = read(stats, 4)
      return { logprob: logprob!, entropy: entropy! }
    }
    const even = score(() => -3)
    expect(even.logprob).toBeCloseTo(-Math.log(vocabulary), 6)
    expect(even.entropy).toBeCloseTo(Math.log(vocabulary), 6)
    const peaked = score((i) => (i === 0 ? 500 : -500))
    expect(peaked.logprob).toBeCloseTo(0, 6)
    expect(peaked.entropy).toBeCloseTo(0, 6)
    if (vocabulary > 1) {
      expect(score((i) => (i === 0 ? 500 : -500), 1).logprob).toBeCloseTo(-1000, 2)
      expect(score((i) => i, 1, 0.5).logprob).toBeCloseTo(
        2 - Math.log(Array.from({ length: vocabulary }, (_, i) => Math.exp(2 * i - 80)).reduce((a, b) => a + b)) - 80,
        3,
      )
    }
    expect(score((i) => (i === vocabulary - 1 ? Number.NaN : 1)).logprob).toBeNaN()
    expect(score(() => Number.POSITIVE_INFINITY).logprob).toBeNaN()
  })

  it('AdamW steps as in float64, with decay and a scaled gradient', async () => {
    const { kernels, random, read, views, arena } = await createBench(tier)
    const n = 16
    const [p, g] = [random(n), random(n)]
    const [m, v] = [arena.takeFloats(n), arena.takeFloats(n)]
    views.f32.fill(0, m / 4, m / 4 + n)
    views.f32.fill(0, v / 4, v / 4 + n)
    const expected = [...read(p, n)]
    const first = new Array<number>(n).fill(0)
    const second = new Array<number>(n).fill(0)
    const [rate, beta1, beta2, epsilon, decay, scale] = [0.01, 0.9, 0.98, 1e-8, 0.1, 0.5]
    const gradient = read(g, n)
    for (let step = 1; step <= 10; step++) {
      kernels.adamw(n, p, g, m, v, rate, beta1, beta2, epsilon, decay, 1 / (1 - beta1 ** step), 1 / (1 - beta2 ** step), scale)
      for (let i = 0; i < n; i++) {
        const value = gradient[i]! * scale
        first[i] = beta1 * first[i]! + (1 - beta1) * value
        second[i] = beta2 * second[i]! + (1 - beta2) * value * value
        const update = first[i]! / (1 - beta1 ** step) / (Math.sqrt(second[i]! / (1 - beta2 ** step)) + epsilon)
        expected[i] = expected[i]! * (1 - rate * decay) - rate * update
      }
    }
    read(p, n).forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i]!, 5)
    })
  })

  it('sums of squares do not lose small numbers beside large ones', async () => {
    const { kernels, views, arena } = await createBench(tier)
    const x = arena.takeFloats(4096)
    views.f32.fill(1e-3, x / 4, x / 4 + 4096)
    views.f32[x / 4] = 1e4
    const exact = 1e8 + 4095 * Math.fround(1e-3) ** 2
    expect(Math.abs(kernels.sumSquares(x, 4096) - exact)).toBeLessThan(1e-5)
  })
})
