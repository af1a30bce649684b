import { Agent, Swarm } from '@aworld-train/agent'
import { expect, it } from 'vitest'
import { AworldAgentLoop } from './agent-loop.ts'
import { buildAgents } from './build-agents.ts'

const agent = new Agent({ name: 'a' })

it('takes a loop or its class, synchronous or not, with an Agent or a Swarm', async () => {
  class Now extends AworldAgentLoop {
    buildAgents() {
      return agent
    }
  }
  class Later extends AworldAgentLoop {
    async buildAgents() {
      return new Swarm(agent)
    }
  }
  expect(await buildAgents(Now)).toBe(agent)
  expect(await buildAgents(new Later())).toBeInstanceOf(Swarm)
})

it.each([
  ['undefined', () => undefined, 'returned undefined; return an Agent'],
  ['a list', async () => [agent], 'returned an array; return an Agent'],
  ['a name', () => 'agent', 'returned a value of type string; return an Agent'],
  [
    'an exception',
    async () => {
      throw new Error('no key')
    },
    'threw: no key',
  ],
  ['a promise without end', () => new Promise(() => {}), 'returned nothing within 20 ms'],
])('names the loop whose buildAgents gives %s', async (_, build, message) => {
  class BrokenLoop extends AworldAgentLoop {
    override buildAgents() {
      return build() as never
    }
  }
  await expect(buildAgents(BrokenLoop, { timeoutMs: 20 })).rejects.toMatchObject({
    code: 'AGENT_INVALID',
    message: expect.stringContaining(`BrokenLoop.buildAgents() ${message}`),
  })
})

it('refuses a swarm of two agents of one name where the loop builds it', async () => {
  class TwiceLoop extends AworldAgentLoop {
    buildAgents() {
      return new Swarm(agent, new Agent({ name: 'a' }))
    }
  }
  await expect(buildAgents(TwiceLoop)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'Two agents are named "a"; give each its own name.',
  })
})
