import { expect, test } from 'vitest'
import { Agent } from '../agent.ts'
import { toAgentProgram } from '../agent-program.ts'
import { Swarm } from '../swarm.ts'
import { GraphBuildType, HandoffSwarm, ParallelizableAgent, SerialableAgent, TeamSwarm, WorkflowSwarm } from './aworld-shapes.ts'
import { parallel, serial } from './group.ts'
import { LoopableAgent } from './loopable-agent.ts'
import { type GraphNode, isSwarm } from './swarm-types.ts'

const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((name) => new Agent({ name })) as [Agent, Agent, Agent, Agent, Agent]

/** The nodes of a workflow in order, each with those before it. */
function shapeOf({ graph }: Swarm): string {
  const nameOf = ({ work, place }: GraphNode) => `${isSwarm(work) ? `${work.name}()` : work.name}${place > 1 ? `:${place}` : ''}`
  return graph.nodes.map((node) => [...node.before.map(({ from }) => nameOf(from)), nameOf(node)].join('>')).join(' ')
}

const join = () => 'joined'

test.each([
  ['agents', () => new Swarm(a, b, c), 'a a>b b>c'],
  ['one agent twice', () => new Swarm(a, b, a), 'a a>b b>a:2'],
  ['an edge', () => new Swarm([a, b]), 'a a>b'],
  ['edges', () => new Swarm([a, b], [b, c]), 'a a>b b>c'],
  [
    'edges as one argument, with roots',
    () =>
      new Swarm(
        [
          [a, c],
          [b, c],
        ],
        { rootAgent: [a, b] },
      ),
    'a b a>b>c',
  ],
  [
    'edges in snake_case',
    () =>
      new Swarm(
        [
          [a, b],
          [b, c],
        ],
        { root_agent: [a], build_type: 'workflow' },
      ),
    'a a>b b>c',
  ],
  ['edges in another order', () => new Swarm([b, c], [a, b]), 'a a>b b>c'],
  ['topology of agents', () => new Swarm({ topology: [a, b] }), 'a a>b'],
  [
    'topology of edges',
    () =>
      new Swarm({
        topology: [
          [a, c],
          [b, c],
        ],
      }),
    'a b a>b>c',
  ],
  ['groups', () => new Swarm(a, parallel(b, serial(c, d)), e), 'a a>b a>c c>d b>d>e'],
  ['groups side by side', () => new Swarm(parallel(a, b), parallel(c, d), e), 'a b a>b>c a>b>d c>d>e'],
  [
    'a group that two edges share',
    () => {
      const both = parallel(b, c)
      return new Swarm([a, both], [both, d])
    },
    'a a>b a>c b>c>d',
  ],
  ['a workflow in a workflow', () => new Swarm(a, new Swarm(parallel(b, c), d), e), 'a a>b a>c b>c>d d>e'],
  [
    'a workflow in edges',
    () => {
      const inner = new Swarm([b, c])
      return new Swarm([a, inner], [inner, d])
    },
    'a a>b b>c c>d',
  ],
  ['a team in a workflow', () => new Swarm(a, new TeamSwarm(b, c), d), 'a a>b b>d'],
  [
    'several ends with an aggregate function',
    () => new Swarm(a, parallel(b, c), { name: 'both', aggregateFunc: join }),
    'a a>b a>c b>c>both()',
  ],
  [
    'ParallelizableAgent',
    () => new Swarm(a, new ParallelizableAgent({ name: 'both', agents: [b, c] }), d),
    'a a>b a>c b>c>both() both()>d',
  ],
  ['SerialableAgent', () => new Swarm(new SerialableAgent({ agents: [a, b] }), c), 'a a>b b>c'],
  [
    'SerialableAgent with a function',
    () => new SerialableAgent({ name: 'both', agents: [a, b], aggregate_func: join }),
    'a a>b a>b>both()',
  ],
  ['WorkflowSwarm', () => new WorkflowSwarm(a, b, { buildType: GraphBuildType.WORKFLOW }), 'a a>b'],
])('a workflow of %s is one graph', (_, build, shape) => {
  expect(shapeOf(build())).toBe(shape)
})

/** Who may call whom in a program, as `from>to,to`. */
function callsOf(swarm: Swarm): string[] {
  return [...swarm.calls].map(([from, list]) => `${from.name}>${list.map(({ to }) => to.name)}`)
}

