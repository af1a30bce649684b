import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest } from '../testing/start-gateway.ts'

test('requests whose memory is used again and again are recorded as each of them was', async () => {
  await using started = await startChatGateway(({ body }) => `${(body['messages'] as { content: string }[])[0]!.content.length}.`)
  const session = started.gateway.open(sessionRequest())
  // Some bodies arrive in several pieces, which are collected in memory, and some in one.
  const textOf = (lane: number, call: number) =>
    `${lane}/${call} ${String.fromCharCode(97 + lane).repeat(8_000 + 50_000 * ((lane + call) % 4))}`
  const lanes = [0, 1, 2, 3, 4, 5]
  const calls = 8
  await Promise.all(
    lanes.map(async (lane) => {
      for (let call = 0; call < calls; call++) {
        const { status } = await post(session.endpoint('agent'), {
          model: 'policy',
          messages: [{ role: 'user', content: textOf(lane, call) }],
        })
        expect(status).toBe(200)
      }
    }),
  )
  const [{ turns }] = (await session.close()) as [Trajectory]
  const questions = turns.map(({ messagesDelta }) => messagesDelta[0]!.content)
  expect(questions.toSorted()).toEqual(lanes.flatMap((lane) => Array.from({ length: calls }, (_, call) => textOf(lane, call))).toSorted())
  expect(turns.map(({ message }) => message.content)).toEqual(questions.map((content) => `${content!.length}.`))
})
