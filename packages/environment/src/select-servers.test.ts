import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { getAgentToolEnvAndServers } from './agent-tool-env.ts'
import { resolveOptions } from './environment-options.ts'
import { selectServers } from './select-servers.ts'
import type { StdioDefinition } from './server-definition.ts'

const directory = fileURLToPath(new URL('.', import.meta.url))
const options = resolveOptions({ baseDirectory: directory, variables: { TOKEN: 't', EMPTY: '' } })
type Request = Parameters<typeof selectServers>[0]
const select = (mcpServers: Record<string, unknown>, more: Partial<Request> = {}) =>
  selectServers({ mcpConfig: { mcpServers } as Request['mcpConfig'], ...more }, options)
const definition = (config: unknown) => select({ one: config })[0]!.definition
const variable = (name: string) => `${'$'}{${name}}`

describe('selectServers', () => {
  it('takes all but the disabled ones, or those that are named', () => {
    const servers = { a: { command: 'a' }, b: { command: 'b', disabled: true }, c: { url: 'http://localhost/' } }
    const names = (more?: Partial<Request>) => select(servers, more).map(({ definition: { name } }) => name)
    expect(names()).toEqual(['a', 'c'])
    expect(names({ mcpServers: ['c', 'b', 'a'] })).toEqual(['a', 'c'])
    expect(names({ mcpServers: [] })).toEqual([])
  })

  it('does not read a server that is not used', () => {
    expect(select({ a: { command: 'a' }, b: { command: variable('MISSING') } }, { mcpServers: ['a'] })).toHaveLength(1)
  })

  it('fills in variables and seconds', () => {
    const config = {
      command: 'x',
      args: [`--key=${variable('TOKEN')}`],
      env: { A: `${variable('TOKEN')}${variable('EMPTY')}` },
      timeout: 2.5,
    }
    expect(definition(config)).toMatchObject({
      kind: 'stdio',
      args: ['--key=t'],
      env: { A: 't' },
      callTimeoutMs: 2500,
      cwd: null,
      stateless: false,
    })
    expect(definition({ url: `http://h/${variable('TOKEN')}`, headers: { X: variable('TOKEN') }, sse_read_timeout: 600 })).toMatchObject({
      kind: 'streamable-http',
      headers: { X: 't' },
      callTimeoutMs: 600_000,
    })
    expect(definition({ type: 'sse', url: 'https://h/sse' })).toMatchObject({ kind: 'sse', callTimeoutMs: 120_000 })
  })

  it('tells servers in a jail from those without one', () => {
    const [free, jailed, reading] = [false, true, { read: ['testing', `./${variable('TOKEN')}/..`] }].map(
      (sandbox) => definition({ command: 'x', sandbox }) as StdioDefinition,
    )
    expect([free, jailed, reading].map((each) => each?.jail)).toEqual([
      null,
      { readable: [] },
      { readable: [`${directory}testing`, directory.slice(0, -1)] },
    ])
    expect(new Set([free, jailed, reading].map((each) => each?.identity)).size).toBe(3)
  })

  it('finds commands and files from the base directory', () => {
    const config = { command: 'node', args: ['index.ts', './missing.ts', 'missing.ts', '--flag', 'testing'], cwd: 'testing' }
    expect(definition(config)).toMatchObject({
      command: process.execPath,
      args: [`${directory}index.ts`, `${directory}missing.ts`, 'missing.ts', '--flag', 'testing'],
      cwd: `${directory}testing`,
    })
    expect(definition({ command: './bin/serve' })).toMatchObject({ command: `${directory}bin/serve` })
    expect(definition({ command: 'npx' })).toMatchObject({ command: 'npx' })
    const program = `serve('${'x'.repeat(5_000)}')`
    expect(definition({ command: 'node', args: ['-e', program] })).toMatchObject({ args: ['-e', program] })
  })

  it('hides tools of a server', () => {
    const [first, second] = select({ a: { command: 'a' }, b: { command: 'b' } }, { hiddenTools: { b: ['rm', 'mv'] } })
    expect(first!.hidden.size).toBe(0)
    expect(second!.hidden.has('rm') && second!.hidden.has('mv')).toBe(true)
  })

  it('takes the names of mounted tool servers for the server that mounts them', () => {
    const { config, servers } = getAgentToolEnvAndServers({ variables: {} })
    const one = (more: Partial<Request>) => selectServers({ mcpConfig: config, ...more }, options)[0]!.definition
    expect(one({ mcpServers: servers })).toEqual(one({}))
    expect(one({ mcpServers: ['wiki-server', 'terminal-server'] })).toMatchObject({
      name: 'aworld-mcp',
      headers: { MCP_SERVERS: 'terminal-server,wiki-server' },
    })
  })

  it.each([
    [{ a: {} }, {}, /"a".*neither "command" nor "url"/],
    [{ a: { comand: 'x' } }, {}, /"a": unknown key "comand"; did you mean "command"\?/],
    [{ a: { command: 'x', args: 'y' } }, {}, /"args" must be a list/],
    [{ a: { command: 'x', args: [1] } }, {}, /"args\.0" must be a string/],
    [{ a: { command: 'x', env: ['A=1'] } }, {}, /"env" must be an object/],
    [{ a: { command: 'x', timeout: '60' } }, {}, /"timeout" must be a positive number of seconds/],
    [{ a: { command: 'x', timeout: 0 } }, {}, /"timeout"/],
    [{ a: { command: 'x', env: { K: variable('UNSET') } } }, {}, /"env\.K" uses the environment variable UNSET, which is not set/],
    [{ a: { type: 'grpc', command: 'x' } }, {}, /type "grpc" is not known; use "stdio", "streamable-http" or "sse"/],
    [{ a: { url: 'localhost:8000' } }, {}, /must begin with http/],
    [{ a: { url: 'not an address' } }, {}, /not an address/],
    [{ a: { type: 'sse', command: 'x' } }, {}, /needs a "url"/],
    [{ a: 'node' }, {}, /not an object/],
    [{ a: { command: 'x', sandbox: 'true' } }, {}, /"sandbox" must be true, false, or \{ "read": \[paths\] \}/],
    [{ a: { command: 'x', desktop: true } }, {}, /"desktop" is for environment servers/],
    [{ a: { url: 'http://x/mcp', desktop: 'yes' } }, {}, /"desktop" must be true or false/],
    [{ a: { command: 'x', sandbox: null } }, {}, /"sandbox" must be true/],
    [{ a: { command: 'x', sandbox: { reads: ['a'] } } }, {}, /"sandbox" must be true/],
    [{ a: { command: 'x', sandbox: { read: 'a' } } }, {}, /"sandbox" must be true/],
    [{ a: { command: 'x', sandbox: { read: [1] } } }, {}, /"sandbox\.read\.0" must be a string/],
    [{ a: { command: 'x', sandbox: { read: ['missing'] } } }, {}, /"sandbox\.read" names .*\/missing, where nothing is/],
    [{ a: { command: 'x', sandbox: { read: ['/'] } } }, {}, /"sandbox\.read" names \/, .*name folders below it/],
    [{ a: { command: 'x', sandbox: true, cwd: '.' } }, {}, /remove "cwd"/],
    [{ a: { url: 'http://h/', sandbox: true } }, {}, /"sandbox" is for servers that are started by a "command"/],
    [{ a: { command: 'x', net: true } }, {}, /"net" is for environment servers, which have a "url"/],
    [{ a: { url: 'http://h/', net: 'yes' as never } }, {}, /"net" must be true or false/],
    [{ a: { command: 'x', sandboxed: true } }, {}, /unknown key "sandboxed"; did you mean "sandbox"\?/],
    [{ search: { command: 'x' } }, { mcpServers: ['serach'] }, /mcpServers names the MCP server "serach".*did you mean "search"/],
    [{ search: { command: 'x' } }, { mcpServers: ['filesystem'] }, /not configured; there is "search"/],
    [{ search: { command: 'x' } }, { hiddenTools: { searhc: ['a'] } }, /blackToolActions names.*did you mean "search"/],
  ])('refuses %j %j', (servers, more, message) => {
    expect(() => select(servers, more)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }),
    )
  })

  it('refuses a configuration without servers', () => {
    const nothing = { mcpConfig: {} as Request['mcpConfig'] }
    expect(() => selectServers(nothing, options)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })
})