test.each([
  ['a team', () => new TeamSwarm(a, b, c), 'a', ['a>b,c']],
  ['a team by buildType', () => new Swarm(a, b, { build_type: GraphBuildType.TEAM }), 'a', ['a>b']],
  ['a team with a rootAgent', () => new TeamSwarm(a, b, { rootAgent: b }), 'b', ['b>a']],
  ['a team whose rootAgent is not among the others', () => new TeamSwarm(a, b, { rootAgent: [c] }), 'c', ['c>a,b']],
  ['a team of pairs', () => new TeamSwarm([a, b], [a, c]), 'a', ['a>b,c']],
  ['a team with a pair among the others', () => new TeamSwarm(a, [b, c]), 'a', ['b>c', 'a>b']],
  ['a handoff', () => new HandoffSwarm([a, b], [a, c], [c, d]), 'a', ['a>b,c', 'c>d']],
  [
    'a handoff with a cycle',
    () =>
      new Swarm(
        [
          [a, b],
          [b, a],
        ],
        { buildType: 'handoff' },
      ),
    'a',
    ['a>b', 'b>a'],
  ],
  ['a handoff with a root', () => new HandoffSwarm([a, b], [b, a], { rootAgent: b }), 'b', ['a>b', 'b>a']],
  ['a handoff to a team', () => new HandoffSwarm([a, new TeamSwarm(b, c)]), 'a', ['a>b']],
  ['a handoff to a workflow', () => new HandoffSwarm([a, new Swarm(b, c, { name: 'steps' })]), 'a', ['a>steps']],
])('%s begins with one agent, which calls others', (_, build, lead, calls) => {
  const swarm = build()
  expect(shapeOf(swarm)).toBe(lead)
  expect(callsOf(swarm)).toEqual(calls)
})

test('a program declares every agent of its swarms once, in the order of the graph, each before those it calls', () => {
  const helper = new Agent({ name: 'helper' })
  const asker = new Agent({ name: 'asker', agents: [helper, new Swarm(c, d, { name: 'steps' })] })
  const swarm = new Swarm([
    [b, e],
    [asker, e],
  ])
  expect(toAgentProgram(new Swarm(swarm, new TeamSwarm(a, helper))).agents.map(({ name }) => name)).toEqual([
    'b',
    'asker',
    'helper',
    'c',
    'd',
    'e',
    'a',
  ])
})

test('what follows an agent inside a loop waits for the end of the loop', () => {
  const loop = new LoopableAgent({ name: 'loop', maxRunTimes: 3, loopPoint: 'a' })
  const { graph } = new Swarm([a, loop], [a, b], [b, c], [loop, c])
  const after = Object.fromEntries(graph.nodes.map((node) => [node.work.name, node.after.map(({ work }) => work.name)]))
  expect(after).toEqual({ a: [], loop: [], b: ['loop'], c: ['loop'] })
})

