import { expect, test } from 'vitest'
import { quickFleet, send } from '../testing/fleet-calls.ts'
import { sendJson } from '../testing/http-server.ts'
import { createToyVllm } from '../testing/vllm-server.ts'
import { createWeightUpdater } from '../weights/weight-updater.ts'

test('one server is given as many calls as it may have; probes and updates pass them by and change no count', async () => {
  const count = 400
  const server = await createToyVllm()
  const answers: (() => void)[] = []
  let probes = 0
  server.answer((request, response) => {
    if (request.path === '/health') probes++
    if (request.path === '/answer') answers.push(() => sendJson(response, 200, { fine: true }))
    else return server.route(request, response)
  })
  const fleet = await quickFleet([server.url], { maxInFlight: count })
  const calls = Array.from({ length: count + 1 }, (_, index) => send(fleet, { affinity: `${index}` }))
  await expect.poll(() => answers.length).toBe(count)
  const before = probes
  await expect.poll(() => probes).toBeGreaterThan(before + 2)
  expect(fleet.counts()).toMatchObject({ inFlight: count, waiting: 1 })
  await createWeightUpdater({ fleet, inFlight: 'keep' }).publish({ version: 1, directory: '/weights-1' })
  expect(fleet.counts()).toMatchObject({ inFlight: count, waiting: 1 })
  for (const answer of answers.splice(0)) answer()
  await expect.poll(() => answers.length).toBe(1)
  for (const answer of answers) answer()
  const versions = (await Promise.all(calls)).map(({ outcome }) => outcome.weightVersions)
  expect(versions).toEqual([...Array.from({ length: count }, () => [0, 1]), [1]])
  expect(fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0, failures: 0 })
  await fleet.close()
  await server.close()
})
