import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EnvironmentLease, LeaseTask, McpServerConfig, Tools } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEnvironment } from './create-environment.ts'

const script = fileURLToPath(new URL('./testing/tool-server.ts', import.meta.url))
const server = (...flags: string[]): McpServerConfig => ({ command: 'node', args: [script, ...flags] })
const never = new AbortController().signal

let folder = ''
let environment = createEnvironment()
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollout-lease-'))
  environment = createEnvironment({ baseDirectory: folder, warmProcesses: 0, graceMs: 500, startTimeoutMs: 60_000 })
})
afterEach(async () => {
  await environment.close()
  rmSync(folder, { recursive: true, force: true })
})

const leaseOf = (task: Partial<LeaseTask> = {}, rollout = 'rollout') =>
  environment.lease({ rollout, attempt: 0, sample: 0, task: { id: 'task', ...task } })
const toolsOf = (lease: EnvironmentLease, agent: string, mcpServers: Record<string, McpServerConfig>) =>
  lease.tools({ agent, mcpConfig: { mcpServers } }, never)
const call = async (tools: Tools, name: string, input: Record<string, unknown> = {}) =>
  (await tools.call({ name, arguments: input }, never)).content
const pidOf = async (tools: Tools, name = 'where') => JSON.parse(await call(tools, name)).pid

describe('the agents of one rollout', () => {
  it('share a directory, and one process where they configure a server equally', async () => {
    const lease = leaseOf()
    const [planner, worker] = await Promise.all([
      toolsOf(lease, 'planner', { test: server() }),
      toolsOf(lease, 'worker', { test: server(), other: server('--count') }),
    ])
    const names = (await worker.list()).map(({ name }) => name)
    const [shared, own] = [
      names.find((name) => name.includes('test') && name.includes('where')),
      names.find((name) => name.includes('other') && name.includes('where')),
    ]
    expect(await pidOf(worker, shared)).toBe(await pidOf(planner))
    expect(await pidOf(worker, own)).not.toBe(await pidOf(planner))
    expect(JSON.parse(await call(worker, own!)).cwd).toBe(lease.directory)
    await call(planner, 'remember', { value: 'seen' })
    expect(await call(worker, names.find((name) => name.includes('test') && name.includes('recall'))!)).toBe('seen')
    expect((await environment.counts()).serversStarted).toBe(2)
  })

  it('lose a server of theirs together, for good', async () => {
    const lease = leaseOf()
    const [planner, worker] = await Promise.all([
      toolsOf(lease, 'planner', { test: server() }),
      toolsOf(lease, 'worker', { test: server() }),
    ])
    const waiting = call(worker, 'hang').catch(({ code }) => code)
    await expect(call(planner, 'crash')).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
    expect(await waiting).toBe('TOOL_SERVER_DIED')
    await expect(call(worker, 'recall')).rejects.toBe(lease.lost.reason)
    await expect(toolsOf(lease, 'late', { test: server() })).rejects.toBe(lease.lost.reason)
    expect(await environment.counts()).toMatchObject({ serversStarted: 1, serversLost: 1 })
  })

  it('share nothing with another rollout', async () => {
    const [one, other] = [
      await toolsOf(leaseOf({}, 'a'), 'agent', { test: server() }),
      await toolsOf(leaseOf({}, 'b'), 'agent', { test: server() }),
    ]
    await call(one, 'remember', { value: 'secret' })
    expect(await call(other, 'recall')).toBe('')
  })
})

describe("a rollout's workspace", () => {
  it("has its task's files under their last names, and what the set-up makes, before an agent has tools", async () => {
    writeFileSync(join(folder, 'statue.pdf'), 'pdf')
    const setup = { files: { 'src/main.txt': 'one' }, commands: ['cat src/main.txt > copy.txt', 'echo two >> copy.txt'] }
    const lease = leaseOf({ files: ['statue.pdf'], setup })
    await toolsOf(lease, 'agent', { test: server() })
    expect(readdirSync(lease.directory).sort()).toEqual(['copy.txt', 'src', 'statue.pdf'])
    expect(readFileSync(join(lease.directory, 'copy.txt'), 'utf8')).toBe('onetwo\n')
    await lease.close()
    expect(existsSync(lease.directory)).toBe(false)
  })

  it('is made once for all agents', async () => {
    const lease = leaseOf({ setup: { commands: ['echo line >> log.txt'] } })
    await toolsOf(lease, 'planner', { test: server() })
    await toolsOf(lease, 'worker', { other: server('--count') })
    expect(readFileSync(join(lease.directory, 'log.txt'), 'utf8')).toBe('line\n')
  })

  it.each([
    ['a file that is not there', { files: ['gone.pdf'] }, /gone\.pdf cannot be copied/],
    ['two files of one name', { files: ['a/x.csv', 'b/x.csv'] }, /have one name; rename one/],
    ['a file outside', { setup: { files: { '../x': '' } } }, /outside the workspace/],
    ['a command that fails', { setup: { commands: ['echo no luck >&2; exit 3'] } }, /ended with 3; it printed:\nno luck/],
  ])('that cannot be made is no fault of the agent: %s', async (_, task, message) => {
    const failed = toolsOf(leaseOf(task), 'agent', { test: server() })
    await expect(failed).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      boundary: 'environment',
      message: expect.stringMatching(message),
    })
  })

  it('ends a command of the set-up that does not end', async () => {
    const hasty = createEnvironment({ warmProcesses: 0, startTimeoutMs: 2_000 })
    const lease = hasty.lease({ rollout: 'r', attempt: 0, sample: 0, task: { id: 't', setup: { commands: ['sleep 600'] } } })
    await expect(toolsOf(lease, 'agent', { test: { ...server(), timeout: 60 } })).rejects.toThrow(/ended with no end within 2 s/)
    await hasty.close()
  })
})
