import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadAgentsFromObject } from './load-agents.ts'
import { type GraphNode, isSwarm } from './swarm/swarm-types.ts'
import type { Swarm } from './swarm.ts'

const agents = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, {}]))

const load = (swarm: string) => loadAgentsFromObject({ agents, swarm: parse(swarm) }, { environment: {} }).source as Swarm

/** The nodes of a workflow in order, each with those before it. */
function shapeOf({ graph }: Swarm): string {
  const nameOf = ({ work }: GraphNode) => (isSwarm(work) ? `${work.name}()` : work.name)
  return graph.nodes.map((node) => [...node.before.map(({ from }) => nameOf(from)), nameOf(node)].join('>')).join(' ')
}

test.each([
  ['order', 'order: [a, b]', 'a a>b'],
  ['a list of agents', 'agents: [{ id: a }, { id: b }, c]', 'a a>b b>c'],
  ['next', 'agents: [{ id: a, next: c }, { id: b, next: [c] }, { id: c }]', 'a b a>b>c'],
  ['edges', 'agents: [a, b, c]\nedges: [{ from: a, to: c }, [b, c]]\nroot_agent: [a, b]', 'a b a>b>c'],
  ['edges alone, whose agents are the members', 'edges: [[a, b], [b, d]]', 'a a>b b>d'],
  ['edges alone in a swarm in it', 'agents: [a, { id: inner, node_type: swarm, edges: [[b, c]] }, d]', 'a a>b b>c c>d'],
  ['edges that win over next', 'agents: [{ id: a, next: c }, { id: b, next: c }, c]\nedges: [{ from: a, to: b }]', 'a a>b b>c'],
  [
    'a parallel group',
    'agents: [{ id: a, next: both }, b, c, { id: both, node_type: parallel, agents: [b, c], next: d }, d]',
    'a a>b a>c b>c>both() both()>d',
  ],
  ['a serial group', 'agents: [a, b, { id: both, node_type: serial, agents: [a, b] }, c]', 'a a>b b>c'],
  [
    'a swarm in it',
    'agents: [{ id: a, next: inner }, { id: inner, node_type: swarm, swarm_type: workflow, agents: [{ id: b, next: c }, { id: c }], next: d }, d]',
    'a a>b b>c c>d',
  ],
])('reads %s', (_, swarm, shape) => {
  expect(shapeOf(load(swarm))).toBe(shape)
})

test('reads teams and handoffs, nested too, with their options', () => {
  const callsOf = (swarm: Swarm) => [...swarm.calls].map(([from, list]) => `${from.name}>${list.map(({ to }) => to.name)}`)
  const team = load('type: team\nroot_agent: b\nagents: [a, b, c]\nmax_steps: 7\nmin_call_num: 1')
  expect(team).toMatchObject({ kind: 'team', maxSteps: 7, minCallNum: 1 })
  expect(callsOf(team)).toEqual(['b>a,c'])
  const handoff = load(
    'type: handoff\nagents: [{ id: a, next: [b, steps] }, { id: b, next: a }, { id: steps, node_type: swarm, agents: [c, d] }]\nendless_threshold: 2',
  )
  expect(handoff).toMatchObject({ kind: 'handoff', endlessThreshold: 2 })
  expect(callsOf(handoff)).toEqual(['a>b,steps', 'b>a'])
  const nested = load(
    'agents: [{ id: lead, node_type: swarm, swarm_type: team, root_agent: a, agents: [{ id: a, next: [b, c] }, { id: b }, { id: c }], next: d }, d]',
  )
  expect(shapeOf(nested)).toBe('a a>d')
  expect(nested.agents.map(({ name }) => name)).toEqual(['a', 'd', 'b', 'c'])
})

test.each([
  ['a misspelt key', 'typ: team', /unknown option "typ"; did you mean "type"/],
  ['order beside agents', 'order: [a]\nagents: [b]', /"order" and "agents" are both given/],
  ['an unknown next', 'agents: [{ id: a, next: x }]', /"edges" names "x", which is none of the agents a, b, c, d, e/],
  ['an edge to a stranger', 'agents: [a, b]\nedges: [{ from: a, to: sales }]', /"edges" names "sales", which is none of the agents/],
  ['an edge without an end', 'agents: [a, b]\nedges: [{ from: a }]', /"edges" must name agents, and has undefined/],
  ['an edge of three', 'agents: [a, b]\nedges: [[a, b, c]]', /"edges" has an array of 3; write \[from, to\]/],
  ['an agent that follows twice', 'agents: [{ id: a, next: [b, b] }, b]', /the edge \[a, b\] is written twice/],
  ['an unknown root', 'agents: [a, b]\nroot_agent: x', /"root_agent" names "x"/],
  ['an agent without an edge', 'agents: [{ id: a, next: b }, b, c]', /"agents" lists "c", which no edge names/],
  ['an entry without an id', 'agents: [{ next: b }]', /an entry of "agents" has the id undefined/],
  ['a number as an agent', 'agents: [1]', /"agents" must hold names or mappings with "id", and holds number 1/],
  ['an unknown node type', 'agents: [{ id: x, node_type: ring }]', /"node_type" of "x" is "ring"; use agent, parallel, serial or swarm/],
  ['a group of a taken id', 'agents: [{ id: a, node_type: parallel, agents: [b] }]', /the parallel "a" has the id of another/],
  ['a group without agents', 'agents: [{ id: x, node_type: parallel }]', /"agents" of "x" must be an array of names/],
  ['a cycle', 'agents: [{ id: a, next: b }, { id: b, next: a }]', /agents, swarm: Swarm: the workflow has a cycle: a → b → a/],
  ['an empty list', 'agents: []', /"agents" is empty; name at least one agent/],
  ['an empty order', 'order: []', /"order" is empty; name at least one agent/],
  ['an empty group', 'agents: [{ id: x, node_type: serial, agents: [] }]', /"agents" of "x" is empty; name at least one agent/],
  ['an edge that is a text', 'edges: [a]', /edges: expected an object of options, got "a"/],
  ['an edge with a condition', 'edges: [{ from: a, to: b, condition: yes }]', /edges: unknown option "condition"; known options: from, to/],
  ['edges alone to a stranger', 'edges: [[x, y]]', /"edges" names "x", which is none of the agents/],
  [
    'agents of an agent',
    'agents: [{ id: a, agents: [b] }]',
    /"a" has the node_type "agent", which has no "agents"; set "node_type" to parallel or serial or swarm/,
  ],
  [
    'steps of a group',
    'agents: [{ id: x, node_type: parallel, agents: [a], max_steps: 2 }]',
    /"x" has the node_type "parallel", which has no "max_steps"; set "node_type" to swarm/,
  ],
  ['a misspelt key of an entry', 'agents: [{ id: a, nxt: b }]', /agents, swarm, "a": unknown option "nxt"; did you mean "next"/],
  [
    'a stranger in a swarm in it',
    'agents: [a, { id: inner, node_type: swarm, agents: [x] }]',
    /agents, swarm, "inner": "agents" names "x"/,
  ],
  [
    'a cycle in a swarm in it',
    'agents: [{ id: inner, node_type: swarm, edges: [[a, b], [b, a]] }]',
    /agents, swarm, "inner": Swarm: the workflow has a cycle/,
  ],
  ['a swarm in it without agents', 'agents: [{ id: inner, node_type: swarm }]', /agents, swarm, "inner": "agents" is missing/],
  ['a hybrid', 'type: hybrid\nagents: [a, b]', /"hybrid" is not supported; use "handoff"/],
])('says what is wrong with %s', (_, swarm, message) => {
  expect(() => load(swarm)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }))
})