test.each([
  ['no agents', () => new Swarm(), /it has no agents; pass agents, serial\(…\), parallel\(…\) or edges/],
  [
    'three agents in an array',
    () => new Swarm([a, b, c] as never),
    /\[a, b, c\] has 3 agents; write serial\(a, b, c\) for one after another, or parallel\(a, b, c\) for side by side/,
  ],
  [
    'three agents in an array of edges',
    () =>
      new Swarm([
        [a, b],
        [a, b, c],
      ] as never),
    /\[a, b, c\] has 3 agents/,
  ],
  ['one agent in an array', () => new Swarm([a] as never), /\[a\] has 1 agents/],
  ['agents beside edges', () => new Swarm(a, [b, c]), /as agents and groups, or as edges \[from, to\], not as both/],
  ['agents beside a topology', () => new Swarm(a, { topology: [b] }), /given as arguments and in "topology"/],
  ['a topology that is an agent', () => new Swarm({ topology: a as never }), /"topology" must be an array/],
  ['a text as an agent', () => new Swarm('agent' as never), /expected an Agent, a Swarm, a group or an edge \[from, to\], got "agent"/],
  ['an empty group', () => parallel(), /parallel\(\) is empty/],
  ['a text in a group', () => serial('a' as never), /serial\(\): expected an Agent.*got "a"/],
  ['a cycle', () => new Swarm([a, b], [b, c], [c, a]), /the workflow has a cycle: a → b → c → a; remove one of its edges/],
  ['a cycle behind a root', () => new Swarm([d, a], [a, b], [b, c], [c, a]), /cycle: a → b → c → a/],
  ['an agent before itself', () => new Swarm([a, a]), /cycle: a → a/],
  [
    'a root with predecessors',
    () =>
      new Swarm(
        [
          [a, b],
          [b, c],
        ],
        { rootAgent: [a, b] },
      ),
    /the root "b" comes after "a"; remove the edge, or take it out of "rootAgent"/,
  ],
  [
    'an agent that nobody reaches',
    () =>
      new Swarm(
        [
          [a, c],
          [b, c],
        ],
        { rootAgent: a },
      ),
    /nobody reaches "b"; add an edge \[from, to\] that leads to it, or name it in "rootAgent"/,
  ],
  ['a root of another swarm', () => new Swarm([a, b], { rootAgent: c }), /"rootAgent" names "c", which is not in the swarm/],
  [
    'a root that is a text',
    () => new Swarm([a, b], { rootAgent: 'a' as never }),
    /"rootAgent" must be an agent or an array of agents, and has "a"/,
  ],
  [
    'several leaves',
    () =>
      new Swarm([
        [a, b],
        [a, c],
      ]),
    /ends with several agents, "b", "c", and has one answer; let one agent follow them, or set "aggregateFunc"/,
  ],
  ['several leaves in a group', () => new Swarm(a, parallel(b, c)), /ends with several agents, "b", "c"/],
  ['an edge that is written twice', () => new Swarm([a, b], [a, b]), /the edge \[a, b\] is written twice; keep one of them/],
  ['a tool that is given twice', () => new HandoffSwarm([a, b], [b, c], [a, b]), /the edge \[a, b\] is written twice/],
  ['an edge to a name', () => new Swarm([a, 'b'] as never), /an edge names "b", which is no agent; put the Agent or Swarm itself there/],
  ['a handoff to a stranger', () => new HandoffSwarm([a, 'sales'] as never), /an edge names "sales", which is no agent/],
  ['an edge of four', () => new Swarm([a, b, {}, {}] as never), /\[a, b\] has 4 elements; write \[from, to, \{ condition \}\]/],
  [
    'a condition that is a text',
    () => new Swarm([a, b, { condition: 'x' }] as never),
    /has a condition that is "x"; pass a function of the answer/,
  ],
  [
    'a misspelt condition',
    () => new Swarm([a, b, { conditon: () => true }] as never),
    /unknown option "conditon"; did you mean "condition"/,
  ],
  [
    'a hybrid',
    () => new Swarm(a, b, { buildType: 'hybrid' as never }),
    /"hybrid" is not supported; use "handoff" with an edge \[lead, member\]/,
  ],
  ['another buildType', () => new Swarm(a, { buildType: 'ring' as never }), /buildType is "ring"; use workflow, handoff, team/],
  [
    'a buildType that its class contradicts',
    () => new TeamSwarm(a, b, { buildType: 'handoff' }),
    /buildType "handoff" contradicts the class, which is a team/,
  ],
  [
    'a team as a WorkflowSwarm',
    () => new WorkflowSwarm(a, b, { buildType: 'team' }),
    /buildType "team" contradicts the class, which is a workflow/,
  ],
  [
    'an agent in an edge and in a group of another',
    () => new Swarm([parallel(a, serial(b, c)), d], [b, e], [e, d]),
    /"b" is in a group of an edge and in an edge alone, and would run twice; write an edge for each agent of the group/,
  ],
  ['an option of every object', () => new Swarm(a, { constructor: 1 } as never), /unknown option "constructor"/],
  ['an agent beside the edges of a handoff', () => new HandoffSwarm([a, b], c), /nobody in this handoff reaches "c" from "a"/],
  ['edges that a handoff does not reach', () => new HandoffSwarm([a, b], [c, d]), /nobody in this handoff reaches "d" from "a"/],
  [
    'two roots of a handoff',
    () => new HandoffSwarm([a, b], [b, c], { rootAgent: [a, b] }),
    /begins with one agent, and "rootAgent" names a, b/,
  ],
  ['a handoff to oneself', () => new HandoffSwarm([a, b], [b, b]), /"b" hands off to itself/],
  [
    'a condition in a handoff',
    () => new HandoffSwarm([a, b, { condition: () => true }]),
    /an edge of a handoff has a condition; there the model of "a" decides/,
  ],
  ['a group in a team', () => new TeamSwarm(a, parallel(b, c)), /parallel\(b, c\) stands in a team.*groups belong to a workflow/],
  [
    'a workflow that leads a team',
    () => new TeamSwarm(new Swarm(a, b, { name: 'steps' }), c),
    /the workflow "steps" stands where a team needs an agent that calls others/,
  ],
  [
    'a nameless workflow in a team',
    () => new TeamSwarm(a, new Swarm(b, c)),
    /a workflow that an agent calls as a tool has no name; set "name" and "desc"/,
  ],
  ['a nameless workflow as a tool', () => new Agent({ agents: [new Swarm(b, c)] }), /a workflow that an agent calls as a tool has no name/],
  ['minCallNum in a workflow', () => new Swarm(a, { minCallNum: 1 }), /"minCallNum" belongs to a team, and this is a workflow/],
  [
    'more calls than steps',
    () => new TeamSwarm(a, b, { minCallNum: 2, maxSteps: 2 }),
    /"minCallNum" is 2, and "maxSteps", which counts the first agent too, is 2; allow more steps/,
  ],
  [
    'an aggregate function in a team',
    () => new TeamSwarm(a, b, { aggregateFunc: join }),
    /"aggregateFunc" belongs to a workflow, and this is a team/,
  ],
  [
    'an aggregate function that is a text',
    () => new Swarm(a, { aggregateFunc: 'x' as never }),
    /"aggregateFunc" must be a function \(swarm, results\) => text/,
  ],
  ['half a step', () => new Swarm(a, { max_steps: 0.5 }), /"maxSteps" must be a whole number of at least 0, and is number 0.5/],
  ['a threshold of 0', () => new HandoffSwarm([a, b], { endless_threshold: 0 }), /"endlessThreshold" must be a whole number of at least 1/],
  ['a builder', () => new Swarm(a, { builderCls: 'x' } as never), /"builderCls" is not supported/],
  [
    'no agents in ParallelizableAgent',
    () => new ParallelizableAgent({ agents: [] }),
    /ParallelizableAgent: "agents" must be an array of at least one agent/,
  ],
  [
    'two nameless groups whose answers meet',
    () => new Swarm(parallel(new ParallelizableAgent({ agents: [a, b] }), new ParallelizableAgent({ agents: [c, d] })), e),
    /two answers that meet are called "swarm"; give each of the groups a "name"/,
  ],
  [
    'a group of the name of an agent whose answer it meets',
    () => new Swarm(parallel(a, new ParallelizableAgent({ name: 'a', agents: [b, c] })), d),
    /two answers that meet are called "a"; give each of the groups a "name"/,
  ],
  [
    'a loop without end',
    () => new LoopableAgent({ name: 'x' } as never),
    /LoopableAgent "x": "maxRunTimes" is undefined, so that the loop may have no end/,
  ],
  [
    'a loop point that is an agent',
    () => new LoopableAgent({ name: 'x', max_run_times: 2, loop_point: a as never }),
    /"loopPoint" must be the name of an agent/,
  ],
  [
    'a stop function that is a text',
    () => new LoopableAgent({ name: 'x', maxRunTimes: 2, stopFunc: 'x' as never }),
    /"stopFunc" must be a function/,
  ],
  [
    'a loop point behind the loop',
    () => new Swarm(a, new LoopableAgent({ name: 'x', maxRunTimes: 2, loopPoint: 'b' }), b),
    /LoopableAgent "x" goes back to "b", which is not before it; before it are: x, a/,
  ],
  [
    'loops that overlap',
    () => {
      const [left, right] = ['left', 'right'].map((name) => new LoopableAgent({ name, maxRunTimes: 2, loopPoint: 'a' }))
      return new Swarm([
        [a, left!],
        [a, right!],
        [left!, b],
        [right!, b],
      ])
    },
    /the loops of "left" and "right" overlap/,
  ],
  [
    'loops that wait for each other',
    () => {
      const [left, right] = ['a', 'b'].map((point) => new LoopableAgent({ name: `from ${point}`, maxRunTimes: 2, loopPoint: point }))
      return new Swarm(parallel(a, b), parallel(left!, right!), c)
    },
    /the loops of "from a" and "from b" wait for each other to end; write/,
  ],
  [
    'a called loop that goes back to its caller',
    () => toAgentProgram(new TeamSwarm(a, new LoopableAgent({ name: 'x', maxRunTimes: 2, loopPoint: 'a' }))),
    /LoopableAgent "x" goes back to "a", which is not before it; before it are: x/,
  ],
  [
    'a loop as a tool that goes back to its caller',
    () => toAgentProgram(new Agent({ name: 'lead', agents: [new LoopableAgent({ name: 'x', maxRunTimes: 2, loopPoint: 'lead' })] })),
    /LoopableAgent "x" goes back to "lead"/,
  ],
])('refuses %s', (_, build, message) => {
  expect(build).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }))
})
