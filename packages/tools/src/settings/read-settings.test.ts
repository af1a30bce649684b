import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { settingKeys, settingsTemplate } from './keys.ts'
import { readSettings } from './read-settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'settings-'))
afterAll(() => rmSync(folder, { recursive: true }))

function envFile(text: string): string {
  const file = join(folder, '.env')
  writeFileSync(file, text)
  return file
}
/** A value that refers to another key's. */
const to = (name: string) => `\${${name}}`
const read = (text: string, variables: Record<string, string> = {}) => readSettings({ file: envFile(text), variables })

describe('keys of the environment', () => {
  it('takes a reference to another key, through several steps and inside a text', () => {
    const { values } = read(
      `MCP_LLM_BASE_URL=http://${to('HOST_NAME')}/v1\nHOST_NAME=models.test\nTHINK_LLM_BASE_URL=${to('MCP_LLM_BASE_URL')}\n`,
    )
    expect(values.get('THINK_LLM_BASE_URL')).toBe('http://models.test/v1')
  })

  it('prefers the variables of the process', () => {
    expect(read('TAVILY_API_KEY=file', { TAVILY_API_KEY: 'process' }).values.get('TAVILY_API_KEY')).toBe('process')
  })

  it('counts what the template sets as not set', () => {
    expect([...read(settingsTemplate()).values.keys()]).toEqual([])
    expect(read(settingsTemplate()).notices).toEqual([])
  })

  it('names keys that are set and not used', () => {
    const { notices } = read('E2B_API_KEY=e2b\n')
    expect(notices).toEqual(['E2B_API_KEY is set and not used: code runs in the workspace of its rollout.'])
  })

  it('names a key that is a slip of another, and leaves those of other programs alone', () => {
    const { notices } = read('TAVILY_APIKEY=x\nMCP_SERVER_URL=http://localhost:8000/mcp\nDATABASE_PASSWORD=y\n')
    expect(notices).toEqual(['TAVILY_APIKEY is no key of the environment; TAVILY_API_KEY is.'])
  })

  it('names a reference that leads nowhere', () => {
    const { values, notices } = read(`CODE_LLM_MODEL_NAME=${to('NOWHERE')}\n`)
    expect(values.has('CODE_LLM_MODEL_NAME')).toBe(false)
    expect(notices).toEqual(['CODE_LLM_MODEL_NAME refers to NOWHERE, which is not set; the reference is left empty.'])
  })

  it('refuses keys that refer to each other in a circle', () => {
    expect(() => read(`CODE_LLM_API_KEY=${to('GUARD_LLM_API_KEY')}\nGUARD_LLM_API_KEY=${to('CODE_LLM_API_KEY')}\n`)).toThrow(
      /CODE_LLM_API_KEY → GUARD_LLM_API_KEY → CODE_LLM_API_KEY/,
    )
  })

  it('refuses a file that cannot be read', () => {
    expect(() => readSettings({ file: '/nowhere/.env', variables: {} })).toThrow(/The keys in \/nowhere\/\.env cannot be read/)
  })

  it("has every key of AWorld's file", () => {
    const roles = ['MCP', 'BROWSERUSE', 'CODE', 'THINK', 'GUARD', 'AUDIO', 'IMAGE', 'VIDEO']
    const models = roles.flatMap((role) => ['BASE_URL', 'MODEL_NAME', 'API_KEY'].map((part) => `${role}_LLM_${part}`))
    const services = ['JINA_API_KEY', 'TAVILY_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_CSE_ID', 'DATALAB_API_KEY', 'E2B_API_KEY']
    expect(settingKeys.map(({ name }) => name)).toEqual(expect.arrayContaining([...services, ...models]))
  })
})
