import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRolloutClient, type RolloutClient } from '@aworld-train/rollout'
import { readRun } from '@aworld-train/store'
import { request } from 'undici'
import { startScript } from '../gateway/peers.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { toRequest } from './load.ts'
import type { MemoryInUse, ServedRollouts } from './serve-rollouts.ts'

const groupSize = 8
const slots = 128
const repetitions = 200

interface State {
  readonly megabytes: number
  /** Bytes on disk of a sampled token; as many were read with each. */
  readonly bytesPerToken: number
  /** Milliseconds. */
  readonly status: readonly number[]
  readonly group: readonly number[]
}

/** Memory, disk and queries of a service after so many short rollouts, beside those after a fifth of them: `npm run bench -- executor rollouts [count]`. */
export const manyRollouts: BenchSuite = {
  async run(args) {
    const count = Number(args[0] ?? 100_000)
    await using upstream = await startScript<{ port: number }>('upstream.ts', ['--tokens=8'])
    await using served = await startScript<ServedRollouts>(
      '../executor/serve-rollouts.ts',
      [String(upstream.line.port), String(slots)],
      undefined,
      ['--expose-gc'],
    )
    const { url, path } = served.line
    const client = createRolloutClient({ url, connections: slots })
    try {
      const startedAt = performance.now()
      const few = count / 5
      await submit(client, 0, few)
      const first = await stateAfter(few)
      await submit(client, few, count)
      const last = await stateAfter(count)
      const seconds = (performance.now() - startedAt) / 1000
      const memory = spreadOf([last.megabytes])
      const size = spreadOf([last.bytesPerToken])
      const name = `after ${few}`
      const query = (measure: string, read: (state: State) => readonly number[]): BenchRow => {
        const ours = spreadOf(read(last))
        return {
          measure,
          unit: 'ms',
          better: 'lower',
          ours,
          peers: { [name]: compare(ours, spreadOf(read(first))) },
          bound: { atMost: 10 },
        }
      }
      return {
        rows: [
          {
            ...{ measure: 'heap and buffers in use', unit: 'MB', better: 'lower', ours: memory },
            ...{ peers: { [name]: compare(memory, spreadOf([first.megabytes])) }, bound: { atMost: 1.1, of: name } },
          },
          {
            ...{ measure: 'run directory', unit: 'bytes a sampled token', better: 'lower', ours: size },
            ...{ peers: { [name]: compare(size, spreadOf([first.bytesPerToken])) }, bound: { atMost: 1.05, of: name } },
          },
          query('status of a rollout over HTTP', ({ status }) => status),
          query('a group and its episodes', ({ group }) => group),
          { ...{ measure: 'rollouts', unit: 'rollouts/s', better: 'higher', ours: spreadOf([count / seconds]) }, peers: {} },
        ],
        notes: [
          `${count} rollouts of one model call, in groups of ${groupSize}, submitted over HTTP and waited for, ${slots} at once; every turn durable; queries are the median of ${repetitions}, all at random over what there is`,
        ],
      }
    } finally {
      await client.close()
    }

    async function stateAfter(finished: number): Promise<State> {
      // The last events are still being written.
      await sleep(1_000)
      served.child.send('memory')
      const [{ heap, buffers }] = (await once(served.child, 'message')) as [MemoryInUse]
      const run = readRun(path)
      try {
        const tokens = run.rolloutRows({ limit: finished }).rows.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0)
        const state = {
          megabytes: (heap + buffers) / 1e6,
          bytesPerToken: (await sizeOf(path)) / tokens,
          status: await timesOf(async () => {
            const { body } = await request(`${url}/v1/rollouts/${keyOf(anyBelow(finished))}`)
            await body.dump()
          }),
          group: await timesOf(async () => {
            for (const { key } of run.rolloutRows({ group: groupOf(anyBelow(finished)) }).rows) run.episode(key)
          }),
        }
        process.stdout.write(`${finished} rollouts: ${state.megabytes.toFixed(1)} MB, ${state.bytesPerToken.toFixed(2)} bytes a token\n`)
        return state
      } finally {
        run.close()
      }
    }
  },
}

const keyOf = (index: number) => `short-${index}`
const groupOf = (index: number) => `group-${Math.floor(index / groupSize)}`
const anyBelow = (count: number) => Math.floor(Math.random() * count)

async function submit(client: RolloutClient, from: number, to: number): Promise<void> {
  const { signal } = new AbortController()
  let next = from
  const slot = async () => {
    while (next < to) {
      const index = next++
      const { stopReason } = await client.run(toRequest(keyOf(index), '0', groupOf(index), index % groupSize), signal)
      if (stopReason !== 'completed') throw new Error(`Rollout ${keyOf(index)} ended as ${stopReason}.`)
    }
  }
  await Promise.all(Array.from({ length: slots }, slot))
}

async function timesOf(work: () => Promise<void>): Promise<number[]> {
  const times: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const startedAt = performance.now()
    await work()
    times.push(performance.now() - startedAt)
  }
  return times
}

async function sizeOf(path: string): Promise<number> {
  const files = (await readdir(path, { recursive: true, withFileTypes: true })).filter((each) => each.isFile())
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
