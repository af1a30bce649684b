import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadProjectServers, writeProjectServer } from './project-servers.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'project-servers-'))
  // The link stands for our packages as a project has them installed.
  symlinkSync(fileURLToPath(new URL('../../../../node_modules', import.meta.url)), join(folder, 'node_modules'), 'junction')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('a new tool server is loaded with the others of its project, in the order of their names', async () => {
  for (const name of ['weather', 'maps']) await writeProjectServer(folder, name)
  writeFileSync(join(folder, 'tool-servers', 'notes.md'), 'not a server')
  const servers = await loadProjectServers(folder)
  expect(servers.map(({ name, tools }) => [name, tools.map((tool) => tool.name)])).toEqual([
    ['maps-server', ['count_words']],
    ['weather-server', ['count_words']],
  ])
})

it('a project without tool servers has none', async () => {
  expect(await loadProjectServers(folder)).toEqual([])
})

it.each(['', 'Weather', '../escape', 'terminal server', '-a', 'a'.repeat(41)])('a tool server cannot be named %j', async (name) => {
  await expect(writeProjectServer(folder, name)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  expect(existsSync(join(folder, 'tool-servers'))).toBe(false)
})

it('a tool server that is there is left as it is', async () => {
  await writeProjectServer(folder, 'weather')
  const file = join(folder, 'tool-servers', 'weather', 'server.ts')
  writeFileSync(file, 'mine')
  await expect(writeProjectServer(folder, 'weather')).rejects.toThrow('is there already')
  expect(readFileSync(file, 'utf8')).toBe('mine')
})

it.each([
  ['export const server = 1', /exports no tool server/],
  ['export default { name: "x" }', /exports no tool server/],
  ['export default', /could not be loaded/],
])('a module of %j is named as what it is not', async (text, message) => {
  await writeProjectServer(folder, 'weather')
  writeFileSync(join(folder, 'tool-servers', 'weather', 'server.ts'), text)
  await expect(loadProjectServers(folder)).rejects.toMatchObject({ code: 'MODULE_INVALID', message: expect.stringMatching(message) })
})
