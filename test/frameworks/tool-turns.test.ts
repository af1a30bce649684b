import type { RolloutContext } from '@aworld-train/core'
import type { Task, Turn } from '@aworld-train/protocol'
import { describe, expect, inject, test } from 'vitest'
import { lookupCall, type Say, sessionRequest, startGateway } from '../../packages/gateway/src/testing/start-gateway.ts'
import { type Framework, frameworks } from './frameworks.ts'

const task: Task = {
  version: 1,
  id: 'task-1',
  hash: '0',
  input: 'Gold and iron?',
  data: {},
  dataSource: 'elements',
  extraInfo: {},
} as never

async function runAgent(framework: Framework, stream: boolean, say: readonly Say[]) {
  await using started = await startGateway({ say })
  const session = started.gateway.open(sessionRequest())
  const program = await framework.load({ stream, python: inject('python') })
  const context = {
    rollout: 'rollout-1',
    attempt: 0,
    task,
    signal: AbortSignal.timeout(60_000),
    limits: {},
    policy: () => session.endpoint('agent'),
    tools: () => {
      throw new Error('no tools')
    },
    recordEdge() {},
    runTool: () => {
      throw new Error('no tools')
    },
  } as unknown as RolloutContext
  try {
    const { answer } = await program.run(task, context)
    const [trajectory] = await session.close()
    return { answer, turns: trajectory!.turns, counts: started.gateway.counts(), requests: started.engine.requests }
  } finally {
    await program.close()
  }
}

describe.each(frameworks)('$name', (framework) => {
  test.each([false, true])('stream %s', async (stream) => {
    const r = await runAgent(framework, stream, [
      ` Let me look. \n${lookupCall('gold').replace('"name": "gold"', '"name":  "gold"')}`,
      lookupCall('iron'),
      'Gold is 79 and iron is 26.',
    ])
    console.log(
      framework.name,
      stream,
      r.answer,
      r.turns.map((t) => [t.parent, t.branchReasons, t.delivered]),
      r.counts,
    )
    console.log(
      JSON.stringify(
        r.turns.map((t) => t.messagesDelta.map(({ role, content, toolCalls }) => [role, content?.slice(0, 40), toolCalls?.length])),
      ),
    )
    expect(r.answer).toBe('Gold is 79 and iron is 26.')
  })
})
