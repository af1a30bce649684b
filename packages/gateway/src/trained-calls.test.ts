import {
  createTokenReport,
  type Episode,
  type TrainedCall,
  type TrainedCalls,
  type Trajectory,
  toTrainingSamples,
} from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { episodeOf } from './testing/episode-of.ts'
import { startChatGateway } from './testing/start-chat-gateway.ts'
import { lookupCall, lookupTool, post, sessionRequest, startGateway } from './testing/start-gateway.ts'

/** OpenCode asks for a title, without tools and under a system prompt of its own, beside its work. */
const question = { role: 'user', content: 'Gold?' }
const work = [{ role: 'system', content: 'You work.' }, question]
const title = { messages: [{ role: 'system', content: 'You make titles.' }, question] }
const tools = [lookupTool]

type Endpoint = Parameters<typeof post>[0]

async function play(endpoint: Endpoint) {
  await post(endpoint, title)
  const first = (await post(endpoint, { messages: work, tools })).json()
  const { message } = first.choices[0]
  const results = (message.tool_calls ?? []).map(({ id }: { id: string }) => ({ role: 'tool', tool_call_id: id, content: '79' }))
  await post(endpoint, { messages: [...work, message, ...(results.length > 0 ? results : [question])], tools })
}

const accounted = (trajectories: readonly Trajectory[]) => {
  const episode: Episode = episodeOf(trajectories)
  const { samples, untrained } = toTrainingSamples(episode)
  return { trained: samples.map(({ provenance }) => provenance.turns), untrained }
}

describe.each(['token', 'chat'] as const)('a model that is a %s engine', (kind) => {
  async function run(trainedCalls?: TrainedCalls) {
    const options = { ...(trainedCalls && { trainedCalls }) }
    await using started =
      kind === 'token'
        ? await startGateway({ say: ['A title', lookupCall('gold'), '79'], ...options })
        : await startChatGateway((_, index) => ['A title', 'Looking', '79'][index]!, options)
    const session = started.gateway.open(sessionRequest())
    await play(session.endpoint('agent'))
    const trajectories = await session.close()
    const report = createTokenReport()
    report.add(trajectories)
    return { ...accounted(trajectories), report: report.finish() }
  }

  test('calls without tools of an agent that has tools are recorded, reported, and not trained', async () => {
    const { trained, untrained, report } = await run()
    expect(trained).toEqual([[1, 2]])
    expect(untrained).toEqual({ 'side-call': expect.any(Number) })
    expect(report).toMatchObject({ turns: 3, roots: 1, branches: { 'system-prompt': 1 } })
  })

  test('all calls are trained where the run says so', async () => {
    const { trained, untrained } = await run('all')
    expect([trained.toSorted(), untrained]).toEqual([[[0], [1, 2]], {}])
  })

  test('a function chooses by agent, tools and messages; its answer is the last word', async () => {
    const seen: TrainedCall[] = []
    const { trained } = await run((call) => {
      seen.push(call)
      return call.messages[0]?.content !== 'You work.'
    })
    expect(trained).toEqual([[0]])
    expect(seen.map(({ agent, tools: names, messages }) => [agent, names, messages.length])).toEqual([
      ['agent', [], 2],
      ['agent', ['lookup'], 2],
      ['agent', ['lookup'], 4],
    ])
  })
})

test('a function that throws fails the rollout, and is named', async () => {
  const trainedCalls = () => {
    throw new Error('no idea')
  }
  await using started = await startGateway({ say: ['79'], trainedCalls })
  const session = started.gateway.open(sessionRequest())
  expect((await post(session.endpoint('agent'), { messages: work })).status).toBe(500)
  expect(session.failure()).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(/gateway\.trainedCalls.*no idea/) })
  await session.close()
})
