import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRun } from '@aworld-train/store'
import {
  Agent,
  AgentConfig,
  type AgentConfigOptions,
  AgentTrainer,
  AworldAgentLoop,
  GraphBuildType,
  HandoffSwarm,
  LoopableAgent,
  ParallelizableAgent,
  parallel,
  Runners,
  SerialableAgent,
  Swarm,
  serial,
  TeamSwarm,
  tool,
  WorkflowSwarm,
} from 'aworld-train'
import { CustomAgentLoop } from './custom-agent-loop.ts'
import { GaiaAgentLoop } from './gaia-agent-loop.ts'
import { withModelServer } from './parity-context.ts'
import type { ParityRow } from './parity-row.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

/** Names of the agents of a program and whether each is trained. */
async function programOf(agent: unknown): Promise<Record<string, boolean>> {
  const trainer = new AgentTrainer({ agent: agent as Agent, trainEngineName: 'local', baseDirectory: here })
  const program = (await trainer.trainProcessor.checkAgent(agent)) as { agents: { name: string; trainable: boolean }[] }
  return Object.fromEntries(program.agents.map(({ name, trainable }) => [name, trainable]))
}

const frozen = (name: string) => new Agent({ name, conf: { llmBaseUrl: 'http://127.0.0.1:9/v1', llmModelName: 'm', llmApiKey: 'k' } })

type Three = readonly [Agent, Agent, Agent]

/** Agents `a`, `b`, `c` whose model answers `re: ` and what it was asked. */
async function withAgents(use: (agents: Three, context: { conf: AgentConfigOptions }) => Promise<void>): Promise<void> {
  await withModelServer(({ baseUrl }) => {
    const conf = { llmBaseUrl: baseUrl, llmModelName: 'm' }
    return use(['a', 'b', 'c'].map((name) => new Agent({ name, conf })) as unknown as Three, { conf })
  })
}

const answerOf = async (swarm: Swarm) => (await Runners.run('q', swarm)).answer

