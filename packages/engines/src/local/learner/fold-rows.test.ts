import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, lastGradient, randomTree, smallModel, type Trainer, toSample } from '../goldens/trainer.ts'
import { commandsOf } from './batch-writer.ts'
import { cutCommands, type DistinctRow, distinctRows, layOutRows } from './fold-rows.ts'

const trees = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 30 })).map(([seed, count]) => randomTree(createNumbers(seed), count, 20))
const prefixesOf = (rows: readonly Int32Array[]): Set<string> =>
  new Set(rows.flatMap((row) => Array.from(row, (_, at) => row.slice(0, at + 1).join())))

describe('laying out', () => {
  it('puts every token of every row in its place behind those before it, within its pass', () => {
    fc.assert(
      fc.property(trees, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 60 }), (rows, shards, passTokens) => {
        const distinct = distinctRows(rows)
        const folded = layOutRows(distinct, { shards, passTokens })
        for (const [index, { members, tokens }] of distinct.entries()) {
          const places = folded.places[index]!
          expect(places.map((place) => folded.tokens[place]!)).toEqual(tokens)
          expect(places).toEqual(places.toSorted())
          for (const member of members) expect(rows[member]).toEqual(tokens)
          const pass = folded.passes.findLastIndex((row) => row <= index)
          expect(places[0]).toBeGreaterThanOrEqual(folded.rowStarts[folded.passes[pass]!]!)
        }
        expect(distinct.flatMap(({ members }) => members).toSorted((a, b) => a - b)).toEqual([...rows.keys()])
        expect(folded.shardPasses).toHaveLength(shards + 1)
        for (const [pass, row] of folded.passes.slice(0, -1).entries()) {
          const end = folded.passes[pass + 1]!
          const tokens = folded.rowStarts[end]! - folded.rowStarts[row]!
          expect(tokens <= passTokens || end === row + 1).toBe(true)
        }
      }),
    )
  })

  it('forwards every prefix once in one pass, and is a function of the set of rows', () => {
    fc.assert(
      fc.property(trees, (rows) => {
        const whole = { shards: 1, passTokens: 1_000_000 }
        const folded = layOutRows(distinctRows(rows), whole)
        expect(folded.tokens).toHaveLength(prefixesOf(rows).size)
        expect(layOutRows(distinctRows(rows.toReversed()), whole)).toEqual(folded)
      }),
    )
  })

  it('gives the shards about equal parts', () => {
    fc.assert(
      fc.property(trees, fc.integer({ min: 1, max: 9 }), (rows, shards) => {
        const { rowStarts, passes, shardPasses } = layOutRows(distinctRows(rows), { shards, passTokens: 1_000_000 })
        const longest = Math.max(...rows.map((row) => row.length))
        for (let shard = 0; shard < shards; shard++) {
          const startOf = (at: number): number => rowStarts[passes[shardPasses[at]!]!]!
          const part = startOf(shard + 1) - startOf(shard)
          // One row beside the cut, the tokens that it repeats, and the slack of both cuts.
          expect(part).toBeLessThanOrEqual((prefixesOf(rows).size / shards) * 1.25 + 2 * longest)
        }
      }),
    )
  })

  it('shares nothing where rows do not fold', () => {
    const rows = randomTree(createNumbers(3), 20, 20)
    const { tokens } = layOutRows(distinctRows(rows, false), { shards: 2, passTokens: 50 })
    expect([...tokens]).toEqual(rows.flatMap((row) => [...row]))
  })
})

describe('commands', () => {
  const capacity = { rows: 5, tokens: 40, occurrences: 60 }
  const sizeOf = (rows: readonly DistinctRow[]) => ({
    rows: rows.length,
    tokens: rows.reduce((sum, { tokens, common }, index) => sum + tokens.length - (index === 0 ? 0 : common), 0),
    occurrences: rows.reduce((sum, { tokens, members }) => sum + tokens.length * members.length, 0),
  })

  it('have every row once, and no more than they can carry', () => {
    fc.assert(
      fc.property(trees, (rows) => {
        const commands = cutCommands(distinctRows(rows), capacity)
        const members = commands.flatMap((command) => command.flatMap((row) => row.members))
        expect(members.toSorted((a, b) => a - b)).toEqual([...rows.keys()])
        for (const command of commands) {
          const size = sizeOf(command)
          for (const name of ['rows', 'tokens', 'occurrences'] as const) expect(size[name]).toBeLessThanOrEqual(capacity[name])
          const { tokens, paths } = layOutRows(command, { shards: 3, passTokens: 20 })
          expect(Math.max(tokens.length, paths.length)).toBeLessThanOrEqual(capacity.occurrences)
        }
      }),
    )
  })

  it('share out the samples of a row that has too many of them', () => {
    const rows = Array.from({ length: 10 }, () => Int32Array.of(...Array(20).fill(1)))
    const commands = cutCommands(distinctRows(rows), capacity)
    expect(commands.map((command) => command.map(({ members }) => members))).toEqual([[[0, 1, 2]], [[3, 4, 5]], [[6, 7, 8]], [[9]]])
  })
})

