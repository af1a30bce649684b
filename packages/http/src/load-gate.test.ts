import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isRefusedForLoad, LoadGate, type LoadGateOptions } from './load-gate.ts'
import type { Answered } from './retry.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const never = new AbortController().signal
const busy = (retryAfter?: string): Answered => ({ status: 429, retryAfter })
const ok: Answered = { status: 200 }

/** A gate before a server that answers as `answer` does, at once or when a test lets it. */
function setUp(answer: (call: string, now: number) => Answered | Promise<Answered>, options: Partial<LoadGateOptions<Answered>> = {}) {
  const sent: [call: string, at: number][] = []
  const waits = new Map<string, boolean[]>()
  const gate = new LoadGate<Answered>({
    maxInFlight: Number.POSITIVE_INFINITY,
    retries: 2,
    firstMs: 500,
    longestMs: 60_000,
    isRefusal: isRefusedForLoad,
    ...options,
  })
  const start = performance.now()
  const now = () => Math.round(performance.now() - start)
  const run = (call: string, signal = never) =>
    gate.run(
      async () => {
        sent.push([call, now()])
        return answer(call, now())
      },
      { signal, onWait: (isWaiting) => waits.set(call, [...(waits.get(call) ?? []), isWaiting]) },
    )
  return { gate, sent, waits, now, run }
}

const statuses = async (runs: readonly Promise<Answered>[]) => (await Promise.all(runs)).map(({ status }) => status)

test('calls of an hour of refusals all get their answers; one asks for all, and their clocks stand', async () => {
  const { run, sent, waits } = setUp((_, now) => (now < 3_600_000 ? busy() : ok), { patienceMs: Number.POSITIVE_INFINITY })
  const runs = Array.from({ length: 32 }, (_, index) => run(`${index}`))
  await vi.advanceTimersByTimeAsync(3_700_000)
  expect(await statuses(runs)).toEqual(Array(32).fill(200))
  // 32 at once, then at most half as many each time, one a minute in the end, and 32 answers.
  expect(sent.length).toBeLessThan(32 + 31 + 60 + 8 + 32)
  for (const flags of waits.values()) expect([flags[0], flags.at(-1), flags.length % 2]).toEqual([true, false, 0])
})

test('a call that arrives while others are held back is not sent before the time that the server named', async () => {
  const { run, sent } = setUp((_, now) => (now < 7_000 ? busy('7') : ok))
  const first = run('first')
  await vi.advanceTimersByTimeAsync(2_000)
  const second = run('second')
  await vi.advanceTimersByTimeAsync(4_900)
  expect(sent).toEqual([['first', 0]])
  await vi.advanceTimersByTimeAsync(200)
  expect(await statuses([first, second])).toEqual([200, 200])
  expect(sent.map(([call]) => call)).toEqual(['first', 'first', 'second'])
})

test('Retry-After may be a date, and is at most an hour where there is patience, else a minute', async () => {
  const date = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 5_000).toUTCString()
  for (const [header, patienceMs, least, most] of [
    [date, undefined, 4_000, 6_100],
    ['3600', undefined, 60_000, 60_000],
    ['3600', Number.POSITIVE_INFINITY, 3_600_000, 3_600_000],
    ['999999999', Number.POSITIVE_INFINITY, 3_600_000, 3_600_000],
    ['0', undefined, 500, 500],
    ['soon', undefined, 500, 500],
  ] as const) {
    let refused = false
    const { run, sent } = setUp(
      () => {
        if (refused) return ok
        refused = true
        return busy(header)
      },
      { patienceMs },
    )
    const answered = run('a')
    await vi.advanceTimersByTimeAsync(most + 1)
    expect((await answered).status).toBe(200)
    expect(sent[1]![1], header).toBeGreaterThanOrEqual(least)
  }
})

test('without patience calls are sent as often as their retries allow, and fail together', async () => {
  const { run, sent, now } = setUp(() => busy())
  const runs = Array.from({ length: 8 }, (_, index) => run(`${index}`))
  await vi.advanceTimersByTimeAsync(500 + 1_000 + 1)
  expect(await statuses(runs)).toEqual(Array(8).fill(429))
  expect(sent.length).toBeLessThanOrEqual(8 + 4 + 2)
  expect(now()).toBeLessThan(1_600)
})

test('calls for which there is no place do not fail with those that were refused, but in their turn', async () => {
  const twoPlaces = { maxInFlight: 2 }
  const recovering = setUp((_, now) => (now < 1_800 ? busy() : ok), twoPlaces)
  const some = Array.from({ length: 6 }, (_, index) => recovering.run(`${index}`))
  await vi.advanceTimersByTimeAsync(60_000)
  expect((await statuses(some)).filter((status) => status === 429).length).toBeLessThanOrEqual(2)
  const lost = setUp(() => busy(), twoPlaces)
  const all = Array.from({ length: 6 }, (_, index) => lost.run(`${index}`))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await statuses(all)).toEqual(Array(6).fill(429))
})

