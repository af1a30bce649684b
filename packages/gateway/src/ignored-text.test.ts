import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway } from './gateway.ts'
import type { GatewayWarning } from './options.ts'
import { httpChatEngine } from './testing/http-chat-engine.ts'
import { post, sessionRequest, startGateway } from './testing/start-gateway.ts'

/** An agent whose instructions have the time, so that they change at every call. */
async function converse(ignore: readonly string[]) {
  const warnings: GatewayWarning[] = []
  await using started = await startGateway({ say: ['1', '2', '3', '4'], ignore, onWarning: (warning) => warnings.push(warning) })
  const session = started.gateway.open(sessionRequest())
  const history: { role: string; content: string }[] = []
  for (let call = 0; call < 4; call++) {
    history.push({ role: 'user', content: `Question ${call}.` })
    const instructions = { role: 'system', content: `Work.\nTime: ${call} o'clock` }
    const answer = (await post(session.endpoint('agent'), { messages: [instructions, ...history] })).json()
    history.push(answer.choices[0].message)
  }
  const [{ turns }] = (await session.close()) as [Trajectory]
  return { turns, warnings, counts: started.gateway.counts() }
}

test('a time in the instructions makes every call a branch, which is warned of with its remedy', async () => {
  const { turns, warnings } = await converse([])
  expect(turns.map(({ parent }) => parent)).toEqual([null, null, null, null])
  expect(warnings).toMatchObject([{ code: 'BRANCH_EXPLOSION', message: expect.stringContaining('gateway.ignore') }])
})

test('where it is named, calls go on as sampled under the first instructions, and are counted', async () => {
  const { turns, warnings, counts } = await converse(['^Time: .*$'])
  expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1, 2])
  expect(counts).toMatchObject({ continuations: 3, branches: { root: 1 }, tolerated: { ignored: 3 } })
  expect(warnings).toEqual([])
})

test('beside a model whose server renders its prompts, and with what is no expression, it is refused', async () => {
  const engine = httpChatEngine('http://127.0.0.1:9')
  const refusal = { code: 'CONFIG_INVALID', message: expect.stringContaining('gateway.ignore') }
  const models = { policy: { kind: 'chat' as const, engine } }
  for (const ignore of [['^Time'], ['(']]) await expect(createGateway({ models, seed: 1, ignore })).rejects.toMatchObject(refusal)
  await engine.close()
  await expect(createGateway({ models: {}, seed: 1, ignore: ['('] })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})
