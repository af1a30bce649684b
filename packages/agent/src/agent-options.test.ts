import { expect, test } from 'vitest'
import { Agent } from './agent.ts'
import { AgentConfig } from './agent-config.ts'
import { toAgentProgram } from './agent-program.ts'
import { Swarm } from './swarm.ts'

test('camelCase and snake_case name the same options', () => {
  const camel = new Agent({
    name: 'a',
    conf: new AgentConfig({ llmBaseUrl: 'http://h/v1', llmModelName: 'm', llmApiKey: 'k', llmTemperature: 0, topK: 5, maxSteps: 3 }),
    systemPrompt: 'Be.',
    mcpConfig: { mcpServers: { s: { url: 'http://h/mcp' } } },
    mcpServers: ['s'],
    blackToolActions: { s: ['t'] },
  })
  const snake = new Agent({
    name: 'a',
    conf: { llm_base_url: 'http://h/v1', llm_model_name: 'm', llm_api_key: 'k', llm_temperature: 0, top_k: 5, max_steps: 3 },
    system_prompt: 'Be.',
    mcp_config: { mcpServers: { s: { url: 'http://h/mcp' } } },
    mcp_servers: ['s'],
    black_tool_actions: { s: ['t'] },
  })
  expect(snake).toEqual(camel)
  expect(snake).toMatchObject({ systemPrompt: 'Be.', mcpServers: ['s'], maxTurns: 3 })
})

test.each([
  ['nothing', {}, true],
  ["the policy's name", { llmModelName: 'policy' }, true],
  ["AWorld's provider and nothing else", { llm_provider: 'verl', llm_base_url: '', llm_api_key: undefined }, true],
  ["AWorld's provider", { llm_provider: 'verl', llm_base_url: 'http://h/v1' }, true],
  ['the policy', { llmProvider: 'policy' }, true],
  ['an address', { llmBaseUrl: 'http://h/v1', llmModelName: 'm' }, false],
  ["one of the gateway's models", { llmProvider: 'gateway', llmModelName: 'judge' }, false],
])('with %s an agent is trainable or not', (_, conf, trainable) => {
  expect(new AgentConfig(conf).isTrainable()).toBe(trainable)
})

test.each([
  [
    'provider, model and key',
    { llmProvider: 'openai', llmModelName: 'gpt-x', llmApiKey: 'k' },
    'llmProvider "openai", llmModelName "gpt-x"',
  ],
  [
    'empty texts',
    { llm_base_url: '', llm_model_name: '', llm_api_key: '' },
    'an empty llmBaseUrl, an empty llmModelName, an empty llmApiKey',
  ],
  ['a variable that is not set', { llmBaseUrl: process.env['NOT_SET_ANYWHERE'] }, 'an empty llmBaseUrl'],
  ['None from Python', { llm_config: { llm_base_url: null as never } }, 'an empty llmBaseUrl'],
  ['a blank address', { llmBaseUrl: ' ' }, 'an empty llmBaseUrl'],
  ['an empty provider', { llmProvider: '' }, 'an empty llmProvider'],
  ['a model alone', { llmModelName: 'gpt-x' }, 'llmModelName "gpt-x"'],
  ['a key alone', { llmApiKey: 'k' }, 'an llmApiKey'],
])('an agent without an address that has %s is refused by its name', (_, conf, signs) => {
  const swarm = new Swarm(new Agent(), new Agent({ conf: new AgentConfig(new AgentConfig(conf)) }))
  expect(() => toAgentProgram(swarm)).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(`^Agent "agent-2" has no address and would be trained, but its AgentConfig has ${signs}`),
    }),
  )
})

test("an agent of one of the gateway's models is declared with its name", () => {
  const judge = new Agent({ name: 'judge', conf: { llmProvider: 'gateway', llmModelName: 'large' } })
  expect(toAgentProgram(judge).agents).toMatchObject([{ name: 'judge', trainable: false, model: 'large' }])
})

test.each([
  ['no name', { llmProvider: 'gateway' }, /set llmModelName/],
  ['an address', { llmProvider: 'gateway', llmModelName: 'large', llmBaseUrl: 'http://h/v1' }, /leave llmBaseUrl out/],
])("one of the gateway's models with %s is refused", (_, conf, message) => {
  expect(() => new AgentConfig(conf)).toThrow(message)
})

test('options without effect are told, neutral ones pass', () => {
  const agent = new Agent({
    agent_id: 'x',
    feedback_tool_result: true,
    tool_names: [],
    use_tools_in_prompt: false,
    conf: { max_model_len: 9 },
  } as never)
  expect(agent.ignored).toEqual(['agent_id', 'max_model_len'])
})

test.each([
  ['an empty name', () => new Agent({ name: '' }), /the name is an empty string; give it a text/],
  ['a blank name', () => new Agent({ name: '  ' }), /the name is/],
  ['a number as a name', () => new Agent({ name: 3 as never }), /the name is number 3/],
  ['a misspelt option', () => new Agent({ sytemPrompt: 'x' } as never), /unknown option "sytemPrompt"; did you mean "systemPrompt"/],
  ['an option far from any', () => new Agent({ zzz: 1 } as never), /unknown option "zzz"; known options: name, desc, conf/],
  ['two values', () => new Agent({ systemPrompt: 'a', system_prompt: 'b' }), /"systemPrompt" is given twice/],
  ['tools by name', () => new Agent({ tool_names: ['search'] } as never), /"tool_names" is not supported; pass the tools themselves/],
  ['no feedback', () => new Agent({ feedback_tool_result: false } as never), /"feedback_tool_result" is not supported; results always/],
  ['a wrong tool', () => new Agent({ tools: [{ name: 'x' }] as never }), /"tools" must be an array of what tool\(\) returns/],
  ['servers without a configuration', () => new Agent({ mcpServers: ['a'] }), /names the MCP servers a but has no mcpConfig/],
  ['servers as a text', () => new Agent({ mcpConfig: 'x' as never }), /"mcpConfig" must be an object/],
  [
    'hooks by other names',
    () => new Agent({ hooks: { beforeModels: () => {} } as never }),
    /unknown option "beforeModels"; did you mean "beforeModel"/,
  ],
  ['a hook that is no function', () => new Agent({ hooks: { beforeModel: 3 as never } }), /"hooks.beforeModel" must be a function/],
  ['half a turn', () => new Agent({ maxTurns: 0.5 }), /"maxTurns" must be a whole number/],
  ['a misspelt model field', () => new AgentConfig({ llmBaseURI: 'x' } as never), /unknown option "llmBaseURI"; did you mean "llmBaseUrl"/],
  ['a short model field', () => new AgentConfig({ temperature: 1 } as never), /did you mean "llmTemperature"/],
  ['a text as temperature', () => new AgentConfig({ llmTemperature: 'hot' as never }), /"llmTemperature" is "hot"/],
  ['an address without a scheme', () => new AgentConfig({ llmBaseUrl: 'localhost:8000/v1' }), /is not an http\(s\) URL/],
  ['another provider', () => new AgentConfig({ llmProvider: 'anthropic' }), /llmProvider "anthropic" is unknown; use "openai"/],
  [
    'a summary memory',
    () => new AgentConfig({ memory_config: { enable_summary: true } } as never),
    /"memory_config" is not supported; the whole history/,
  ],
])('refuses %s', (_, build, message) => {
  expect(build).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }))
})
