// Owns a live run and writes an event about every tenth of a second, as a trainer would: node write-events.ts EVENTS BEFORE
// sends the path of the run, begins when a message comes back, and sends the times of the events once they are written.
import { once } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { writeRun } from '../../packages/dashboard/src/testing/write-run.ts'

const [events, before] = process.argv.slice(2).map(Number) as [number, number]
const now = () => performance.timeOrigin + performance.now()
const perTurn = 1_000

await using run = await writeRun({ name: 'events', isLive: true })
const rollout = { rollout: 'train/3/0/0', attempt: 0, split: 'train' }
for (let written = 0; written < before; written += perTurn) {
  for (let event = 0; event < perTurn; event++) run.store.appendEvent({ type: 'rollout-start', at: now(), ...rollout })
  await setImmediate()
}
// The log is written a little later.
await sleep(1_000)
process.send!(run.path)
await once(process, 'message')
const times: number[] = []
for (let event = 1; event <= events; event++) {
  // Gaps between 1 and 200 ms that no clock of the dashboard is in step with.
  await sleep(1 + ((event * 73) % 200))
  const at = now()
  times.push(at)
  // The steps of the written run end with the third.
  run.store.appendEvent({ type: 'step-start', at, step: 3 + event, steps: 3 + events })
}
await sleep(1_000)
process.send!(times)
await once(process, 'message')