/** The agent loop of the verl adapter and its file. */
export const agentLoopRows: readonly ParityRow[] = [
  {
    theirs: '`class GaiaAgentLoop(AworldAgentLoop)`: `build_agents(self)`',
    ours: '`class GaiaAgentLoop extends AworldAgentLoop`: `buildAgents()`, synchronous or not',
    status: 'works',
    async check() {
      assert(new GaiaAgentLoop() instanceof AworldAgentLoop)
      assert.deepEqual(await programOf(GaiaAgentLoop), { gaia_super_agent: true })
      assert.deepEqual(await programOf(new CustomAgentLoop()), { parity_agent: true })
    },
  },
  {
    theirs: '`build_agents` returns an `Agent` or a `Swarm`',
    ours: 'the same',
    status: 'works',
    async check() {
      class Loop extends AworldAgentLoop {
        buildAgents() {
          const trained = new Agent({
            name: 'trained',
            conf: { llmBaseUrl: this.getLlmServerAddress(), llmModelName: this.getLlmServerModelName() },
          })
          return new Swarm(trained, frozen('plan'), frozen('execute'), frozen('sum'))
        }
      }
      assert.deepEqual(await programOf(Loop), { trained: true, plan: false, execute: false, sum: false })
    },
  },
  {
    theirs: '`self.get_llm_server_address()`',
    ours: '`this.getLlmServerAddress()`, with or without `await`',
    status: 'differs',
    note: 'Stands for the address of the rollout at hand: every rollout has one of its own, which is how its tokens are recorded. The agent that uses it is trained, all others are frozen.',
    async check() {
      const loop = new CustomAgentLoop()
      assert.equal(await loop.getLlmServerAddress(), loop.getLlmServerAddress())
      assert(URL.canParse(loop.getLlmServerAddress()))
      assert.equal(new AgentConfig({ llmBaseUrl: loop.getLlmServerAddress() }).llmBaseUrl, loop.getLlmServerAddress())
    },
  },
  {
    theirs: '`self.get_llm_server_model_name()`: the last two parts of the model path',
    ours: "`this.getLlmServerModelName()`: `'policy'`",
    status: 'differs',
    note: 'Without frozen models the gateway answers to any model name, and the run names the policy.',
    async check() {
      assert.equal(await new CustomAgentLoop().getLlmServerModelName(), 'policy')
    },
  },
  {
    theirs: '`agent.yaml`: `- name: gaia_agent`, `_target_: package.module.GaiaAgentLoop`',
    ours: '`_target_: ./custom-agent-loop.ts#GaiaAgentLoop`',
    status: 'differs',
    note: 'A path from the YAML file and an export. A Python name is an error that says what to write.',
    async check({ folder, trained }) {
      const path = join(folder, 'python-agent.yaml')
      await writeFile(path, '- name: gaia_agent\n  _target_: train.examples.custom_agent_loop.GaiaAgentLoop\n')
      await assert.rejects(programOf(path), /is a Python name; write the TypeScript class, as in .*#GaiaAgentLoop/)
      const { report } = await trained()
      assert.equal(report.counts.modelCalls.gateway, report.counts.rollouts)
      assert(report.ledger!.trained > 0)
      assert.equal(report.ledger!.unexplained, 0)
    },
  },
  {
    theirs: 'only the content of the first message of `raw_prompt` is given to the agent',
    ours: 'all messages of the task',
    status: 'differs',
    async check() {
      await withModelServer(async ({ baseUrl, requests }) => {
        const agent = new Agent({ conf: { llmBaseUrl: baseUrl, llmModelName: 'm' } })
        const input = [
          { role: 'system' as const, content: 'Be brief.' },
          { role: 'user' as const, content: 'Why?' },
        ]
        await Runners.run({ input, agent })
        assert.deepEqual(
          requests[0]?.body.messages.map(({ content }) => content),
          ['Be brief.', 'Why?'],
        )
      })
    },
  },
]

/** Agents, their configuration, swarms. */
export const agentRows: readonly ParityRow[] = [
  {
    theirs: '`Agent(name, desc, conf, system_prompt, mcp_config, mcp_servers, black_tool_actions, agent_names, …)`',
    ours: '`new Agent({ name, desc, conf, systemPrompt, mcpConfig, mcpServers, blackToolActions, agentNames, … })`',
    status: 'works',
    note: 'In either spelling.',
    check() {
      const mcp_config = { mcpServers: { table: { command: 'node' } } }
      const agent = new Agent({
        name: 'a',
        desc: 'd',
        system_prompt: 's',
        mcp_config,
        mcp_servers: ['table'],
        black_tool_actions: { table: ['drop'] },
        agent_names: ['b'],
      })
      assert.deepEqual(
        [agent.name, agent.desc, agent.systemPrompt, agent.mcpConfig, agent.mcpServers, agent.blackToolActions, agent.agents],
        ['a', 'd', 's', mcp_config, ['table'], { table: ['drop'] }, ['b']],
      )
    },
  },
  {
    theirs: '`tool_names`, functions registered by `@be_tool`',
    ours: '`tools: [tool({ name, description, parameters, execute })]`',
    status: 'differs',
    note: 'Arguments are typed by Zod.',
    check() {
      assert.throws(() => new Agent({ tool_names: ['x'] } as never), /"tool_names" is not supported; pass the tools themselves in "tools"/)
      assert.equal(typeof tool, 'function')
    },
  },
  {
    theirs: 'unknown keyword arguments are swallowed',
    ours: 'an error with a suggestion',
    status: 'differs',
    check: () => assert.throws(() => new Agent({ sytemPrompt: 'x' } as never), /"sytemPrompt"; did you mean "systemPrompt"/),
  },
  {
    theirs: '`AgentConfig(llm_base_url, llm_model_name, llm_api_key, llm_provider, llm_temperature, max_steps, llm_config)`',
    ours: '`new AgentConfig({ llmBaseUrl, llmModelName, llmApiKey, llmProvider, llmTemperature, maxSteps, llmConfig })`',
    status: 'works',
    note: 'In either spelling, flat or nested.',
    check() {
      const flat = new AgentConfig({
        llm_base_url: 'http://h/v1/',
        llm_model_name: 'm',
        llm_api_key: 'k',
        llm_provider: 'openai',
        llm_temperature: 0.5,
        max_steps: 3,
      })
      const nested = new AgentConfig({
        llmConfig: { llmBaseUrl: 'http://h/v1', llmModelName: 'm', llmApiKey: 'k', llmProvider: 'openai', llmTemperature: 0.5 },
        maxSteps: 3,
      })
      for (const config of [flat, nested])
        assert.deepEqual(
          [config.llmBaseUrl, config.llmModelName, config.llmApiKey, config.llmProvider, config.llmTemperature, config.maxSteps],
          ['http://h/v1', 'm', 'k', 'openai', 0.5, 3],
        )
    },
  },
  {
    theirs: '`AgentConfig(llm_provider="verl", top_k=80)`',
    ours: "`new AgentConfig({ llmProvider: 'verl', topK: 80 })`",
    status: 'differs',
    note: 'The agent is the one in training, which samples as the configuration says (`sampling.topK`, of verl `actor_rollout_ref.rollout.top_k`): what it asks for itself is counted and has no effect. A frozen agent sends it to its own address.',
    async check({ trained }) {
      const conf = new AgentConfig({ llm_provider: 'verl', top_k: 80 })
      assert.equal(conf.requestFields()['top_k'], 80)
      assert.deepEqual(await programOf(new Agent({ name: 'gaia_agent', conf })), { gaia_agent: true })
      const { report } = await trained()
      // The agent of that run has topK 80, too.
      const run = readRun(report.path)
      const [episode] = run.episodes()
      run.close()
      assert.equal(episode!.trajectories[0]!.turns[0]!.sampling.topK, 0)
    },
  },
  {
    theirs: 'an agent with an address of its own is not trained',
    ours: 'the same: it is frozen',
    status: 'works',
    note: "A training of a program without any trained agent is an error (`eval` takes it), and so is an agent without an address that has an empty one, a provider `openai`, or a model or key. With `llmProvider: 'gateway'` it asks a [model of the gateway](frozen-models.md), is recorded and has a budget.",
    async check() {
      const judge = new Agent({ name: 'judge', conf: { llmProvider: 'gateway', llmModelName: 'large' } })
      assert.deepEqual(await programOf(new Swarm(new Agent({ name: 'mine' }), judge)), { mine: true, judge: false })
      assert.deepEqual(await programOf(new Swarm(new Agent({ name: 'mine' }), frozen('other'))), { mine: true, other: false })
      await assert.rejects(programOf(frozen('other')), /No agent uses the policy in training/)
      for (const conf of [{ llmBaseUrl: '' }, { llmProvider: 'openai' }, { llmModelName: 'm' }, { llmApiKey: 'k' }])
        await assert.rejects(programOf(new Agent({ name: 'other', conf })), /Agent "other" has no address and would be trained/)
    },
  },
  {
    theirs: '`max_steps=10` of `AgentConfig` has no effect on a single agent',
    ours: '`maxSteps`, `maxTurns`: model calls of one run, no limit by default',
    status: 'differs',
    note: 'The run is then bounded by `limits` of the training.',
    check() {
      assert.equal(new Agent().maxTurns, undefined)
      assert.equal(new Agent({ conf: { maxSteps: 4 } }).maxTurns, 4)
    },
  },
  {
    theirs: '`load_agents_from_yaml`: `agents`, `swarm`, `vars`',
    ours: "`agent: './agents.yaml'`",
    status: 'works',
    async check({ folder }) {
      const path = join(folder, 'agents.yaml')
      await writeFile(
        path,
        'agents:\n  one: { system_prompt: One., llm_config: { llm_provider: verl } }\n  two: { llm_config: { llm_base_url: "http://127.0.0.1:9/v1" } }\nswarm: { type: workflow, order: [one, two] }\n',
      )
      assert.deepEqual(await programOf(path), { one: true, two: false })
    },
  },
  {
    theirs: '`Swarm(agent1, agent2, …)`: one after another',
    ours: '`new Swarm(agent1, agent2, …)`',
    status: 'works',
    async check() {
      await withModelServer(async ({ baseUrl }) => {
        const [first, second] = ['first', 'second'].map((name) => new Agent({ name, conf: { llmBaseUrl: baseUrl, llmModelName: 'm' } }))
        const { answer, invocations } = await Runners.run('q', new Swarm(first!, second!))
        assert.equal(answer, 're: re: q')
        assert.deepEqual(
          invocations.map(({ id, startedBy }) => [id, startedBy]),
          [
            ['first', []],
            ['second', [{ trajectory: 'first', toolCall: null }]],
          ],
        )
      })
    },
  },
  {
    theirs: '`Swarm([(agent1, agent2), (agent2, agent3)], root_agent=[agent1])`: the same, written as edges',
    ours: '`new Swarm([[agent1, agent2], [agent2, agent3]], { rootAgent: [agent1] })`',
    status: 'works',
    check: () =>
      withAgents(async ([a, b, c]) => {
        assert.equal(
          await answerOf(
            new Swarm(
              [
                [a, b],
                [b, c],
              ],
              { root_agent: [a] },
            ),
          ),
          're: re: re: q',
        )
        assert.equal(
          await answerOf(
            new Swarm({
              topology: [
                [a, b],
                [b, c],
              ],
            }),
          ),
          're: re: re: q',
        )
      }),
  },
  {
    theirs: 'agents as tools of an agent (`agent_names`)',
    ours: '`agents: [other]`',
    status: 'works',
    async check() {
      assert.deepEqual(await programOf(new Agent({ name: 'lead', agents: [frozen('helper')] })), { lead: true, helper: false })
    },
  },
  {
    theirs: '`Swarm([(agent1, agent3), (agent2, agent3)], root_agent=[agent1, agent2])`',
    ours: '`new Swarm([[agent1, agent3], [agent2, agent3]], { rootAgent: [agent1, agent2] })`',
    status: 'works',
    note: '`agent3` gets a JSON object from agent to answer, where Python gets the `repr` of a dictionary.',
    check: () =>
      withAgents(async ([a, b, c]) => {
        assert.equal(
          await answerOf(
            new Swarm(
              [
                [a, c],
                [b, c],
              ],
              { root_agent: [a, b] },
            ),
          ),
          're: {"a":"re: q","b":"re: q"}',
        )
      }),
  },
  {
    theirs: '`Swarm(agent1, [agent2, agent3], agent4)`, `(agent1, agent2, agent3)`: groups side by side, one after another',
    ours: '`new Swarm(agent1, parallel(agent2, agent3), agent4)`, `serial(agent1, agent2, agent3)`',
    status: 'differs',
    note: 'TypeScript has no tuples: an array of two agents is an edge. Three in an array are refused, with both spellings.',
    check: () =>
      withAgents(async ([a, b, c]) => {
        assert.equal(await answerOf(new Swarm(serial(a, parallel(b, c)), a)), 're: {"b":"re: re: q","c":"re: re: q"}')
        assert.throws(() => new Swarm([a, b, c] as never), /write serial\(a, b, c\) for one after another, or parallel\(a, b, c\)/)
      }),
  },
  {
    theirs: 'a `Swarm` in a `Swarm`, which is a `TaskAgent`',
    ours: '`new Swarm(agent1, new Swarm(agent2, agent3))`, or in `agents` of an agent',
    status: 'works',
    check: () =>
      withAgents(async ([a, b, c]) => {
        assert.equal(await answerOf(new Swarm(a, new Swarm(b, c))), 're: re: re: q')
        const tool = new Swarm(b, c, { name: 'both' })
        assert.deepEqual(await programOf(new Agent({ name: 'lead', agents: [tool] })), { lead: true, b: false, c: false })
      }),
  },
  {
    theirs: '`SerialableAgent`, `ParallelizableAgent` with an aggregate function',
    ours: '`new SerialableAgent({ agents, aggregateFunc })`, `new ParallelizableAgent({ agents, aggregateFunc })`',
    status: 'works',
    note: '`aggregateFunc(agent, results)` returns the answer as text; `results` is an object from agent to answer.',
    check: () =>
      withAgents(async ([a, b, c]) => {
        const aggregate_func = (_: unknown, results: object) => Object.keys(results).join(' and ')
        assert.equal(await answerOf(new Swarm(new ParallelizableAgent({ agents: [a, b], aggregate_func }), c)), 're: a and b')
        assert.equal(await answerOf(new ParallelizableAgent({ agents: [a, b] })), '{"a":"re: q","b":"re: q"}')
        assert.equal(await answerOf(new SerialableAgent({ agents: [a, b], aggregate_func })), 'a and b')
        assert.equal(await answerOf(new SerialableAgent({ agents: [a, b] })), 're: re: q')
      }),
  },
  {
    theirs: '`LoopableAgent(max_run_times, loop_point, loop_point_finder, stop_func)`',
    ours: '`new LoopableAgent({ maxRunTimes, loopPoint, loopPointFinder, stopFunc })`',
    status: 'works',
    note: '`maxRunTimes` has no default. Both functions get the agent and `{ answer, runTimes }`, for rollouts share the agent.',
    check: () =>
      withAgents(async ([a], { conf }) => {
        const loop = (options: object) => new LoopableAgent({ name: 'loop', conf, max_run_times: 3, loop_point: 'a', ...options })
        assert.equal(await answerOf(new Swarm(a, loop({}))), `${'re: '.repeat(6)}q`)
        assert.equal(await answerOf(new Swarm(a, loop({ stop_func: () => true }))), 're: re: q')
        assert.equal(await answerOf(new Swarm(a, loop({ loop_point_finder: () => 'loop' }))), `${'re: '.repeat(4)}q`)
      }),
  },
  {
    theirs: '`build_type`: `workflow`, `handoff`, `team`; `GraphBuildType`, `WorkflowSwarm`, `HandoffSwarm`, `TeamSwarm`',
    ours: 'the same',
    status: 'works',
    note: 'An agent calls those that it may hand off to, or those of its team, as tools, and gets their answers.',
    check: () =>
      withAgents(async ([a, b, c]) => {
        assert.equal(await answerOf(new WorkflowSwarm(a, b, { build_type: GraphBuildType.WORKFLOW })), 're: re: q')
        const callsOf = ({ calls }: Swarm) => [...calls].map(([from, list]) => [from.name, ...list.map(({ to }) => to.name)])
        assert.deepEqual(
          callsOf(
            new Swarm(
              [
                [a, b],
                [b, a],
              ],
              { build_type: GraphBuildType.HANDOFF },
            ),
          ),
          callsOf(new HandoffSwarm([a, b], [b, a])),
        )
        assert.deepEqual(callsOf(new Swarm(a, b, c, { build_type: GraphBuildType.TEAM })), [['a', 'b', 'c']])
        assert.deepEqual(callsOf(new TeamSwarm(a, b, { root_agent: b })), [['b', 'a']])
      }),
  },
  {
    theirs: '`build_type`: `hybrid`; `HybridSwarm`',
    ours: 'refused, with `handoff` and its edges in its place',
    status: 'differs',
    check: () =>
      withAgents(async ([a, b]) => {
        assert.throws(() => new Swarm(a, b, { build_type: 'hybrid' as never }), /"hybrid" is not supported; use "handoff"/)
      }),
  },
  {
    theirs: '`max_steps` of a swarm, `min_call_num` of a team, `endless_threshold`',
    ours: '`maxSteps`, `minCallNum`, `endlessThreshold` of the swarm',
    status: 'works',
    note: '`maxSteps` counts starts of agents. `endlessThreshold` is how often one agent may stand in a chain of calls, 3 by default; it is no option of a task.',
    check: () =>
      withAgents(async ([a, b]) => {
        const { answer, success } = await Runners.run('q', new Swarm(a, b, { max_steps: 1 }))
        assert.deepEqual([answer, success], [null, false])
        const { minCallNum, endlessThreshold } = new TeamSwarm(a, b, { min_call_num: 2, endless_threshold: 4 })
        assert.deepEqual([minCallNum, endlessThreshold], [2, 4])
      }),
  },
  {
    theirs: 'a swarm in YAML: `type`, `root_agent`, `max_steps`, `agents` with `id`, `node_type`, `swarm_type`, `next`, `edges`',
    ours: 'the same, in the section `swarm` of the file of agents',
    status: 'works',
    note: '`edges` win over `next` of the same agent.',
    async check({ folder }) {
      const path = join(folder, 'swarm.yaml')
      await writeFile(
        path,
        'agents: { one: {}, two: {}, three: {} }\nswarm:\n  type: workflow\n  agents:\n    - { id: both, node_type: parallel, agents: [one, two], next: three }\n    - { id: three }\n',
      )
      assert.deepEqual(await programOf(path), { one: true, two: true, three: true })
    },
  },
]
