import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createJobsApi } from './jobs-api.ts'

/** A head node that gives submissions these answers, one after another. */
async function startHead(answers: readonly (readonly [status: number, text: string])[]) {
  const left = [...answers]
  const server = createServer((_request, response) => {
    const [status, text] = left.shift()!
    response.writeHead(status).end(text)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { api: createJobsApi(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), left }
}

const job = { submission_id: 'a', entrypoint: 'true', runtime_env: { env_vars: {} } }
const { signal } = new AbortController()

it('waits for the agent of a head node that has just started', async () => {
  const { api, left } = await startHead([
    [500, 'No available agent to submit job, please try again later.'],
    [200, '{ "submission_id": "a" }'],
  ])
  await api.submit(job, signal)
  expect(left).toEqual([])
})

it('takes any other answer for what it is', async () => {
  const { api } = await startHead([[500, 'Traceback']])
  await expect(api.submit(job, signal)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('500: Traceback'),
  })
})
