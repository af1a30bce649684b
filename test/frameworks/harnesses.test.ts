import { type AgentFunction, toAgentProgram } from '@aworld-train/agent'
import { toTrainingSamples } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { episodeOf } from '../../packages/gateway/src/testing/episode-of.ts'
import { runAgent } from './run-agent.ts'
import { startPolicy } from './start-policy.ts'

interface Harness {
  readonly name: string
  readonly load: () => Promise<{ readonly agent: AgentFunction }>
  /** The tool that reads the elements, and its arguments. */
  readonly tool: string
  readonly input: object
  /** Calls that it makes beside its work. */
  readonly sideCalls: number
}

const shell = { command: 'cat elements.json', description: 'Reads the elements' }
const harnesses: readonly Harness[] = [
  { name: 'pi', load: () => import('../../examples/any-agent/pi.ts'), tool: 'lookup', input: { name: 'gold' }, sideCalls: 0 },
  { name: 'claude-code', load: () => import('../../examples/any-agent/claude-code.ts'), tool: 'Bash', input: shell, sideCalls: 0 },
  { name: 'opencode', load: () => import('../../examples/any-agent/opencode.ts'), tool: 'bash', input: shell, sideCalls: 1 },
  {
    name: 'codex',
    load: () => import('../../examples/any-agent/codex.ts'),
    tool: 'exec_command',
    input: { cmd: 'cat elements.json' },
    sideCalls: 0,
  },
]

const answer = 'Gold is 79.'

for (const { name, load, tool, input, sideCalls } of harnesses) {
  // The one that needs no process of its own.
  const tags = name === 'pi' ? ['quick'] : []
  test(`${name}: two rollouts go on as sampled, and only their work is trained`, { tags }, async () => {
    const call = `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`
    await using policy = await startPolicy((prompt) => {
      if (prompt.includes('title generator')) return 'Elements'
      return prompt.includes('<tool_response>') ? answer : call
    })
    for (let rollout = 0; rollout < 2; rollout++) {
      const framework = { load: async () => toAgentProgram((await load()).agent) }
      const run = await runAgent(policy, framework, false, 140_000)
      const work = run.turns.filter(({ callKind }) => callKind === 'with-tools')
      expect(run.answer).toBe(answer)
      expect(work.map(({ parent }) => parent)).toEqual([null, work[0]!.index])
      expect(work[1]!.messagesDelta.map(({ role }) => role)).toContain('tool')
      expect(work[1]!.messagesDelta.find(({ role }) => role === 'tool')?.content).toContain('79')
      expect(run.turns).toHaveLength(2 + sideCalls)
      const { samples, untrained } = toTrainingSamples(episodeOf(run.trajectories))
      expect(samples.map(({ provenance }) => provenance.turns)).toEqual([work.map(({ index }) => index)])
      expect(Object.keys(untrained)).toEqual(sideCalls > 0 ? ['side-call'] : [])
    }
    expect(policy.gateway.counts().failures).toBe(0)
  })
}
