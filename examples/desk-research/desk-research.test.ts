import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OutwardOptions, openOutward } from '@aworld-train/http'
import { openEnvironmentServer, toolServers } from '@aworld-train/tools'
import { createEnvironment, gaiaRewardFunc, type McpConfig } from 'aworld-train'
import { expect, it } from 'vitest'
import { isJailed, openTestParsers, openTestSandbox } from '../../packages/tools/src/testing/tier.ts'
import { research } from './agent.ts'
import { attachments } from './attachments.ts'
import { tasks } from './tasks.ts'
import { openWorld } from './world.ts'

/** Where no program of the machine runs, the tasks that take none. */
const possible = tasks.filter(({ takesPrograms }) => isJailed || !takesPrograms)
const never = new AbortController().signal

/** Does every task in a lease of its own, in an environment that asks this world. */
async function researchAll(folder: string, world: OutwardOptions) {
  await using stack = new AsyncDisposableStack()
  const sandbox = stack.adopt(await openTestSandbox(), (each) => each.close())
  const parsers = stack.adopt(await openTestParsers(), (each) => each.close())
  const outward = stack.adopt(await openOutward(world), (each) => each.close())
  const server = stack.adopt(await openEnvironmentServer({ sandbox, parsers, outward }), (each) => each.close())
  const headers = { Authorization: `Bearer ${server.connectionToken}`, MCP_SERVERS: toolServers.map(({ name }) => name).join(',') }
  const mcpConfig: McpConfig = { mcpServers: { 'aworld-mcp': { type: 'streamable-http', url: server.url, headers } } }
  const environment = stack.adopt(createEnvironment(), (each) => each.close())
  return await Promise.all(
    possible.map(async (task) => {
      const files = task.file === undefined ? [] : [join(folder, task.file)]
      const lease = environment.lease({ rollout: task.id, attempt: 0, sample: 0, task: { id: task.id, files } })
      const { answer, texts } = await research(task, await lease.tools({ agent: 'researcher', mcpConfig }, never), never)
      return { id: task.id, texts, score: gaiaRewardFunc('desk-research', answer, task.answer) }
    }),
  )
}

it('a scripted agent does every task in the world, and in its recording when the world is gone', { timeout: 300_000 }, async () => {
  await using stack = new AsyncDisposableStack()
  const folder = stack.adopt(await mkdtemp(join(tmpdir(), 'desk-research-')), (each) => rm(each, { recursive: true }))
  const files = join(folder, 'attachments')
  await mkdir(files)
  for (const [name, bytes] of Object.entries(attachments)) await writeFile(join(files, name), bytes)
  const path = join(folder, 'world.jsonl')

  const { close, ...world } = await openWorld()
  const recorded = await researchAll(files, { ...world, cassette: { path, mode: 'record' } }).finally(close)
  expect(recorded.filter(({ score }) => score !== 1)).toEqual([])
  expect(recorded).toHaveLength(possible.length)

  expect(await researchAll(files, { services: [], cassette: { path, mode: 'replay' } })).toEqual(recorded)
})
