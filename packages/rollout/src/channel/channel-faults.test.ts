import { channelCloseCodes, encodeChannelFrame } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../testing/memory-store.ts'
import { heldSampler, sampled, startChannel, until, writeModel } from './start-channel.test-support.ts'

let model: Awaited<ReturnType<typeof writeModel>>
beforeAll(async () => {
  model = await writeModel()
})
afterAll(() => model[Symbol.asyncDispose]())

describe('a trainer client is rejected', () => {
  const cases = [
    ['of another protocol', { protocol: 3 }, 'CHANNEL_PROTOCOL'],
    [
      'that renders with other arguments than the first',
      { check: { messages: [{ role: 'user', content: 'Hello.' }], tools: null, templateArguments: { enable_thinking: false } } },
      'MODEL_MISMATCH',
    ],
    ['with another vocabulary', { model: { name: 'tiny', vocabularySize: 300, stopTokenIds: [257] } }, 'MODEL_MISMATCH'],
    [
      'whose check is another conversation',
      { check: { messages: [{ role: 'user', content: 'Hallo.' }], tools: null, templateArguments: {} } },
      'TEMPLATE_MISMATCH',
    ],
  ] as const
  test.each(cases)('%s', async (_name, hello, code) => {
    await using started = await startChannel(model)
    await started.connect()
    const second = started.connect({ hello: { worker: 'second', ...hello } as never })
    await expect(second).rejects.toMatchObject({ code })
    expect(started.channel.counts()).toMatchObject({ rejected: 1, connections: 1 })
  })

  test('not where its model is another and only older starts of its run are there: theirs ends', async () => {
    await using started = await startChannel(model)
    const old = await started.connect({ sample: () => 'never' })
    old.submit({}).catch(() => {})
    const limits = { maxPromptTokens: 100, maxResponseTokens: 100, contextLength: 150 }
    await expect(started.connect({ hello: { run: 'another', limits } })).rejects.toMatchObject({ code: 'MODEL_MISMATCH' })
    const fresh = await started.connect({ hello: { incarnation: 'second', limits } })
    expect((await old.closed).code).toBe(channelCloseCodes.rejected)
    expect(started.engine.model.contextLength).toBe(150)
    expect((await fresh.submit({})).status).toBe('done')
  })

  test('whose tokenizer differs, with the first id that does and both tails', async () => {
    await using started = await startChannel(model)
    const renderedIds = model.renderedIds.slice()
    renderedIds[4] = 65
    renderedIds[5] = 1_000_000
    await expect(started.connect({ renderedIds })).rejects.toMatchObject({
      code: 'TEMPLATE_MISMATCH',
      message: expect.stringMatching(/the first that differs is 4\. The trainer has … \[.*65.*\] ".*A.*", the service … \[/s),
    })
    // Nothing of the rejected trainer stays: one that renders alike is welcome.
    expect((await started.connect()).welcome.needFiles).toBe(false)
  })

  test('without its token, or with a wrong one, before there is a WebSocket', async () => {
    await using started = await startChannel(model)
    await expect(started.connect({ token: undefined })).rejects.toMatchObject({ status: 401 })
    await expect(started.connect({ token: 'wrong' })).rejects.toMatchObject({ status: 401 })
    expect(started.channel.counts().connections).toBe(0)
  })

  test('not for what takes long on our side', async () => {
    const store = memoryStore()
    const setState = async () => await new Promise<void>((resolve) => setTimeout(resolve, 4_000))
    await using started = await startChannel(model, { store: { ...store, setState }, limits: { helloMs: 3_000 } })
    expect((await started.connect()).welcome.protocol).toBe(2)
  })

  test('that says nothing', async () => {
    await using started = await startChannel(model, { limits: { helloMs: 50 } })
    const { WebSocket } = await import('ws')
    const socket = new WebSocket(`${started.server.url.replace('http', 'ws')}/v1/channel`, { headers: { authorization: 'Bearer secret' } })
    const code = await new Promise((resolve) => socket.on('close', resolve))
    expect(code).toBe(channelCloseCodes.rejected)
  })
})

describe('a connection is closed', () => {
  const garbage: readonly (readonly [string, string | Uint8Array])[] = [
    ['text that is no JSON', 'hello?'],
    ['JSON that is no object', '[1]'],
    ['a message of no known type', '{"type":"dance"}'],
    ['a message with a strange member', '{"type":"cancel","key":"a","reason":"b","why":1}'],
    ['bytes that are no frame', Uint8Array.of(1, 2)],
    ['a header beyond its frame', Uint8Array.of(255, 255, 255, 127, 0, 0, 0, 0)],
    ['a version below 0', encodeChannelFrame({ type: 'weights', version: -1 })],
    ['arrays without a list of them', Uint8Array.of(2, 0, 0, 0, 123, 125, 0, 0)],
    ['files that nobody asked for', encodeChannelFrame({ type: 'files', files: [{ name: 'tokenizer.json' }] })],
  ]
  test.each(garbage)('after %s, with the reason and 4001', async (_name, data) => {
    await using started = await startChannel(model)
    const client = await started.connect()
    client.sendRaw(data)
    expect((await client.closed).code).toBe(channelCloseCodes.unreadable)
    expect(client.heard.at(-1)).toMatchObject({ type: 'error', message: expect.any(String) })
    expect((await started.connect()).welcome.protocol).toBe(2)
  })

  test('after a second hello', async () => {
    await using started = await startChannel(model)
    const client = await started.connect()
    client.send(client.hello, { renderedIds: model.renderedIds })
    expect((await client.closed).code).toBe(channelCloseCodes.unreadable)
  })

  test('by a frame above the limit, before it is read', async () => {
    await using started = await startChannel(model, { limits: { maxFrameBytes: 10_000 } })
    const client = await started.connect()
    client.sendRaw(new Uint8Array(10_001))
    expect((await client.closed).code).toBe(1009)
  })

  test('where the client is silent for too long', async () => {
    await using started = await startChannel(model, { limits: { pingMs: 500, deadMs: 4_000 } })
    const client = await started.connect()
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    expect(started.channel.counts().connections).toBe(1)
    client.pauseReading()
    await until(() => started.channel.counts().connections === 0)
  })

  test('where the client does not read what it is sent', async () => {
    await using started = await startChannel(model, { limits: { maxBufferedBytes: 1_000 } })
    const client = await started.connect({ sample: () => 'never' })
    client.pauseReading()
    // Each takes six characters in the key, which every answer repeats.
    const uid = 'ü'.repeat(500)
    for (let sample = 0; sample < 10_000 && started.channel.counts().connections > 0; sample += 200) {
      for (let more = 0; more < 200; more++) void client.submit({ uid, sample: sample + more })
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await until(() => started.channel.counts().connections === 0)
    expect(started.warnings.map(({ code }) => code)).toContain('CHANNEL_LOST')
  })
})

describe('a lost connection', () => {
  test('in mid-call: the rollout waits, the call is sent again to the same worker, the rows are whole', async () => {
    await using started = await startChannel(model, { calls: 2 })
    const first = heldSampler()
    const client = await started.connect({ sample: first.sample })
    client.submit({}).catch(() => {})
    await until(() => first.calls.length === 1)
    client.terminate()
    await until(() => started.channel.counts().connections === 0)
    const second = await started.connect()
    const result = await second.submit({})
    expect(result).toMatchObject({ status: 'done', turns: 2, rows: [{ length: 11 }] })
    expect(second.heard.map(({ type }) => type)).toEqual(['welcome', 'ready', 'queued', 'started', 'generate', 'generate', 'result'])
    expect(started.channel.counts()).toMatchObject({ lost: 1, reconnects: 1 })
    expect(started.store.episode(result.key)?.attempt).toBe(0)
  })

  test('whose worker is back before we know of it: the old one is closed, the call is sent down the new one', async () => {
    await using started = await startChannel(model)
    const first = heldSampler()
    const client = await started.connect({ sample: first.sample })
    client.submit({}).catch(() => {})
    await until(() => first.calls.length === 1)
    const second = await started.connect()
    expect((await client.closed).code).toBe(channelCloseCodes.replaced)
    expect((await second.submit({})).status).toBe('done')
  })

  test('is not waited for beyond the grace period; what was not submitted again is cancelled', async () => {
    await using started = await startChannel(model, { graceMs: 5_000 })
    const first = heldSampler()
    const client = await started.connect({ sample: first.sample })
    for (const sample of [0, 1]) client.submit({ sample }).catch(() => {})
    await until(() => first.calls.length === 2)
    client.terminate()
    await until(() => started.channel.counts().connections === 0)
    const later = heldSampler()
    const second = await started.connect({ sample: later.sample })
    const result = second.submit({ sample: 0 })
    await until(() => started.outcomes.length === 1)
    expect(started.outcomes).toMatchObject([{ key: second.keyOf({ sample: 1 }), outcome: 'lost' }])
    expect(started.channel.counts().open).toBe(1)
    later.release(sampled)
    expect((await result).status).toBe('done')
    await until(() => started.service.counts().running === 0)
    expect(started.service.counts()).toMatchObject({ cancelled: 1, done: 1 })
  })

  test('after the result: it is sent again', async () => {
    await using started = await startChannel(model)
    const client = await started.connect()
    const result = await client.submit({})
    client.terminate()
    const second = await started.connect({ sample: () => 'never' })
    expect((await second.submit({})).rows).toEqual(result.rows)
  })

  test('a service that stops fails nothing: what it cut off and what comes late is not answered', async () => {
    await using started = await startChannel(model)
    const hold = heldSampler()
    const client = await started.connect({ sample: hold.sample })
    client.submit({}).catch(() => {})
    await until(() => hold.calls.length === 1)
    await started.service.close()
    client.submit({ sample: 1 }).catch(() => {})
    client.send({ type: 'refused', key: 'of nobody', error: { code: 'X', message: '', retryable: false } })
    client.send({ type: 'refused', key: client.keyOf({}), error: { code: 'X', message: '', retryable: false } })
    await until(() => started.outcomes.length === 1)
    expect(client.heard.map(({ type }) => type)).toEqual(['welcome', 'ready', 'queued', 'started', 'generate', 'abort'])
  })

  test('a restarted service gives what is finished and begins the rest anew', async () => {
    const store = memoryStore()
    let port: number
    const hold = heldSampler()
    {
      await using started = await startChannel(model, { store })
      port = Number(new URL(started.server.url).port)
      const client = await started.connect({ sample: (call) => (call.key.endsWith('/0') ? sampled : hold.sample(call)) })
      await client.submit({ sample: 0 })
      const cutOff = client.submit({ sample: 1 })
      await until(() => hold.calls.length === 1)
      await started.server.close()
      await expect(cutOff).rejects.toMatchObject({ code: 'CHANNEL_LOST' })
      expect((await client.closed).code).toBe(1001)
    }
    await using started = await startChannel(model, { store, port })
    const calls: string[] = []
    const client = await started.connect({
      sample({ key }) {
        calls.push(key)
        return sampled
      },
    })
    const [kept, again] = await Promise.all([client.submit({ sample: 0 }), client.submit({ sample: 1 })])
    expect([kept.status, again.status]).toEqual(['done', 'done'])
    expect(calls).toEqual([client.keyOf({ sample: 1 })])
    expect(store.episode(again.key)?.attempt).toBe(1)
  })
})

describe('a newer start of a run', () => {
  test('supersedes the older one: its rollouts are cancelled, it is told so, and stays out after a restart', async () => {
    const store = memoryStore()
    {
      await using started = await startChannel(model, { store })
      const hold = heldSampler()
      const old = await started.connect({ sample: hold.sample })
      old.submit({}).catch(() => {})
      await until(() => hold.calls.length === 1)
      const other = await started.connect({ hello: { run: 'another run' } })
      const fresh = await started.connect({ hello: { incarnation: 'second' } })
      expect((await old.closed).code).toBe(channelCloseCodes.rejected)
      expect(old.heard.at(-1)).toMatchObject({ type: 'rejected', error: { code: 'CHANNEL_SUPERSEDED' } })
      await until(() => started.service.counts().running === 0)
      expect(started.outcomes).toMatchObject([{ outcome: 'superseded', incarnation: 'first' }])
      await expect(started.connect()).rejects.toMatchObject({ code: 'CHANNEL_SUPERSEDED' })
      expect((await fresh.submit({})).key).toBe('run/second/train/1/group-0/0')
      expect((await other.submit({})).status).toBe('done')
    }
    await using started = await startChannel(model, { store })
    await expect(started.connect()).rejects.toMatchObject({ code: 'CHANNEL_SUPERSEDED' })
  })
})

test('hundreds of idle connections are served and close with the server', async () => {
  await using started = await startChannel(model)
  const clients = await Promise.all(Array.from({ length: 300 }, (_, index) => started.connect({ hello: { worker: `worker-${index}` } })))
  expect(started.channel.counts().connections).toBe(300)
  expect((await clients[150]!.submit({})).status).toBe('done')
  await started.server.close()
  expect((await clients[299]!.closed).code).toBe(1001)
})
