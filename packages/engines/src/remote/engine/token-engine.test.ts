import { afterEach, describe, expect, test } from 'vitest'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { createToySglang } from '../testing/sglang-server.ts'
import { toyModel } from '../testing/toy-policy.ts'
import { createToyVllm } from '../testing/vllm-server.ts'
import { createVllmTokenEngine } from '../vllm/vllm-engines.ts'

const signal = new AbortController().signal
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

describe.each(['generate', 'completions', 'sglang'] as const)('a token engine, %s', (kind) => {
  async function open() {
    const server = await (kind === 'sglang' ? createToySglang() : createToyVllm())
    const options = { replicas: [server.url], model: toyModel }
    const engine = await (kind === 'sglang' ? createSglangTokenEngine(options) : createVllmTokenEngine({ ...options, route: kind }))
    closers.push(
      () => engine.close(),
      () => server.close(),
    )
    const last = () => server.seen.findLast(({ method, json }) => method === 'POST' && 'stream' in json)!.json
    const params = () => (kind === 'completions' ? last() : last()['sampling_params']) as Record<string, unknown>
    return { engine, params }
  }
  const most = kind === 'sglang' ? 'max_new_tokens' : 'max_tokens'

  test('says how much of the prompt was cached', async () => {
    const { engine } = await open()
    expect((await engine.generate(toyCall(), signal)).cachedTokens).toBe(3)
  })

  test('asks for no more than the context holds', async () => {
    const { engine, params } = await open()
    const promptTokenIds = new Int32Array(250).fill(4)
    const { tokenIds } = await engine.generate(toyCall({ promptTokenIds }), signal)
    expect(params()[most]).toBe(6)
    expect(tokenIds.length).toBeLessThanOrEqual(6)
  })

  test('asks to stop at stop strings, and for the ids that make them', async () => {
    const { engine, params } = await open()
    await engine.generate(toyCall({ sampling: { ...toyCall().sampling, stop: ['\n\n'] } }), signal)
    const kept = kind === 'sglang' ? { no_stop_trim: true } : { include_stop_str_in_output: true }
    expect(params()).toMatchObject({ stop: ['\n\n'], ...kept, stop_token_ids: [63] })
    await engine.generate(toyCall(), signal)
    expect(params()).not.toHaveProperty('stop')
  })
})

test('an adapter that nobody loaded is said to be unknown', async () => {
  const server = await createToyVllm()
  const engine = await createVllmTokenEngine({ replicas: [server.url], model: toyModel })
  closers.push(
    () => engine.close(),
    () => server.close(),
  )
  await expect(engine.generate(toyCall({ policy: 'nobody' }), signal)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('nobody'),
  })
})
