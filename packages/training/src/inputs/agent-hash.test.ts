import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { AgentProgram } from '@aworld-train/core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { agentIdentity } from './agent-hash.ts'

let folder: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-hash-')))
  for (const [path, text] of Object.entries(project)) write(path, text)
  mkdirSync(join(folder, 'node_modules/@acme'), { recursive: true })
  symlinkSync(join(folder, 'linked'), join(folder, 'node_modules/@acme/linked'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const project = {
  'package.json': '{ "name": "project", "type": "module", "imports": { "#shared": "./src/shared.ts" } }',
  'src/agent.ts': `import { search } from './tools/search.ts'
import type { Task } from './types.ts'
import type { Absent } from 'absent-package'
import { z } from 'toy'
import { linked } from '@acme/linked'
import { readFile } from 'node:fs/promises'
export { shared } from '#shared'
// The words from 'nowhere' are no import.
export const agent = async () => (await import("./late.ts")).late`,
  'src/types.ts': 'export interface Task {}',
  'src/tools/search.ts': "import './effect.ts'\nimport data from './data.json' with { type: 'json' }\nexport const search = 1",
  'src/tools/effect.ts': "import { agent } from '../agent.ts'\nglobalThis.effect = 1",
  'src/tools/data.json': '{ "text": "from \\"./unseen.ts\\"" }',
  'src/tools/unseen.ts': 'export const unseen = 1',
  'src/shared.ts': 'export const shared = 1',
  'src/late.ts': 'export const late = 1',
  'linked/package.json': '{ "name": "@acme/linked", "version": "0.1.0", "type": "module", "exports": "./index.ts" }',
  'linked/index.ts': "export * from './more.ts'",
  'linked/more.ts': 'export const linked = 1',
  'node_modules/toy/package.json': '{ "name": "toy", "version": "4.1.0", "exports": "./index.js" }',
  'node_modules/toy/index.js': "import './inner.js'\nexport const z = 1",
  'node_modules/toy/inner.js': 'export const inner = 1',
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

const toolOf = (description: string) => ({ name: 'search', description, parameters: { type: 'object' } })
const programWith = (description: string): AgentProgram => ({
  agents: [{ name: 'agent', trainable: true, functions: ['search'], definitions: [toolOf(description)] }],
  run: () => Promise.reject(new Error('A check runs no agent.')),
})
const identity = (description = 'Searches.') =>
  agentIdentity({ program: programWith(description), directory: join(folder, 'src'), files: [join(folder, 'src/agent.ts')] })

/** Names of the parts that differ. */
function differences(before: ReturnType<typeof identity>, after: ReturnType<typeof identity>): string[] {
  expect(before.hash === after.hash).toBe(JSON.stringify(before.parts) === JSON.stringify(after.parts))
  const names = new Set([...Object.keys(before.parts), ...Object.keys(after.parts)])
  return [...names].filter((name) => before.parts[name] !== after.parts[name])
}

it('an agent is the files of its project that its module imports, the packages that these import, and its tools', () => {
  expect(Object.keys(identity().parts).sort()).toEqual([
    '@acme/linked/index.ts',
    '@acme/linked/more.ts',
    'agent "agent"',
    'agent.ts',
    'late.ts',
    'package @acme/linked',
    'package toy',
    'shared.ts',
    'tool "search" of agent "agent"',
    'tools/data.json',
    'tools/effect.ts',
    'tools/search.ts',
  ])
})

it.each([
  ['src/agent.ts', 'agent.ts'],
  ['src/tools/search.ts', 'tools/search.ts'],
  ['src/tools/effect.ts', 'tools/effect.ts'],
  ['src/late.ts', 'late.ts'],
  ['src/shared.ts', 'shared.ts'],
  ['linked/more.ts', '@acme/linked/more.ts'],
])('another %s is another agent', (path, name) => {
  const before = identity()
  write(path, `${project[path as keyof typeof project]} // changed`)
  expect(differences(before, identity())).toEqual([name])
})

it('another version of a package and another description of a tool are another agent; what nothing imports is not', () => {
  const before = identity()
  write('src/types.ts', 'export interface Other {}')
  write('src/tools/unseen.ts', 'export const unseen = 2')
  write('node_modules/toy/inner.js', 'export const inner = 2')
  expect(identity()).toEqual(before)
  expect(differences(before, identity('Finds.'))).toEqual(['tool "search" of agent "agent"'])
  write('node_modules/toy/package.json', project['node_modules/toy/package.json'].replace('4.1.0', '4.2.0'))
  expect(differences(before, identity())).toEqual(['package toy'])
})
