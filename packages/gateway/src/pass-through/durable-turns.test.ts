import { setTimeout as sleep } from 'node:timers/promises'
import { TrainError, type Turn } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest } from '../testing/start-gateway.ts'

/** Asks `turns` times, each time with all that was said before. */
async function converse(url: string, turns: number): Promise<void> {
  const messages: { role: string; content: string }[] = []
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: 'user', content: `Frage ${turn} 👋` })
    const body = JSON.stringify({ model: 'policy', messages, stream: turn % 2 === 1 })
    await (await fetch(`${url}/chat/completions`, { method: 'POST', body })).text()
    messages.push({ role: 'assistant', content: 'ja' })
  }
}

test('turns of parallel sessions are durable, whole and in order, before their sessions close', async () => {
  await using started = await startChatGateway(() => 'ja')
  const opened = Array.from({ length: 5 }, (_, index) => {
    const durable: Turn[] = []
    const onTurn = async (_agent: string, turn: Turn) => {
      await sleep(30)
      durable.push(structuredClone(turn))
    }
    return { durable, session: started.gateway.open(sessionRequest({ rollout: `r${index}`, onTurn })) }
  })
  await Promise.all(opened.map(({ session }) => converse(session.endpoint('agent').baseUrl, 4)))
  for (const { session, durable } of opened) {
    const [trajectory] = await session.close()
    expect(trajectory!.turns.map(({ parent, delivered }) => [parent, delivered])).toEqual([
      [null, 'delivered'],
      [0, 'delivered'],
      [1, 'delivered'],
      [2, 'delivered'],
    ])
    expect(durable.map((turn) => ({ ...turn, delivered: 'delivered' }))).toEqual(trajectory!.turns)
    expect(session.failure()).toBeNull()
  }
})

test('a turn that cannot be made durable fails its session, and no other', async () => {
  await using started = await startChatGateway(() => 'ja')
  const refused = started.gateway.open(
    sessionRequest({ rollout: 'a', onTurn: () => Promise.reject(new TrainError('STORE_FULL', 'There is no room.')) }),
  )
  const kept = started.gateway.open(sessionRequest({ rollout: 'b', onTurn: async () => {} }))
  await Promise.all([refused, kept].map((session) => converse(session.endpoint('agent').baseUrl, 2)))
  expect((await kept.close())[0]!.turns).toHaveLength(2)
  await refused.close()
  expect(refused.failure()).toMatchObject({ code: 'STORE_FULL' })
  expect(kept.failure()).toBeNull()
})
