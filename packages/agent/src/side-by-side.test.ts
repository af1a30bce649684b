import { expect, test } from 'vitest'
import { Agent } from './agent.ts'
import { createAgentGraph } from './agent-graph.ts'
import { sideBySide } from './side-by-side.ts'
import { parallel } from './swarm/group.ts'
import { Swarm } from './swarm.ts'

const named = (name: string, ...agents: Agent[]) => new Agent({ name, agents })
const pairsOf = (source: Agent | Swarm) => sideBySide(createAgentGraph(source)).map((pair) => pair.join(' & '))

test('agents of a sequence never work at once', () => {
  expect(pairsOf(new Swarm(named('a'), named('b'), named('c')))).toEqual([])
  expect(pairsOf(named('alone'))).toEqual([])
})

test('what an agent may ask for in one turn works at once with it, also the same agent twice, and all that it asks in turn', () => {
  const helper = named('helper')
  expect(pairsOf(named('lead', named('reader', helper)))).toEqual([
    'lead & reader',
    'helper & lead',
    'reader & reader',
    'helper & reader',
    'helper & helper',
  ])
  expect(pairsOf(named('lead', named('reader'), named('coder')))).toEqual([
    'lead & reader',
    'reader & reader',
    'coder & reader',
    'coder & lead',
    'coder & coder',
  ])
})

test('a graph with very many paths is read at once', () => {
  const steps = Array.from({ length: 40 }, (_, index) => parallel(named(`a${index}`), named(`b${index}`)))
  expect(pairsOf(new Swarm(...steps, named('end')))).toHaveLength(40)
})

test('of a workflow the nodes that no path connects work at once', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => named(name)) as [Agent, Agent, Agent, Agent]
  expect(pairsOf(new Swarm(a, parallel(b, c), d))).toEqual(['b & c'])
  expect(
    pairsOf(
      new Swarm([
        [a, c],
        [b, c],
        [c, d],
      ]),
    ),
  ).toEqual(['a & b'])
})
