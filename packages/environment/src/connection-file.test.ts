import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { getAgentToolEnvAndServers } from './agent-tool-env.ts'
import { connectionFileName, environmentFolder } from './connection-file.ts'

const url = 'http://127.0.0.1:8000/mcp'
let project = ''
let below = ''

const write = (text: string) => writeFileSync(join(project, environmentFolder, connectionFileName), text)
const reached = (variables: Record<string, string> = {}) => {
  const server = getAgentToolEnvAndServers({ variables, directory: below }).config.mcpServers['aworld-mcp']
  return [server?.url, server?.headers?.['Authorization']]
}

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'connection-'))
  below = join(project, 'a', 'b')
  mkdirSync(below, { recursive: true })
  mkdirSync(join(project, environmentFolder), { recursive: true })
  write(JSON.stringify({ version: 1, url, token: 'own', pid: 1 }))
})

afterEach(() => rmSync(project, { recursive: true }))

describe('the connection of a running environment', () => {
  it('is found without arguments, from a folder below the project too', () => {
    expect(reached()).toEqual([url, 'Bearer own'])
  })

  it('gives its token to no other server', () => {
    expect(reached({ MCP_SERVER_URL: 'http://elsewhere:8000/mcp' })).toEqual(['http://elsewhere:8000/mcp', undefined])
    expect(reached({ MCP_SERVER_URL: 'http://127.0.0.1:8001/mcp' })).toEqual(['http://127.0.0.1:8001/mcp', undefined])
  })

  it('gives its token to itself by another name of loopback', () => {
    expect(reached({ MCP_SERVER_URL: 'http://localhost:8000/mcp' })).toEqual(['http://localhost:8000/mcp', 'Bearer own'])
  })

  it('stands behind the variables', () => {
    expect(reached({ MCP_SERVER_URL: 'http://h/mcp', MCP_SERVER_TOKEN: 'named' })).toEqual(['http://h/mcp', 'Bearer named'])
  })

  it.each(['', 'not JSON', 'null', '{}', '{"version":1,"url":"nonsense","token":"t"}'])('refuses a file that says %j', (text) => {
    write(text)
    expect(() => reached()).toThrow(/remove it and start the environment again/)
  })
})
