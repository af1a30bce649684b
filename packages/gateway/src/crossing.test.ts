import { expect, test } from 'vitest'
import { post, sessionRequest, startGateway } from './testing/start-gateway.ts'

test('no part of one URL opens another: all pairs of rollouts, attempts and agents get the answer of an unknown URL', async () => {
  await using started = await startGateway({ say: () => 'x' })
  const agents = [
    { name: 'a', trainable: true },
    { name: 'b', trainable: true },
  ]
  const identities = ['r1', 'r2', 'r.3'].flatMap((rollout) => [0, 1].map((attempt) => ({ rollout, attempt })))
  const sessions = identities.map((identity) => started.gateway.open(sessionRequest({ ...identity, agents })))
  const endpoints = sessions.flatMap((session) => agents.map(({ name }) => session.endpoint(name)))
  const split = ({ apiKey }: { apiKey: string }) =>
    [apiKey.slice(0, apiKey.lastIndexOf('.')), apiKey.slice(apiKey.lastIndexOf('.') + 1)] as const
  const ask = async (capability: string) => {
    const baseUrl = `${started.gateway.url}/r/${capability}/v1`
    const answer = await post({ baseUrl, apiKey: '', model: '' }, { messages: [{ role: 'user', content: 'x' }] })
    return { status: answer.status, text: answer.text }
  }
  const unknown = await ask(`nobody.0.a.${'A'.repeat(22)}`)
  expect(unknown.status).toBe(404)
  for (const [index, mine] of endpoints.entries()) {
    for (const [other, theirs] of endpoints.entries()) {
      const answer = await ask(`${split(mine)[0]}.${split(theirs)[1]}`)
      if (index === other) expect(answer.status).toBe(200)
      else expect(answer).toEqual(unknown)
    }
  }
  const [closed, ...open] = sessions
  await closed!.close()
  expect(await ask(endpoints[0]!.apiKey)).toEqual(unknown)
  for (const session of open) {
    const trajectories = await session.close()
    expect(trajectories.map(({ turns }) => turns.length)).toEqual([1, 1])
  }
})
