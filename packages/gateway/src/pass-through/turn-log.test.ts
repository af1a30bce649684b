import type { TrainError } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { memoryTurnLog } from '../testing/memory-turn-log.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { sessionRequest } from '../testing/start-gateway.ts'

type Message = { role: string; content: string }

async function ask(url: string, messages: readonly Message[], stream = false): Promise<string> {
  const response = await fetch(`${url}/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'policy', messages, stream }) })
  return response.text()
}

/** Asks `turns` times, each time with all that was said before. */
async function converse(url: string, turns: number): Promise<void> {
  const messages: Message[] = []
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: 'user', content: `Frage ${turn} 👋` })
    await ask(url, messages, turn % 2 === 1)
    messages.push({ role: 'assistant', content: 'ja' })
  }
}

test('turns of parallel sessions are in the log, whole, before their sessions close', async () => {
  await using started = await startChatGateway(() => 'ja')
  const log = memoryTurnLog()
  log.delayMs = 30
  const opened = Array.from({ length: 5 }, (_, index) => {
    const rollout = `r${index}`
    const turnLog = { log, rollout: `stored-${index}`, attempt: index, failed: () => {} }
    return started.gateway.open(sessionRequest({ rollout, turnLog, onTurn: () => Promise.reject(new Error('not asked')) }))
  })
  await Promise.all(opened.map((session) => converse(session.endpoint('agent').baseUrl, 4)))
  for (const [index, session] of opened.entries()) {
    const [trajectory] = await session.close()
    const logged = log.turns.filter(({ rollout, attempt }) => rollout === `stored-${index}` && attempt === index)
    expect(trajectory!.turns).toHaveLength(4)
    expect(trajectory!.turns.map(({ parent, delivered }) => [parent, delivered])).toEqual([
      [null, 'delivered'],
      [0, 'delivered'],
      [1, 'delivered'],
      [2, 'delivered'],
    ])
    expect(logged.map(({ turn }) => ({ ...turn, delivered: 'delivered' }))).toEqual(trajectory!.turns)
    expect(session.failure()).toBeNull()
  }
  log.close()
})

test('a turn that its log refuses fails its session, and no other', async () => {
  await using started = await startChatGateway(() => 'ja')
  const [log, other] = [memoryTurnLog(), memoryTurnLog()]
  log.refuse = 'STORE_FULL'
  const failures: TrainError[] = []
  const failed = (error: TrainError) => void failures.push(error)
  const refused = started.gateway.open(sessionRequest({ rollout: 'a', turnLog: { log, rollout: 'a', attempt: 0, failed } }))
  const kept = started.gateway.open(sessionRequest({ rollout: 'b', turnLog: { log: other, rollout: 'b', attempt: 0, failed } }))
  await Promise.all([refused, kept].map((session) => converse(session.endpoint('agent').baseUrl, 2)))
  expect((await kept.close())[0]!.turns).toHaveLength(2)
  expect((await refused.close())[0]!.turns).toHaveLength(0)
  expect(refused.failure()).toMatchObject({ code: 'STORE_FULL' })
  expect(kept.failure()).toBeNull()
  expect(failures.map(({ code }) => code)).toEqual(['STORE_FULL', 'STORE_FULL'])
  log.close()
  other.close()
})

test('a log that is closed loses no turn silently', async () => {
  await using started = await startChatGateway(() => 'ja')
  const log = memoryTurnLog()
  const session = started.gateway.open(sessionRequest({ turnLog: { log, rollout: 'a', attempt: 0, failed: () => {} } }))
  await converse(session.endpoint('agent').baseUrl, 1)
  await expect.poll(() => session.trajectories()[0]!.turns.length, { timeout: 10_000 }).toBe(1)
  log.close()
  await converse(session.endpoint('agent').baseUrl, 1)
  await session.close()
  expect(session.failure()).toMatchObject({ code: 'STORE_FAILED' })
})