test('a call that waits longer than its patience fails with the refusal', async () => {
  const { run, now } = setUp(() => busy('10'), { patienceMs: 25_000 })
  const answered = run('a')
  let at = 0
  void answered.then(() => {
    at = now()
  })
  await vi.advanceTimersByTimeAsync(60_000)
  expect([(await answered).status, at]).toEqual([429, 20_000])
})

test('one call that is always refused keeps no other from its answer', async () => {
  const { run } = setUp((call) => (call === 'too large' ? busy() : ok), { patienceMs: Number.POSITIVE_INFINITY })
  const leave = new AbortController()
  const refused = run('too large', leave.signal)
  const others = Array.from({ length: 20 }, (_, index) => run(`${index}`))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await statuses(others)).toEqual(Array(20).fill(200))
  const reason = new Error('enough')
  leave.abort(reason)
  await expect(refused).rejects.toBe(reason)
})

test('after refusals calls come back a few at once', async () => {
  const pending: (() => void)[] = []
  let isBusy = true
  const answer = () => (isBusy ? busy() : new Promise<Answered>((resolve) => void pending.push(() => resolve(ok))))
  const { run } = setUp(answer, { patienceMs: Number.POSITIVE_INFINITY })
  const runs = Array.from({ length: 32 }, (_, index) => run(`${index}`))
  await vi.advanceTimersByTimeAsync(120_000)
  isBusy = false
  await vi.advanceTimersByTimeAsync(60_000)
  const widths: number[] = []
  while (pending.length > 0) {
    widths.push(pending.length)
    for (const release of pending.splice(0)) release()
    await vi.advanceTimersByTimeAsync(1)
  }
  expect(widths).toEqual([1, 2, 4, 8, 16, 1])
  expect(await statuses(runs)).toEqual(Array(32).fill(200))
})

test('an abort ends a wait at once with its reason, and the others go on', async () => {
  const { run, waits } = setUp((_, now) => (now < 60_000 ? busy('60') : ok))
  const leave = new AbortController()
  const [left, stayed] = [run('left', leave.signal), run('stayed')]
  await vi.advanceTimersByTimeAsync(10)
  const reason = new Error('Ctrl-C')
  leave.abort(reason)
  await expect(left).rejects.toBe(reason)
  expect(waits.get('left')).toEqual([true, false])
  await vi.advanceTimersByTimeAsync(60_000)
  expect((await stayed).status).toBe(200)
  await expect(run('late', leave.signal)).rejects.toBe(reason)
})

test('no more calls are under way than the gate has room for, and waiting for room is not waiting for load', async () => {
  const pending: (() => void)[] = []
  const { run, waits } = setUp(() => new Promise<Answered>((resolve) => void pending.push(() => resolve(ok))), { maxInFlight: 3 })
  const runs = Array.from({ length: 7 }, (_, index) => run(`${index}`))
  await vi.advanceTimersByTimeAsync(1)
  for (const width of [3, 3, 1]) {
    expect(pending).toHaveLength(width)
    for (const release of pending.splice(0)) release()
    await vi.advanceTimersByTimeAsync(1)
  }
  expect(await statuses(runs)).toEqual(Array(7).fill(200))
  expect(waits.size).toBe(0)
})

test('a call that leaves as its turn comes takes no place with it', async () => {
  for (let microtasks = 0; microtasks < 12; microtasks++) {
    const first = Promise.withResolvers<Answered>()
    const { run } = setUp((call) => (call === 'first' ? first.promise : ok), { maxInFlight: 1 })
    const leave = new AbortController()
    const before = run('first')
    const leaving = run('leaving', leave.signal).catch(() => ok)
    first.resolve(ok)
    for (let count = 0; count < microtasks; count++) await Promise.resolve()
    leave.abort(new Error('enough'))
    expect(await statuses([before, leaving, run('last')])).toEqual([200, 200, 200])
  }
})

test('a call that throws gives its place back', async () => {
  const { run } = setUp(
    (call) => {
      if (call === 'broken') throw new Error('lost')
      return ok
    },
    { maxInFlight: 1 },
  )
  const [broken, next] = [run('broken'), run('next')]
  await expect(broken).rejects.toThrow('lost')
  expect((await next).status).toBe(200)
})

test.each([
  [429, null, true],
  [529, null, true],
  [503, null, false],
  [503, '5', true],
  [502, 'Wed, 21 Oct 2015 07:28:00 GMT', true],
  [503, 'later', false],
  [500, '5', false],
  [200, '5', false],
])('status %i with Retry-After %s is a refusal for load: %s', (status, retryAfter, expected) => {
  expect(isRefusedForLoad({ status, retryAfter })).toBe(expected)
})
