import { Agent, Swarm } from '@aworld-train/agent'
import { expect, it } from 'vitest'
import { loadAgent } from '../load/load-agent.ts'
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

it.each([
  [
    'build_agents in a loop',
    class Snake extends (AworldAgentLoop as unknown as new () => object) {
      build_agents() {}
    },
    'Snake has "build_agents"; name the method "buildAgents".',
  ],
  [
    'build_agents in a class of its own',
    class Snake {
      build_agents() {}
    },
    'Snake has "build_agents" and is no AworldAgentLoop; let it extend AworldAgentLoop, and name the method "buildAgents".',
  ],
  [
    'buildAgents in a class of its own',
    class Loop {
      buildAgents() {}
    },
    'Loop has "buildAgents" and is no AworldAgentLoop; let it extend AworldAgentLoop.',
  ],
])('names a loop in the shape of Python: %s, as a class and as an object', async (_, Loop, message) => {
  for (const source of [Loop, new Loop()])
    await expect(loadAgent(source as never, '.')).rejects.toMatchObject({ code: 'AGENT_INVALID', message })
})

it.each(['./custom_agent_loop.py', './custom_agent_loop.py#GaiaAgentLoop'])('names a module of Python: %s', async (path) => {
  await expect(loadAgent(path, '.')).rejects.toMatchObject({
    code: 'AGENT_INVALID',
    message: expect.stringContaining(`The agent ${path} is a module of Python; write its build_agents()`),
  })
})
