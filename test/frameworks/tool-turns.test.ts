// @module-tag quick
import { TrainError } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { frameworks, otherDialects } from './frameworks.ts'
import { runAgent } from './run-agent.ts'
import { startPolicy } from './start-policy.ts'

const call = (json: string) => `<tool_call>\n${json}\n</tool_call>`
const thought = (text: string) => `<think>\n${text}\n</think>\n\n`

/** Odd on purpose: reasoning, white space around the text, arguments with two spaces, a turn without text, calls of a turn in a row. */
const script = [
  `${thought('I look it up.')} Let me look. \n${call('{"name": "lookup", "arguments": {"name":  "gold"}}')}`,
  `${thought('Now iron.')}${call('{"name": "lookup", "arguments": {"name": "iron"}}')}`,
  'Gold is 79 and iron is 26.',
]

describe.each([...frameworks, ...otherDialects])('$name', (framework) => {
  test.each([false, true])('two tool turns and an answer go on as sampled (stream %s)', async (stream) => {
    await using policy = await startPolicy(script)
    const { answer, turns, calls, report } = await runAgent(policy, framework, stream)
    expect(answer).toBe('Gold is 79 and iron is 26.')
    expect([calls, policy.engine.requests.length]).toEqual([3, 3])
    expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
    expect(turns.map(({ delivered }) => delivered)).toEqual(['delivered', 'delivered', 'delivered'])
    for (const [index, turn] of turns.entries()) {
      const ids = policy.idsOf(script[index]!)
      expect(Array.from(turn.completionTokenIds)).toEqual(ids)
      expect(Array.from(turn.rolloutLogprobs)).toEqual(ids.map((_, position) => -1 / 2 ** ((position % 8) + 1)))
      expect(Array.from(turn.promptTokenIds)).toEqual(Array.from(policy.engine.requests[index]!.promptTokenIds))
      const parent = index === 0 ? undefined : turns[index - 1]
      const before = parent ? [...parent.promptTokenIds, ...parent.completionTokenIds] : []
      expect(Array.from(turn.promptTokenIds.subarray(0, before.length))).toEqual(before)
    }
    const { tolerated, whenStreaming = [] } = framework.habits
    expect(report).toMatchObject({ turns: 3, continuations: 2, roots: 1, branches: {}, repeated: 0, abandoned: 0, failed: 0, unparsed: {} })
    expect(Object.keys(report.tolerated).sort()).toEqual([...tolerated, ...(stream ? whenStreaming : [])].sort())
  })

  test.each([false, true])('a call that fails once is made again, or ends the agent (stream %s)', async (stream) => {
    const failure = new TrainError('POLICY_UNAVAILABLE', 'The policy is not there.')
    const [first, ...others] = script as [string, ...string[]]
    await using policy = await startPolicy([first, failure, ...others])
    const run = runAgent(policy, framework, stream)
    if (!framework.habits.retries) {
      await expect(run).rejects.toThrow('The policy is not there.')
      expect(policy.gateway.counts().calls).toBe(2)
      return
    }
    const { answer, turns, calls, report } = await run
    expect(answer).toBe('Gold is 79 and iron is 26.')
    expect(calls).toBe(4)
    expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1])
    expect(report).toMatchObject({ turns: 3, continuations: 2, branches: {}, failed: 1 })
  })
})