describe('getAgentToolEnvAndServers', () => {
  it('reaches the local environment by default', () => {
    const { config, servers } = getAgentToolEnvAndServers({ variables: {} })
    expect(config.mcpServers['aworld-mcp']).toEqual({
      type: 'streamable-http',
      url: 'http://localhost:8000/mcp',
      headers: { MCP_SERVERS: servers.join(',') },
      timeout: 600,
      sse_read_timeout: 600,
      client_session_timeout_seconds: 600,
    })
    expect(servers).toHaveLength(19)
    expect(servers[0]).toBe('readweb-server')
    expect(servers.at(-1)).toBe('googlesearch-server')
  })

  it('takes the address from the argument, then from the variable, and a token as bearer', () => {
    const variables = { MCP_SERVER_URL: 'http://env/mcp', MCP_SERVER_TOKEN: 'abc' }
    const reached = (options: Parameters<typeof getAgentToolEnvAndServers>[0]) =>
      getAgentToolEnvAndServers(options).config.mcpServers['aworld-mcp']
    expect(reached({ variables })).toMatchObject({ url: 'http://env/mcp', headers: { Authorization: 'Bearer abc' } })
    expect(reached({ variables, url: 'http://own/mcp' })).toMatchObject({ url: 'http://own/mcp' })
    expect(reached({ variables: {} })?.headers).not.toHaveProperty('Authorization')
    expect(reached({ variables: {}, servers: ['wiki-server'] })).toMatchObject({ headers: { MCP_SERVERS: 'wiki-server' } })
  })

  it('can be taken apart like the pair it was', () => {
    const [config, servers] = getAgentToolEnvAndServers({ variables: {} })
    expect(config).toHaveProperty('mcpServers')
    expect(servers).toContain('wiki-server')
  })
})
