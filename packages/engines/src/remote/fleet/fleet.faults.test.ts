import { setTimeout as sleep } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { toyLogprob, toyModel } from '../testing/toy-policy.ts'
import { createToyVllm } from '../testing/vllm-server.ts'
import { createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { createWeightUpdater } from '../weights/weight-updater.ts'

/** Numbers in [0, 1) that are the same in every run. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

test('servers die and start again and weights change under many calls: what comes back is what those weights sampled', async () => {
  const random = createRandom(17)
  const servers = await Promise.all([createToyVllm(), createToyVllm(), createToyVllm()])
  for (const { state } of servers) state.delayMs = 1
  const engine: RemoteTokenEngine = await createVllmTokenEngine({
    replicas: servers.map(({ url }) => url),
    model: toyModel,
    streamInterval: 4,
    maxInFlight: 16,
    probeIntervalMs: 15,
    unavailableMs: 30_000,
  })
  const updater = createWeightUpdater({ fleet: engine.fleet, inFlight: 'keep' })
  const outcomes = { completed: 0, aborted: 0, failed: 0 }
  const ended = () => outcomes.completed + outcomes.aborted + outcomes.failed
  let busy = true

  async function rollout(index: number): Promise<void> {
    for (let turn = 0; turn < 12; turn++) {
      const controller = new AbortController()
      const hangUp = random() < 0.15 ? setTimeout(() => controller.abort(new Error('gone')), random() * 20) : undefined
      const call = toyCall({ affinity: `r${index}`, random: { seed: 1, task: `${index}`, sample: 0, turn } })
      try {
        const { tokenIds, logprobs, weightVersions, mixedVersions } = await engine.generate(call, controller.signal)
        outcomes.completed++
        expect(mixedVersions).toBeUndefined()
        for (const [at, id] of tokenIds.entries()) {
          const { version } = weightVersions.findLast(({ fromToken }) => fromToken <= at)!
          expect(logprobs[at]).toBeCloseTo(toyLogprob(version, 3 + at, id), 6)
        }
      } catch (error) {
        if (controller.signal.aborted && error === controller.signal.reason) outcomes.aborted++
        else {
          expect(error).toBeInstanceOf(TrainError)
          expect(['POLICY_UNAVAILABLE', 'POLICY_STALE_WEIGHTS']).toContain((error as TrainError).code)
          outcomes.failed++
        }
      }
      clearTimeout(hangUp)
      await sleep(random() * 10)
    }
  }

  async function trouble(): Promise<void> {
    for (let step = 1; busy; step++) {
      const server = servers[Math.floor(random() * servers.length)]!
      if (step % 2 === 0) {
        await server.die()
        await sleep(random() * 30)
        Object.assign(server.state, { label: 'default', weights: 0, paused: false })
        await server.rise()
      } else await updater.publish({ version: step, directory: `/weights-${step}` }).catch(() => {})
      // Trouble comes as often as calls succeed, so that a slow machine has no more of it.
      const next = outcomes.completed + random() * 8
      while (busy && outcomes.completed < next && engine.fleet.replicas().some(({ out }) => out === null)) await sleep(1)
    }
  }

  const troubles = trouble()
  await Promise.all(Array.from({ length: 24 }, (_, index) => rollout(index)))
  busy = false
  await troubles
  expect(outcomes.completed).toBeGreaterThan(50)
  expect(ended()).toBe(24 * 12)
  expect(engine.fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })
  // All are healthy again, with the last published weights. A server that has just restarted may not have been noticed yet.
  await expect
    .poll(() => [...engine.fleet.replicas().map(({ out }) => out), ...servers.map(({ state }) => state.weights)])
    .toEqual([null, null, null, ...Array(3).fill(engine.weightVersion())])
  expect(servers.map(({ state }) => state.running())).toEqual([0, 0, 0])
  await engine.close()
  await Promise.all(servers.map((server) => server.close()))
})
