import { appendFile, mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Trajectory } from '@aworld-train/core'
import { openCassette } from '@aworld-train/http'
import { afterAll, expect, test, vi } from 'vitest'
import { createGateway, type FrozenRoute } from '../index.ts'
import { sessionRequest } from '../testing/start-gateway.ts'
import { say, startThirdParty } from '../testing/third-party.ts'
import { requestKey } from './canonical-request.ts'

const directory = await mkdtemp(join(tmpdir(), 'cassette-test-'))
afterAll(() => rm(directory, { recursive: true }))
const at = (name: string) => join(directory, name)

/** Runs some rollouts one after another. Each asks the judge the same question twice and another one once. */
async function run(url: string, cassette: FrozenRoute['cassette'], rollouts: readonly string[], stream: boolean) {
  const judge: FrozenRoute = { kind: 'frozen', baseUrl: url, dialect: 'chat-completions', model: 'judge', apiKey: 'secret-key', cassette }
  const gateway = await createGateway({ models: { judge }, seed: 1 })
  const answers: string[] = []
  const turns: Trajectory['turns'] = []
  const failures: (string | undefined)[] = []
  for (const [sample, rollout] of rollouts.entries()) {
    const session = gateway.open(sessionRequest({ rollout, sample, agents: [{ name: 'agent', trainable: false, model: 'judge' }] }))
    for (const content of ['same', 'same', 'other']) {
      const response = await fetch(`${session.endpoint('agent').baseUrl}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ stream, user: rollout, messages: [{ role: 'tool', tool_call_id: `call_${rollout}`, content }] }),
      })
      answers.push(`${response.status} ${response.headers.get('content-type')} ${await response.text()}`)
    }
    failures.push((session.failure() as { code?: string } | null)?.code)
    turns.push(...(await session.close()).flatMap((trajectory) => trajectory.turns))
  }
  await gateway.close()
  return { answers, turns: turns.map(({ message, usage, cost, model }) => ({ message, usage, cost, model })), failures }
}

for (const stream of [false, true]) {
  test(`a run is repeated without its third party, under other rollout keys and ids (stream: ${stream})`, async () => {
    const path = at(`repeat-${stream}.jsonl`)
    const party = await startThirdParty((call, response, index) => say(call, response, `answer ${index}`))
    const recorded = await run(party.url, { path, mode: 'record' }, ['run-1-a', 'run-1-b'], stream)
    expect(party.calls).toHaveLength(6)
    await party[Symbol.asyncDispose]()
    expect(await readFile(path, 'utf8')).not.toContain('secret-key')

    const repeated = await run(party.url, { path, mode: 'replay' }, ['run-2-a', 'run-2-b'], stream)
    expect(repeated).toEqual(recorded)
    expect(new Set(recorded.answers).size).toBe(6)
    expect(recorded.answers[0]).toMatch(stream ? /^200 text\/event-stream/ : /^200 application\/json/)

    const longer = await run(party.url, { path, mode: 'replay' }, ['x', 'y', 'z'], stream)
    expect(longer.failures).toEqual([undefined, undefined, 'FROZEN_REPLAY_MISSING'])
    expect(longer.answers.slice(0, 6)).toEqual(recorded.answers)
  })
}

test('recording goes on where a crash cut the last line off, and replaying passes over it', async () => {
  const path = at('torn.jsonl')
  const first = await openCassette({ path, mode: 'record', repeats: 'in-order' })
  for (let index = 0; index < 3; index++) {
    await first.add('k', { status: 200, contentType: 'application/json', text: `{"n":${index}} ü\n` })
  }
  await first.close()
  const whole = (await readFile(path)).length
  for (const cut of [1, 2, 30]) {
    await truncate(path, whole - cut)
    const replayed = await openCassette({ path, mode: 'replay', repeats: 'in-order' })
    expect((await replayed.find('k', 1))?.text).toBe('{"n":1} ü\n')
    expect(await replayed.find('k', 2)).toBeNull()
    await replayed.close()
    const again = await openCassette({ path, mode: 'record', repeats: 'in-order' })
    await again.add('k', { status: 200, contentType: 'application/json', text: '{"n":2} ü\n' })
    expect((await readFile(path)).length).toBe(whole)
    await again.close()
  }
})

test('a file that is damaged in its middle is refused, and one that is missing cannot be replayed', async () => {
  const path = at('damaged.jsonl')
  await writeFile(path, '{"version":1,"key":"a"\n')
  await appendFile(path, '{"version":1,"key":"a","occurrence":0,"status":200,"contentType":"","text":""}\n')
  await expect(openCassette({ path, mode: 'replay', repeats: 'in-order' })).rejects.toMatchObject({
    code: 'STORE_CORRUPT',
    message: expect.stringContaining('Line 1'),
  })
  await expect(openCassette({ path: at('none'), mode: 'replay', repeats: 'in-order' })).rejects.toMatchObject({
    code: 'FROZEN_REPLAY_MISSING',
  })
  await expect(openCassette({ path: at('no/folder'), mode: 'record', repeats: 'in-order' })).rejects.toMatchObject({ code: 'STORE_FAILED' })
})

test('many answers at once are all on disk, in lines', async () => {
  const path = at('many.jsonl')
  const cassette = await openCassette({ path, mode: 'record', repeats: 'in-order' })
  await Promise.all(
    Array.from({ length: 500 }, (_, index) => cassette.add(`k${index % 7}`, { status: 200, contentType: '', text: `${index}` })),
  )
  await cassette.close()
  const replayed = await openCassette({ path, mode: 'replay', repeats: 'in-order' })
  for (let index = 0; index < 500; index++) expect((await replayed.find(`k${index % 7}`, Math.floor(index / 7)))?.text).toBe(`${index}`)
  await replayed.close()
})

test('the key of a request says what is asked and from where in the run, not by whom', () => {
  const origin = { taskId: 't', sample: 1, agent: 'a', model: 'm' }
  const call = (id: string) => ({
    messages: [{ tool_calls: [{ id, function: { name: 'f' } }] }, { role: 'tool', tool_call_id: id }],
    temperature: 0,
  })
  const key = requestKey(origin, call('call_1'))
  expect(requestKey(origin, { temperature: 0, user: 'u', messages: call('call_9').messages })).toBe(key)
  expect(requestKey(origin, { ...call('call_1'), temperature: 0.5 })).not.toBe(key)
  expect(
    requestKey(origin, {
      messages: [{ tool_calls: [{ id: 'x', function: { name: 'f' } }] }, { role: 'tool', tool_call_id: 'y' }],
      temperature: 0,
    }),
  ).not.toBe(key)
  for (const other of [{ taskId: 'u' }, { sample: 2 }, { agent: 'b' }, { model: 'n' }])
    expect(requestKey({ ...origin, ...other }, call('call_1'))).not.toBe(key)
})

test('a request that failed and was made again is answered in the repetition', async () => {
  const path = at('retried.jsonl')
  const party = await startThirdParty((call, response, index) => {
    if (index === 0) response.writeHead(500).end('oops')
    else say(call, response, `answer ${index}`)
  })
  const recorded = await run(party.url, { path, mode: 'record' }, ['a'], false)
  expect(recorded.answers.map((answer) => answer.slice(0, 3))).toEqual(['502', '200', '200'])
  await party[Symbol.asyncDispose]()
  const repeated = await run(party.url, { path, mode: 'replay' }, ['b'], false)
  expect(repeated.answers[0]).toBe(recorded.answers[1])
})

test('an answer that could not be written leaves neither a torn line nor a gap', async () => {
  const path = at('full.jsonl')
  const cassette = await openCassette({ path, mode: 'record', repeats: 'in-order' })
  const answer = (text: string) => ({ status: 200, contentType: '', text })
  await cassette.add('k', answer('first'))
  const probe = await open(path)
  const handle = Object.getPrototypeOf(probe) as { datasync(): Promise<void> }
  await probe.close()
  const failing = vi.spyOn(handle, 'datasync').mockRejectedValueOnce(new Error('ENOSPC: no space left on device'))
  await expect(cassette.add('k', answer('lost'))).rejects.toMatchObject({ code: 'STORE_FAILED' })
  failing.mockRestore()
  await cassette.add('k', answer('second'))
  await cassette.close()
  const replayed = await openCassette({ path, mode: 'replay', repeats: 'in-order' })
  expect([(await replayed.find('k', 0))?.text, (await replayed.find('k', 1))?.text, await replayed.find('k', 2)]).toEqual([
    'first',
    'second',
    null,
  ])
  await replayed.close()
})