const loss = { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.3, klCoefficient: 0.1, entropyCoefficient: 0.05 } as const
const temperature = 1.3

describe.each([
  ['grouped heads, tied', smallModel(), 'plain', 'token-mean'],
  ['one key head, untied, no head norm', smallModel({ kvHeads: 1, tieWordEmbeddings: false, qkNorm: false }), 'relaxed', 'sequence-mean'],
  [
    'one layer, wide heads',
    smallModel({ layers: 1, heads: 2, headDim: 24, hiddenSize: 20, intermediateSize: 36 }),
    'plain',
    'sequence-mean',
  ],
] as const)('rows that share what they begin with: %s', (_, model, tier, aggregation) => {
  // Passes of both are alike, so that they only differ in sharing.
  const open = (folds: boolean, options = {}) => createTrainer({ model, tier, microBatchTokens: 400, batchTokens: 600, folds, ...options })

  const update = async (trainer: Trainer, request: object) => {
    const metrics = await trainer.learner.update({ optimizer: gradientOnly, temperature, ...request } as never)
    return { metrics, gradient: lastGradient(trainer) }
  }

  const createRequest = async (trainer: Trainer, rows: readonly Int32Array[], next: () => number, spread: number) => {
    const logprobs = await trainer.learner.logprobs(rows, temperature)
    const near = (width: number) => logprobs.map((row) => row.map((value) => value + (next() - 0.5) * width))
    const rollout = near(spread)
    const samples = rows.map((tokenIds, i) => {
      const lossMask = Uint8Array.from(tokenIds, (_, at) => Number(at > 0 && next() < 0.6))
      return toSample({ tokenIds, lossMask, rolloutLogprobs: rollout[i]!, advantage: next() * 4 - 2 }, i)
    })
    return { samples, referenceLogprobs: near(1), loss: { ...loss, aggregation } }
  }

  const expectAlike = async (folding: Trainer, unfolded: Trainer, request: object) => {
    const [folded, reference] = [await update(folding, request), await update(unfolded, request)]
    const { logprobs, trainedTokens, clipFraction } = reference.metrics
    expect(folded.metrics).toMatchObject({ logprobs, trainedTokens, clipFraction })
    expect(folded.metrics.loss).toBeCloseTo(reference.metrics.loss, 10)
    const largest = Math.max(...reference.gradient.map(Math.abs))
    const furthest = Math.max(...reference.gradient.map((value, i) => Math.abs(value - folded.gradient[i]!)))
    expect(furthest).toBeLessThanOrEqual(largest * 5e-6)
    return reference
  }

  it('have the logprobs of rows that share nothing, to the bit, and their gradient', async () => {
    await using folding = await open(true)
    await using unfolded = await open(false)
    for (const seed of [1, 2, 3]) {
      const next = createNumbers(seed)
      const rows = randomTree(next, 40, 90)
      expect(await folding.learner.logprobs(rows, temperature)).toEqual(await unfolded.learner.logprobs(rows, temperature))
      const request = await createRequest(folding, rows, next, 0.8)
      const { metrics } = await expectAlike(folding, unfolded, request)
      expect(metrics.clipFraction).toBeGreaterThan(0)
    }
  })

  it('have the slope of their loss', async () => {
    await using trainer = await open(true)
    const next = createNumbers(5)
    // There is no clip, because a difference would cross its kinks.
    const request = await createRequest(trainer, randomTree(next, 40, 90), next, 0.1)
    const { gradient } = await update(trainer, request)
    const base = trainer.parameters()
    for (const { name, offset, size } of trainer.pool.layout.table.parameters) {
      const direction = new Float32Array(base.length)
      for (let i = offset; i < offset + size; i++) direction[i] = Math.sign(gradient[i]!)
      const slope = direction.reduce((sum, value, i) => sum + value * gradient[i]!, 0)
      const step = Math.min(2e-3 / slope, 2e-3)
      const lossAt = async (by: number) => {
        await trainer.setParameters(base.map((value, i) => value + by * direction[i]!))
        return (await update(trainer, request)).metrics.loss
      }
      const measured = ((await lossAt(step)) - (await lossAt(-step))) / (2 * step)
      expect(Math.abs(measured / slope - 1), name).toBeLessThan(0.02)
    }
  })

  it.each([
    [
      'a sample twice',
      [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
      ],
    ],
    [
      'a row that begins another',
      [
        [1, 2],
        [1, 2, 3, 4],
      ],
    ],
    ['one token', [[1], [1], [1, 2]]],
    ['a row of full context beside a part of it', [Array(model.contextLength).fill(1), Array(9).fill(1)]],
    ['all rows equal, more than a command carries', Array.from({ length: 700 }, () => [1, 2, 0, 2, 1])],
    ['none alike', Array.from({ length: 20 }, (_, i) => [i, 1, 2])],
  ] as const)('hold %s', async (_name, ids) => {
    await using folding = await open(true)
    await using unfolded = await open(false)
    const rows = ids.map((row) => Int32Array.from(row))
    await expectAlike(folding, unfolded, await createRequest(unfolded, rows, createNumbers(9), 0.8))
  })

  it('hold 4,096 rows, in one command and in many', async () => {
    const rows = Array.from({ length: 4_096 }, (_, i) => Int32Array.of(1, i >> 8, (i >> 4) & 15, i & 15))
    await using whole = await open(true, { batchTokens: 65_536, batchRows: 4_096 })
    await using pieces = await open(true)
    await using unfolded = await open(false)
    expect(commandsOf(rows, whole.pool.layout)).toHaveLength(1)
    expect(commandsOf(rows, pieces.pool.layout).length).toBeGreaterThan(1)
    const request = await createRequest(unfolded, rows, createNumbers(9), 0.8)
    for (const folding of [whole, pieces]) await expectAlike(folding, unfolded, request)
  })

  it('train a token for those samples alone whose mask has it', async () => {
    await using folding = await open(true)
    await using unfolded = await open(false)
    const rows = Array.from({ length: 3 }, () => Int32Array.of(1, 2, 0, 2, 1, 3, 0))
    const { samples, ...request } = await createRequest(unfolded, rows, createNumbers(9), 0.8)
    // All end in a trained token, so that their rows are equal.
    const masks = [Uint8Array.of(0, 1, 0, 0, 1, 0, 1), Uint8Array.of(0, 0, 1, 0, 0, 0, 1), Uint8Array.of(0, 1, 0, 1, 0, 0, 1)]
    const masked = samples.map((sample, i) => ({ ...sample, lossMask: masks[i]! }))
    const { logprobs } = (await expectAlike(folding, unfolded, { ...request, samples: masked })).metrics
    const [first, second, third] = logprobs!
    expect([first, second, third]).toMatchObject([{ length: 3 }, { length: 2 }, { length: 3 }])
    expect([second![1], third![0]]).toEqual([first![2], first![0]])
  })

  it('hold each sample to its own reference, where rows are equal', async () => {
    await using trainer = await open(true)
    const rows = Array.from({ length: 2 }, () => Int32Array.of(1, 2, 0, 2, 1))
    const { samples, referenceLogprobs, loss } = await createRequest(trainer, rows, createNumbers(9), 0.1)
    const lossMask = Uint8Array.of(0, 1, 1, 1, 1)
    const updateWith = (members: readonly number[]) =>
      update(trainer, {
        samples: members.map((i) => ({ ...samples[i]!, lossMask })),
        referenceLogprobs: members.map((i) => referenceLogprobs[i]!),
        loss,
      })
    const [both, first, second] = [await updateWith([0, 1]), await updateWith([0]), await updateWith([1])]
    expect(both.metrics.kl).toBeCloseTo((first.metrics.kl! + second.metrics.kl!) / 2, 10)
    expect(Math.abs(first.metrics.kl! - second.metrics.kl!)).toBeGreaterThan(1e-3)
    const largest = Math.max(...both.gradient.map(Math.abs))
    const furthest = Math.max(...both.gradient.map((value, i) => Math.abs(value - (first.gradient[i]! + second.gradient[i]!) / 2)))
    expect(furthest / largest).toBeLessThan(5e-6)
  })
})
