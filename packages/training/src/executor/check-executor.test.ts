import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Launcher, LauncherEngine } from '@aworld-train/core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ExecutorSettings } from '../config/executor-settings.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import { checkExecutor, type ExecutorCheck } from './check-executor.ts'

let folder: string
let agent: LoadedAgent
const program = { agents: [{ name: 'agent', trainable: true }], run: () => Promise.reject(new Error('A check runs no agent.')) }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'check-executor-'))
  await writeFile(join(folder, 'agent.ts'), 'export const agent = 1\n')
  agent = { program, directory: folder, module: './agent.ts#agent', files: [join(folder, 'agent.ts')] }
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** An engine whose workers are on other machines, and which starts none here. */
const far: LauncherEngine = {
  name: 'far',
  isElsewhere: () => true,
  create: ({ workerNum }) => ({ plan: async () => [`${workerNum} far away`] }) as Partial<Launcher> as Launcher,
}

const loopback = { host: '127.0.0.1', publicUrl: null }
const reachable = { host: '0.0.0.0', publicUrl: 'https://trainer.example:8080' }

function check(executor: object, changes: Partial<ExecutorCheck> = {}) {
  const settings = ExecutorSettings.parse(executor)
  return checkExecutor({
    settings,
    agent,
    engines: [far],
    directory: folder,
    listeners: { gateway: loopback, rollouts: loopback },
    ...changes,
  })
}

it('says what will be started', async () => {
  expect(await check({})).toEqual([])
  expect(await check({ workerNum: 2 })).toEqual(['2 workers in child processes of this one'])
  expect(await check({ engineName: 'far' }, { listeners: { gateway: reachable, rollouts: reachable } })).toEqual(['1 far away'])
  const named = { host: '10.0.0.1', publicUrl: null }
  expect(await check({ engineName: 'far', workerNum: 3 }, { listeners: { gateway: named } })).toEqual(['3 far away'])
})

it.each(['gateway', 'rollouts'])('workers on other machines need a %s that they reach', async (section) => {
  const other = section === 'gateway' ? 'rollouts' : 'gateway'
  const listening = (listener: { readonly host: string; readonly publicUrl: string | null }) =>
    check({ engineName: 'far' }, { listeners: { [other]: reachable, [section]: listener } })
  for (const host of ['127.0.0.1', 'localhost', '::1'])
    await expect(listening({ host, publicUrl: null })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: `executor.engineName "far" starts workers on other machines, and ${section}.host is ${host}, which they do not reach; set ${section}.host and ${section}.tls, or ${section}.publicUrl where a tunnel or a proxy leads here.`,
    })
  await expect(listening({ host: '0.0.0.0', publicUrl: null })).rejects.toThrow(
    `${section}.host is 0.0.0.0, which names no machine; set ${section}.publicUrl to the address by which they reach this one.`,
  )
})

it.each([
  ['child processes', { workerNum: 2 }],
  ['an engine', { engineName: 'far' }],
  ['a launcher of the user', { cls: './launcher.ts#createLauncher' }],
])('an agent that is a live object cannot have %s', async (_, executor) => {
  const live: LoadedAgent = { program, directory: folder, module: null, files: [] }
  await expect(check(executor, { agent: live })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(
      /^The agent is a live object, which no other process can have; export it from a module and name that, as/,
    ),
  })
  expect(await check({}, { agent: live })).toEqual([])
})
