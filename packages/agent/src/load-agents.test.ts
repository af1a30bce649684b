import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Agent } from './agent.ts'
import { loadAgentsFromObject, loadAgentsFromYaml } from './load-agents.ts'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { Swarm } from './swarm.ts'

async function writeYaml(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agents-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'agents.yaml'), text)
  return join(folder, 'agents.yaml')
}

test("reads AWorld's agents and swarm, with variables", async () => {
  const path = await writeYaml(`
vars: { heat: 0.25, subject: chemistry }
agents:
  summarizer:
    system_prompt: Summarise.
    config: { llm_config: { llm_provider: verl }, max_steps: 4 }
  researcher:
    system_prompt: "You research \${vars.subject}."
    desc: Finds things out
    llm_config:
      llm_provider: openai
      llm_model_name: gpt-x
      llm_api_key: \${THE_KEY}
      llm_base_url: http://127.0.0.1:9/v1/
      llm_temperature: \${vars.heat}
    mcp_config: { mcpServers: { table: { command: node } } }
    mcp_servers: [table]
    black_tool_actions: { table: [drop] }
    agent_names: [helper]
    need_reset: true
  helper:
    system_prompt: Help.
swarm:
  type: workflow
  order: [researcher, summarizer]
`)
  const { agents, source } = await loadAgentsFromYaml(path, { environment: { THE_KEY: 'sk-1' } })
  expect(Object.keys(agents)).toEqual(['summarizer', 'researcher', 'helper'])
  const { researcher, summarizer } = agents as Record<string, Agent>
  expect(researcher).toMatchObject({
    systemPrompt: 'You research chemistry.',
    mcpServers: ['table'],
    agents: ['helper'],
    ignored: ['need_reset'],
  })
  expect(researcher!.conf).toMatchObject({ llmBaseUrl: 'http://127.0.0.1:9/v1', llmApiKey: 'sk-1', llmTemperature: 0.25 })
  expect(researcher!.conf.isTrainable()).toBe(false)
  expect(summarizer!.conf.isTrainable()).toBe(true)
  expect(summarizer!.maxTurns).toBe(4)
  expect(source).toBeInstanceOf(Swarm)
  expect((source as Swarm).agents.map(({ name }) => name)).toEqual(['researcher', 'summarizer'])
})

test('one agent is a program of its own, several without a swarm run in order', async () => {
  await using server = await createScriptedServer([{ content: 'first' }, { content: 'second' }])
  expect(loadAgentsFromObject({ agents: { one: {} } }).source).toBeInstanceOf(Agent)
  const { source } = loadAgentsFromObject({ agents: { one: {}, two: { system_prompt: 'Two.' } } })
  const result = await runOnce(source, { baseUrl: server.baseUrl })
  expect(result.answer).toBe('second')
  expect(server.requests[1]!.body.messages).toEqual([
    { role: 'system', content: 'Two.' },
    { role: 'user', content: 'first' },
  ])
})

test.each([
  ['nothing', null, /must hold a mapping with "agents", and holds null/],
  ['no agents', { agents: {} }, /"agents" must be a mapping of at least one name/],
  ['agents as a list', { agents: [] }, /"agents" must be a mapping/],
  ['a text as an agent', { agents: { a: 'x' } }, /agent "a" must be a mapping, and is "x"/],
  [
    'a misspelt key',
    { agents: { a: { sytem_prompt: 'x' } } },
    /agent "a": Agent: unknown option "sytem_prompt"; did you mean "systemPrompt"/,
  ],
  [
    'a misspelt model key',
    { agents: { a: { llm_config: { llm_model: 'x' } } } },
    /unknown option "llm_model"; did you mean "llmModelName"/,
  ],
  ['a misspelt section', { agentss: {} }, /unknown option "agentss"; did you mean "agents"/],
  [
    'an unset variable',
    { agents: { a: { system_prompt: '$' + '{NOT_SET_ANYWHERE}' } } },
    /\$\{NOT_SET_ANYWHERE\} has no value; set it in the environment/,
  ],
  ['an unknown member', { agents: { a: {} }, swarm: { order: ['b'] } }, /"order" names "b", which is none of the agents a/],
  ['two agents of one name', { agents: { a: {}, b: { name: 'a' } } }, /^agents: Two agents are named "a"; give each its own name/],
  ['a root', { agents: { a: {} }, swarm: { type: 'team', root: 'a' } }, /"root" is not supported; name the first agent in "root_agent"/],
  ['agent loops', [{ name: 'x', _target_: 'a.B' }], /lists agent loops by "_target_"/],
])('says what is wrong with %s', (_, data, message) => {
  expect(() => loadAgentsFromObject(data, { environment: {} })).toThrow(message)
})

test('names the file that is missing or is not YAML', async () => {
  await expect(loadAgentsFromYaml('/nowhere/agents.yaml')).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('/nowhere/agents.yaml: cannot be read'),
  })
  const path = await writeYaml('agents: {a: [')
  await expect(loadAgentsFromYaml(path)).rejects.toThrow(/agents\.yaml: is not valid YAML/)
})
