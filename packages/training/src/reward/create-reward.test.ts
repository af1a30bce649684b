import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Message, scoringContext } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNamedReward } from '../inputs/named-reward.ts'
import { rewardInput as makeInput } from '../testing/reward-input.ts'
import { createReward, type RewardSource } from './create-reward.ts'
import { defineReward } from './define-reward.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-reward-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const context = scoringContext(new AbortController().signal)

async function scoreOnce(source: RewardSource, input = makeInput(), options: Parameters<typeof createReward>[1] = {}) {
  const reward = await createReward(source, { baseDirectory: directory, ...options })
  try {
    return await reward.score(input, context)
  } finally {
    await reward.close()
  }
}

function reward(body: string, name = 'reward.ts'): string {
  writeFileSync(join(directory, name), body)
  return `./${name}`
}

describe('an inline reward', () => {
  it('gets data source, answer, truth and extra information by position', async () => {
    const seen: unknown[] = []
    await scoreOnce((...args) => {
      seen.push(...args)
      return 1
    })
    expect(seen.slice(0, 4)).toEqual(['metals', 'gold', 'gold', { level: 2 }])
  })

  it('gets the whole answer and tool text with full-response', async () => {
    const messages: Message[] = [
      { role: 'assistant', content: null, toolCalls: [{ id: 'c', name: 'lookup', arguments: '{}' }] },
      { role: 'tool', content: '79', toolCallId: 'c' },
      { role: 'assistant', content: 'gold' },
    ]
    const length = (_: string, solution: string) => solution.length
    expect((await scoreOnce(length, makeInput(messages))).reward).toBe(4)
    expect((await scoreOnce(length, makeInput(messages), { rewardInput: 'full-response' })).reward).toBe('lookup({})\n79\ngold'.length)
  })

  it('sees the episode when defined so, and may give scores', async () => {
    const rich = defineReward(({ task, episode, answer }) => ({
      reward: episode.answer === answer.groundTruth ? 1 : 0,
      scores: { level: Number(task.extraInfo['level']) },
    }))
    expect(await scoreOnce(rich)).toEqual({ reward: 1, scores: { level: 2 } })
  })

  it('may give single agents rewards of their own', async () => {
    const output = { reward: 1, scores: {}, agents: { reader: 0.5, lead: 0 } }
    expect(await scoreOnce(defineReward(() => ({ reward: 1, agents: { reader: 0.5, lead: 0 } })))).toEqual(output)
    expect(await scoreOnce(() => ({ reward: null, agents: {} }))).toEqual({ reward: null, scores: {}, agents: {} })
  })

  it('may be async, within its deadline', async () => {
    expect((await scoreOnce(async () => 0.5)).reward).toBe(0.5)
    await expect(scoreOnce(() => new Promise(() => {}), makeInput(), { timeoutMs: 20 })).rejects.toMatchObject({ code: 'REWARD_TIMEOUT' })
  })

  it('ends with the reason of the signal', async () => {
    const stop = new AbortController()
    const waiting = (await createReward(() => new Promise<number>(() => {}))).score(makeInput(), scoringContext(stop.signal))
    stop.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
  })

  it.each([
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [true, 'a boolean (true)'],
    ['1', 'a string ("1")'],
    [undefined, 'undefined'],
    [{ score: 1 }, 'an object ({"score":1})'],
    [[1], 'a list ([1])'],
    [1n, 'a bigint (1)'],
    [{ reward: 1, scores: { a: Number.NaN } }, 'score "a" NaN'],
    [{ reward: 1, scores: [1] }, 'a list ([1])'],
    [{ reward: '1' }, 'a string ("1")'],
    [{ reward: 1, agents: { reader: Number.NaN } }, 'returned as reward of agent "reader" NaN'],
    [{ reward: 1, agents: { lead: 1, reader: '1' } }, 'returned as reward of agent "reader" a string ("1")'],
    [{ reward: 1, agents: { reader: null } }, 'returned as reward of agent "reader" null'],
    [{ reward: null, agents: { reader: Number.NaN } }, 'returned as reward of agent "reader" NaN'],
    [{ reward: 1, agents: [1] }, 'returned as agents a list ([1])'],
    [{ reward: 1, agent: { reader: 1 } }, 'an object with "agent"; return { reward, scores, agents }'],
  ])('refuses %s and names it', async (value, named) => {
    const source = { strange: () => value as never }.strange
    await expect(scoreOnce(source)).rejects.toMatchObject({
      code: 'REWARD_INVALID',
      message: expect.stringContaining(`Reward "strange" returned`),
    })
    await expect(scoreOnce(source)).rejects.toThrow(named)
  })

  it('abstains with null', async () => {
    expect(await scoreOnce(() => null)).toEqual({ reward: null, scores: {} })
    expect(await scoreOnce(() => ({ reward: null, scores: { length: 3 } }))).toEqual({ reward: null, scores: { length: 3 } })
  })

  it('says what threw, on which task', async () => {
    const source = () => {
      throw new RangeError('no such metal')
    }
    await expect(scoreOnce(source)).rejects.toMatchObject({
      code: 'REWARD_FAILED',
      message: expect.stringMatching(/"source" threw on task "t": no such metal/),
    })
  })

  it.each([undefined, 5, {}])('refuses %s as a reward', async (source) => {
    await expect(createReward(source as never)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})

describe('a reward by path', () => {
  it('runs in a worker, in either form', async () => {
    const path = reward(`
      import { isMainThread } from 'node:worker_threads'
      export const plain = (dataSource: string, solution: string, truth: string) => (isMainThread ? -1 : solution === truth ? 1 : 0)
    `)
    expect(await scoreOnce(`${path}#plain`)).toEqual({ reward: 1, scores: {} })
    const rich = reward(
      `export default { kind: 'aworld-train.reward', name: 'rich', score: ({ episode }) => ({ reward: episode.messages.length, scores: { a: 1 }, agents: { reader: 0.5 } }) }`,
      'rich.mjs',
    )
    expect(await scoreOnce(rich)).toEqual({ reward: 2, scores: { a: 1 }, agents: { reader: 0.5 } })
  })

  it.each([
    ['nan', 'return NaN', 'REWARD_INVALID', 'NaN'],
    ['bool', 'return true', 'REWARD_INVALID', 'boolean'],
    ['text', "return 'x'.repeat(1e7)", 'REWARD_INVALID', 'a string ("xxx'],
    ['func', 'return () => 1', 'REWARD_INVALID', 'a function'],
    ['list', 'return [1]', 'REWARD_INVALID', 'a list'],
    ['agent', 'return { reward: 1, agents: { reader: NaN } }', 'REWARD_INVALID', 'reward of agent "reader" NaN'],
    [
      'many',
      'return { reward: 1, agents: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, 1])) }',
      'REWARD_INVALID',
      'an object',
    ],
    ['throws', "throw new Error('boom')", 'REWARD_FAILED', 'boom'],
    ['loops', 'for (;;);', 'REWARD_TIMEOUT', '300 ms'],
    ['waits', 'return new Promise(() => {})', 'REWARD_TIMEOUT', '300 ms'],
    ['eats', 'const all = []; for (;;) all.push(new Array(1e5).fill(0.5))', 'REWARD_FAILED', 'more than 64 MB'],
    ['buffers', 'const all = []; for (;;) { all.push(Buffer.alloc(4e6, 1)) }', 'REWARD_FAILED', 'more than 64 MB'],
    ['exits', 'process.exit(3)', 'REWARD_PROCESS_DIED', 'code 3'],
  ])('%s: is refused, and the next call works', async (name, body, code, named) => {
    const path = reward(`let first = true\nexport function ${name}(): unknown {\n  if (globalThis.calm) return 1\n${body}\n}\n`)
    // The limit is short only for a reward that must exceed it, because a busy machine takes its time.
    const limits = { baseDirectory: directory, timeoutMs: code === 'REWARD_TIMEOUT' ? 300 : 20_000, memoryMb: 64 }
    const created = await createReward(`${path}#${name}`, limits)
    try {
      await expect(created.score(makeInput(), context)).rejects.toMatchObject({ code, message: expect.stringContaining(named) })
      await expect(created.score(makeInput(), context)).rejects.toMatchObject({ code })
    } finally {
      await created.close()
    }
  })

  it('scores calls that wait behind one that never returns', async () => {
    const path = reward('export function slow(source: string, solution: string) { if (solution === "bad") for (;;); return 1 }')
    const created = await createReward(path, { baseDirectory: directory, timeoutMs: 3_000 })
    const bad = created.score(makeInput([{ role: 'assistant', content: 'bad' }]), context)
    const good = [1, 2, 3].map(() => created.score(makeInput(), context))
    await expect(bad).rejects.toMatchObject({ code: 'REWARD_TIMEOUT' })
    expect((await Promise.all(good)).map((output) => output.reward)).toEqual([1, 1, 1])
    await created.close()
    await expect(created.score(makeInput(), context)).rejects.toMatchObject({ code: 'REWARD_FAILED' })
  })

  it('has one call at a time, or as many as it is told, and 8 where the training has models', async () => {
    const path = reward(`let busy = 0
let most = 0
export async function overlap() {
  most = Math.max(most, ++busy)
  await new Promise((done) => setTimeout(done, 50))
  busy--
  return most
}`)
    const settings = { timeoutMs: 20_000, memoryMb: 64, input: 'answer' as const }
    const most = async (concurrency: number | null, models: readonly string[]) => {
      const created = await createNamedReward({ source: path, directory }, { ...settings, concurrency }, models)
      const outputs = await Promise.all(Array.from({ length: 12 }, () => created.score(makeInput(), context)))
      await created.close()
      return Math.max(...outputs.map((output) => output.reward ?? 0))
    }
    expect([await most(null, []), await most(3, []), await most(null, ['judge']), await most(2, ['judge'])]).toEqual([1, 3, 8, 2])
  })

  it('runs the calls beside one that ends the worker again', async () => {
    const path = reward(`export async function exits(source: string, solution: string) {
  await new Promise((done) => setTimeout(done, 50))
  if (solution === 'bad') process.exit(3)
  await new Promise((done) => setTimeout(done, 50))
  return 1
}`)
    const created = await createReward(path, { baseDirectory: directory, concurrency: 4 })
    const bad = created.score(makeInput([{ role: 'assistant', content: 'bad' }]), context)
    const good = [1, 2].map(() => created.score(makeInput(), context))
    await expect(bad).rejects.toMatchObject({ code: 'REWARD_PROCESS_DIED' })
    expect((await Promise.all(good)).map((output) => output.reward)).toEqual([1, 1])
    await created.close()
  })

  it('bounds what a worker is sent', async () => {
    const path = reward('export const size = (source: string, solution: string) => solution.length')
    const { reward: length } = await scoreOnce(path, makeInput([{ role: 'assistant', content: 'x'.repeat(5_000_000) }]))
    expect(length).toBe(1_000_000)
  })

  it.each([
    ['./gone.ts', /There is no reward module/],
    ['./reward.rb', /is no module of TypeScript, JavaScript or Python/],
    ['./reward.ts#', /names no export after "#"/],
    ['./reward.ts#gaiaRewad', /has no export "gaiaRewad". Did you mean "gaiaReward"\?/],
    ['./reward.ts#number', /"number" of .* is no reward/],
    ['./reward.ts', /exports "gaiaReward", "number", "other"; name the reward among them/],
    ['./syntax.ts', /syntax.ts|Expected|Unexpected|expression/i],
    ['./throws.ts', /at import/],
  ])('%s is refused', async (path, message) => {
    reward('export const gaiaReward = () => 1\nexport const other = () => 1\nexport const number = 5')
    reward('def f; end', 'reward.rb')
    reward('export const = 5', 'syntax.ts')
    reward("throw new Error('at import')", 'throws.ts')
    const refused = await createReward(path, { baseDirectory: directory }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'MODULE_INVALID', message: expect.stringMatching(message) })
  })
})
