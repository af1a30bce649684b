import { expect, test } from 'vitest'
import { createProcess } from '../simulation/process.test-support.ts'
import { createVirtualTime } from '../simulation/virtual-time.test-support.ts'
import { runWorker } from './run-worker.ts'
import { testAgent } from './start-workers.test-support.ts'

test('a worker connects again where its hello has no answer, as when its coordinator vanished without a word', async () => {
  const time = createVirtualTime()
  const drain = new AbortController()
  const hellos: string[] = []
  const connect = async () => ({
    bufferedAmount: 0,
    send: (frame: string | Uint8Array) => void hellos.push(`${JSON.parse(String(frame)).type} at ${Math.floor(time.now())} s`),
    ping() {},
    close() {},
    terminate() {},
    on() {},
  })
  const options = { url: 'http://coordinator', name: 'worker', slots: 1, agent: testAgent, openExecutor: () => expect.unreachable() }
  const ended = runWorker({ ...options, signal: drain.signal, clock: createProcess(time).clock }, connect)
  for (let steps = 0; hellos.length < 2 && steps < 10; steps++) {
    await new Promise((resolve) => setImmediate(resolve))
    time.step()
  }
  expect(hellos).toEqual(['hello at 0 s', 'hello at 30 s'])
  drain.abort()
  await ended
})
