import { expect, test } from 'vitest'
import { post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

type Sent = { role: string; content: string }

test('a session that keeps two turns holds no more, and its conversations go on', async () => {
  await using started = await startGateway({ say: (_request, call) => `Answer ${call}.` })
  const kept: string[][] = []
  const session = started.gateway.open(
    sessionRequest({ maxKeptTurns: 2, onTurn: async (_agent, turn) => void kept.push(turn.branchReasons.slice()) }),
  )
  const messages: Sent[] = []
  const ids = new Set<string>()
  for (let call = 0; call < 6; call++) {
    messages.push({ role: 'user', content: `Question ${call}?` })
    const { status, text, json } = await post(session.endpoint('agent'), { messages })
    expect(status, text).toBe(200)
    ids.add(json().id)
    messages.push(json().choices[0].message)
    expect(session.trajectories()[0]!.turns.length).toBeLessThanOrEqual(2)
  }
  expect(ids.size).toBe(6)
  expect(messages.at(-1)!.content).toMatch(/^Answer \d\.$/)
  // The second turn of each record continues the sampled ids; the first of each begins a tree.
  expect(kept.map((reasons) => reasons.length > 0)).toEqual([true, false, true, false, true, false])
})

test('a call on the way ends in the record that it began in', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: (_request, call) => ({ text: 'Fine.', beforeToken: () => (call === 0 ? hold.promise : undefined) }),
  })
  const session = started.gateway.open(sessionRequest({ maxKeptTurns: 1 }))
  const ask = (content: string) => post(session.endpoint('agent'), { messages: [{ role: 'user', content }] })
  const slow = ask('Slow?')
  await until(() => started.gateway.counts().inFlight === 1)
  for (const content of ['One?', 'Two?', 'Three?']) expect((await ask(content)).status).toBe(200)
  hold.resolve()
  expect((await slow).status).toBe(200)
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ messagesDelta }) => messagesDelta[0]!.content)).toEqual(['Three?'])
})
