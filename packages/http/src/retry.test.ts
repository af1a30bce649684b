import { expect, test } from 'vitest'
import { isUnsent, type RetryRule, retryPauseMs, retryRules, type Sent, sendWithRetries } from './retry.ts'

const status = (code: number, retryAfter: string | null = null) => ({ answer: { status: code, retryAfter } })
const error = (code: string) => ({ error: Object.assign(new Error(code), { code }) })
const pauses = (rule: RetryRule, sent: Sent<{ readonly status: number }>, retries?: number) =>
  Array.from({ length: 8 }, (_, tried) => retryPauseMs(rule, sent, tried, retries))
    .filter((pause) => pause !== null)
    .slice(0, 7)

const { outward, thirdParty, agentModel, sampling, serverControl, trainingService, environment, rolloutService } = retryRules
const doubled = (first: number, count: number) => Array.from({ length: count }, (_, index) => first * 2 ** index)

test.each<[string, RetryRule, Sent<{ readonly status: number }>, number | undefined, readonly number[]]>([
  ['a busy page', outward, status(503), undefined, [200, 600]],
  ['a busy page that names a time', outward, status(429, '7'), undefined, [7_000, 7_000]],
  ['a page that asks for more than a minute', outward, status(429, '61'), undefined, []],
  ['a page that is broken', outward, status(500), undefined, []],
  ['a page that nobody serves', outward, error('ECONNREFUSED'), undefined, [200, 600]],
  ['a page whose answer was lost', outward, error('ECONNRESET'), undefined, []],
  ['a third party that is away', thirdParty, status(503), undefined, [500, 1_000]],
  ['a third party that is away, without retries', thirdParty, status(502), 0, []],
  ['a third party that names a time', thirdParty, status(503, '7'), undefined, []],
  ['a busy third party', thirdParty, status(529), undefined, []],
  ['a third party that cannot be reached, without retries', thirdParty, error('ENOTFOUND'), 0, [500]],
  ['a third party that cannot be reached', thirdParty, error('ECONNREFUSED'), 7, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]],
  ['a third party that broke off', thirdParty, error('UND_ERR_SOCKET'), undefined, []],
  ['a model that cannot be reached', agentModel, error('UND_ERR_CONNECT_TIMEOUT'), undefined, [100, 200]],
  ['a model whose answer was lost', agentModel, error('ECONNRESET'), undefined, []],
  ['a busy model, which the SDK asks again', agentModel, status(429), undefined, []],
  ['a sampling server that has not begun', sampling, status(502), undefined, [0, 0]],
  ['a sampling server that fails', sampling, status(500), undefined, []],
  ['a control call that may take effect once', serverControl, status(500), undefined, []],
  ['a control call that may take effect twice', serverControl, status(500), 3, [100, 200, 400]],
  ['a lost control call that may take effect twice', serverControl, error('ECONNRESET'), 3, [100, 200, 400]],
  ['a control call that was refused', serverControl, status(404), 3, []],
  ['an overloaded training service', trainingService, status(429, '1'), undefined, [...doubled(250, 5), 8_000, 8_000]],
  ['a training service whose answer was lost', trainingService, error('UND_ERR_SOCKET'), undefined, [...doubled(250, 5), 8_000, 8_000]],
  ['a busy environment', environment, status(503, '2'), undefined, Array(7).fill(2_000)],
  ['a busy environment that names no pause', environment, status(429, '0'), undefined, Array(7).fill(100)],
  ['an environment that may have begun', environment, status(503), undefined, []],
  ['an environment that fails', environment, status(500, '1'), undefined, []],
  ['an environment that cannot be reached', environment, error('ECONNREFUSED'), undefined, []],
  ['a rollout service that is full', rolloutService, status(503), undefined, doubled(100, 6)],
  ['a rollout service that is overloaded in another way', rolloutService, status(502), undefined, []],
  ['a rollout service that restarts', rolloutService, error('ECONNRESET'), undefined, doubled(100, 6)],
  ['a rollout service of a wrong name', rolloutService, error('ENOTFOUND'), undefined, []],
])('%s', (_, rule, sent, retries, expected) => {
  expect(pauses(rule, sent, retries)).toEqual(expected)
})

const quick: RetryRule = { ...retryRules.thirdParty, firstMs: 1, retries: 2 }

test('the last answer or the last error comes back, and answers before it are freed', async () => {
  const freed: number[] = []
  let sent = 0
  const busy = async () => ({ status: 502, number: sent++ })
  const options = { discard: async ({ number }: { readonly number: number }) => void freed.push(number) }
  expect(await sendWithRetries(quick, busy, options)).toEqual({ status: 502, number: 2 })
  expect(freed).toEqual([0, 1])

  const refused = error('ECONNREFUSED')
  const outcomes = [refused, refused, refused].map((each, index) => ({ error: Object.assign(each.error, { index }) }))
  await expect(sendWithRetries(quick, async () => Promise.reject(outcomes.shift()!.error))).rejects.toBe(refused.error)
  expect(outcomes).toEqual([])
  expect(isUnsent(refused.error)).toBe(true)
})

test('what is not done within the patience is not begun', async () => {
  let sent = 0
  const busy = async () => ({ status: 503, retryAfter: '30', number: sent++ })
  expect(await sendWithRetries(retryRules.environment, busy, { patienceMs: 20_000 })).toMatchObject({ number: 0 })
})

test('an abort ends a pause and a request with its reason', async () => {
  const reason = new Error('enough')
  const paused = new AbortController()
  const busy = async () => {
    setImmediate(() => paused.abort(reason))
    return { status: 503, retryAfter: '3600' }
  }
  await expect(sendWithRetries(retryRules.environment, busy, { signal: paused.signal })).rejects.toBe(reason)
  const lost = async () => Promise.reject(error('ECONNRESET').error)
  await expect(sendWithRetries(quick, lost, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})
