import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment, McpServerConfig } from '@aworld-train/core'
import { afterEach, describe, expect, it } from 'vitest'
import { createEnvironment } from './create-environment.ts'
import type { EnvironmentOptions } from './environment-options.ts'
import { type AgentLease, leaseTools } from './testing/agent-lease.ts'
import { isAlive, pidsIn } from './testing/process-state.ts'

const script = fileURLToPath(new URL('./testing/tool-server.ts', import.meta.url))
/** A server gets only what is declared for it; with the compiled code of the one before, it starts in three quarters of the time. */
const { NODE_COMPILE_CACHE = '' } = process.env
const server = (flags: readonly string[] = [], more: McpServerConfig = {}): McpServerConfig => ({
  command: 'node',
  args: [script, ...flags],
  env: { NODE_COMPILE_CACHE },
  ...more,
})
const never = new AbortController().signal

const opened: Environment[] = []
const scratch: string[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((environment) => environment.close()))
  for (const path of scratch.splice(0)) rmSync(path, { recursive: true, force: true })
})
const environmentWith = (options: EnvironmentOptions = {}): Environment => {
  const environment = createEnvironment({ graceMs: 3_000, startTimeoutMs: 60_000, warmProcesses: 0, ...options })
  opened.push(environment)
  return environment
}
const scratchDirectory = () => {
  const path = mkdtempSync(join(tmpdir(), 'environment-test-'))
  scratch.push(path)
  return path
}
let leaseCount = 0
const openLease = (environment: Environment, mcpServers: Record<string, McpServerConfig>): Promise<AgentLease> =>
  leaseTools(environment, { mcpConfig: { mcpServers } }, { rollout: `rollout-${leaseCount++}` })
const call = (lease: AgentLease, name: string, input: Record<string, unknown> = {}, signal = never) =>
  lease.tools.call({ name, arguments: input }, signal)
const where = async (lease: AgentLease) => JSON.parse((await call(lease, 'where')).content)

describe('a lease', () => {
  it.each([
    ['both eras', []],
    ['the older protocol only', ['--old']],
  ])('lists and calls the tools of a server that speaks %s', async (_, flags) => {
    const lease = await openLease(environmentWith(), { test: server(flags) })
    expect((await lease.tools.list()).slice(0, 2)).toEqual([
      { name: 'echo', description: 'Does echo.', parameters: { type: 'object' } },
      { name: 'where', description: 'Does where.', parameters: { type: 'object' } },
    ])
    expect(await call(lease, 'echo', { text: 'größer' })).toEqual({ content: 'größer', isError: false })
    expect(await call(lease, 'image')).toEqual({
      content: '[image image/png, 3 bytes]',
      isError: false,
      images: [{ mimeType: 'image/png', data: 'AAAA' }],
    })
  })

  it('has a process and a directory of its own, and no memory of the one before', async () => {
    const environment = environmentWith()
    const [first, second] = await Promise.all([openLease(environment, { test: server() }), openLease(environment, { test: server() })])
    await call(first, 'remember', { value: 'secret' })
    expect((await call(second, 'recall')).content).toBe('')
    const [one, other] = [await where(first), await where(second)]
    expect(one.pid).not.toBe(other.pid)
    expect(one.cwd).toBe(first.directory)
    expect(one.env.AWORLD_TRAIN_DIRECTORY).toBe(first.directory)
    expect(second.directory).not.toBe(first.directory)
    await first.close()
    expect(isAlive(one.pid)).toBe(false)
    expect(existsSync(first.directory)).toBe(false)
    expect((await call(await openLease(environment, { test: server() }), 'recall')).content).toBe('')
    await expect(call(first, 'recall')).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED', message: expect.stringContaining('closed') })
  })

  it('takes a process that was started before it was asked for', async () => {
    const log = join(scratchDirectory(), 'log')
    const environment = environmentWith({ warmProcesses: 1 })
    const config = { test: server(['--log', log]) }
    const first = await openLease(environment, config)
    await expect.poll(() => pidsIn(log)).toHaveLength(2)
    const warm = pidsIn(log)[1]
    expect((await where(await openLease(environment, config))).pid).toBe(warm)
    expect((await where(first)).pid).not.toBe(warm)
  })

  it('shares one process of a stateless server with every other lease', async () => {
    const environment = environmentWith()
    const config = { test: server(['--count'], { stateless: true }) }
    const leases = await Promise.all(Array.from({ length: 8 }, () => openLease(environment, config)))
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => call(leases[index % 8]!, 'echo', { text: String(index) }).then(({ content }) => content)),
    )
    expect(answers).toEqual(Array.from({ length: 200 }, (_, index) => String(index)))
    expect(new Set(await Promise.all(leases.map(async (one) => (await where(one)).pid))).size).toBe(1)
    await Promise.all(leases.map((one) => one.close()))
    expect(await environment.counts()).toEqual({
      toolCalls: 208,
      toolErrors: 0,
      serverToolCalls: 208,
      serversStarted: 1,
      serversLost: 0,
    })
    await environment.close()
    expect((await environment.counts()).serverToolCalls).toBe(208)
  })

  it('adds up what the processes counted before they were replaced', async () => {
    const environment = environmentWith()
    for (let round = 1; round <= 3; round++) {
      const lease = await openLease(environment, { test: server(['--count']) })
      for (let index = 0; index < round; index++) await call(lease, 'fail')
      if (round < 3) await lease.close()
    }
    expect(await environment.counts()).toEqual({ toolCalls: 6, toolErrors: 6, serverToolCalls: 6, serversStarted: 3, serversLost: 0 })
  })

  it('does not say how many calls a server served that does not count', async () => {
    const environment = environmentWith()
    expect((await environment.counts()).serverToolCalls).toBeNull()
    const [counting, silent] = await Promise.all([
      openLease(environment, { test: server(['--count']) }),
      openLease(environment, { test: server() }),
    ])
    await call(counting, 'recall')
    expect((await environment.counts()).serverToolCalls).toBe(1)
    await call(silent, 'recall')
    expect((await environment.counts()).serverToolCalls).toBeNull()
  })

  it('gives a server a clean environment and the declared variables', async () => {
    const environment = environmentWith({ variables: { ...process.env, NODE_OPTIONS: '--no-warnings', API_TOKEN: 'secret', PAGES: '7' } })
    const lease = await openLease(environment, { test: server(['--count'], { env: { LIMIT: `${'$'}{PAGES} pages` } }) })
    const { env } = await where(lease)
    expect(env).toMatchObject({ LIMIT: '7 pages', PATH: process.env['PATH'], NODE_OPTIONS: '--no-warnings' })
    expect(env).not.toHaveProperty('API_TOKEN')
    expect(env).not.toHaveProperty('PAGES')
  })

  it('does not start a server in a jail where there is none', async () => {
    await expect(openLease(environmentWith(), { test: server([], { sandbox: true }) })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message:
        'MCP server "test": "sandbox" cannot be had here: this environment was created without a jail; give it "openProgramJail". Or remove "sandbox".',
    })
  })

  it('starts a script beside the configuration', async () => {
    const environment = environmentWith({ baseDirectory: fileURLToPath(new URL('./testing', import.meta.url)) })
    const lease = await openLease(environment, {
      plain: { command: 'node', args: ['tool-server.ts'] },
      dotted: { command: 'node', args: ['./tool-server.ts'], cwd: '..' },
    })
    expect((await call(lease, 'plain__echo', { text: 'a' })).content).toBe('a')
    expect(JSON.parse((await call(lease, 'dotted__where')).content).cwd).toBe(fileURLToPath(new URL('.', import.meta.url)).slice(0, -1))
  })

  it('that is still starting when the environment closes is ended with it', async () => {
    const log = join(scratchDirectory(), 'log')
    const environment = environmentWith()
    const starting = openLease(environment, { own: server(['--log', log]), shared: server(['--log', log], { stateless: true }) })
    const outcome = starting.catch((error) => error.code)
    await expect.poll(() => pidsIn(log)).not.toEqual([])
    await environment.close()
    expect(await outcome).toBe('ENVIRONMENT_START_FAILED')
    expect(pidsIn(log).filter(isAlive)).toEqual([])
  })

  it('leaves no process and no directory behind', async () => {
    const environment = createEnvironment({ graceMs: 300 })
    const lease = await openLease(environment, {
      polite: server(),
      stubborn: server(['--stubborn']),
      shared: server([], { stateless: true }),
    })
    const pids = [
      ...(await Promise.all(
        ['polite', 'stubborn', 'shared'].map(async (name) => JSON.parse((await call(lease, `${name}__where`)).content).pid),
      )),
      ...(await Promise.all(['polite', 'stubborn', 'shared'].map(async (name) => Number((await call(lease, `${name}__child`)).content)))),
    ]
    expect(pids.map(isAlive)).toEqual([true, true, true, true, true, true])
    await environment.close()
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
    expect(existsSync(dirname(lease.directory))).toBe(false)
    await expect(openLease(environment, { test: server() })).rejects.toMatchObject({ code: 'ENVIRONMENT_START_FAILED' })
  })
})

describe('a bad server', () => {
  it('that is absent is named, with the command', async () => {
    const missing = openLease(environmentWith(), { ghost: { command: 'no-such-command-here', args: ['--fast'] } })
    await expect(missing).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(/"ghost" \(no-such-command-here --fast\).*ENOENT/s),
    })
  })

  it('that fails at the start is named, with what it wrote', async () => {
    const broken = openLease(environmentWith(), {
      broken: { command: 'node', args: ['-e', 'console.error("no database"); process.exit(4)'] },
    })
    await expect(broken).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(/"broken".*exited with code 4.*no database/s),
    })
  })

  it('that never answers is given up at the deadline, and ended', async () => {
    const log = join(scratchDirectory(), 'log')
    const silent = { command: 'sh', args: ['-c', 'echo $$ > "$0"; exec sleep 600', log] }
    await expect(openLease(environmentWith({ startTimeoutMs: 2_500 }), { silent })).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('within 2.5 s'),
    })
    expect(pidsIn(log).map(isAlive)).toEqual([false])
  })

  it('that throws at the start says why, without its stack', async () => {
    const code = 'function load() { throw new Error("no database") }; load()'
    const python = 'import json\nraise RuntimeError(json.dumps("no key"))'
    const message = async (config: McpServerConfig) => {
      const error = await openLease(environmentWith(), { broken: config }).catch((each: Error) => each)
      return (error as Error).message
    }
    const node = await message({ command: 'node', args: ['-e', code] })
    expect(node).toMatch(/Error: no database/)
    expect(node).not.toMatch(/^ +at /m)
    const other = await message({ command: 'python3', args: ['-c', python] })
    expect(other).toMatch(/RuntimeError: "no key"/)
    expect(other).not.toMatch(/^ +File /m)
  })

  it('that is dead is told of at once, while its neighbour still starts', async () => {
    const silent = { command: 'node', args: ['-e', 'setInterval(() => {}, 1000)'] }
    for (const stateless of [false, true]) {
      const dead = { command: 'node', args: ['-e', 'process.exit(1)'], stateless }
      // The silent server alone would take longer than this test may.
      const environment = environmentWith({ startTimeoutMs: 600_000 })
      await expect(openLease(environment, { silent, dead })).rejects.toMatchObject({ details: { server: 'dead' } })
    }
  })

  it('that is slow to start has the time that its configuration names, where that is longer', async () => {
    const slow = { command: 'node', args: ['-e', `setTimeout(() => import(${JSON.stringify(script)}), 1500)`] }
    const environment = environmentWith({ startTimeoutMs: 700 })
    await expect(openLease(environment, { slow })).rejects.toMatchObject({
      message: expect.stringMatching(/within 0\.7 s.*raise its "timeout"/),
    })
    const lease = await openLease(environment, { slow: { ...slow, timeout: 60 } })
    expect((await call(lease, 'echo', { text: 'up' })).content).toBe('up')
  })

  it('that starts is not left behind when its neighbour does not', async () => {
    const log = join(scratchDirectory(), 'log')
    const pair = openLease(environmentWith(), { good: server(['--log', log]), bad: { command: 'node', args: ['-e', 'process.exit(1)'] } })
    await expect(pair).rejects.toMatchObject({ code: 'ENVIRONMENT_START_FAILED' })
    expect(pidsIn(log).filter(isAlive)).toEqual([])
  })

  it('whose tool runs into the deadline goes on with what it keeps, while it answers', async () => {
    const environment = environmentWith({ graceMs: 10_000 })
    const lease = await openLease(environment, { test: server([], { timeout: 3 }) })
    await call(lease, 'remember', { value: 'kept' })
    await expect(call(lease, 'hang')).rejects.toMatchObject({ code: 'TOOL_TIMEOUT', details: { server: 'test', tool: 'hang' } })
    expect((await call(lease, 'recall')).content).toBe('kept')
    expect(await environment.counts()).toMatchObject({ toolErrors: 1, serversStarted: 1, serversLost: 0 })
  })

  it.each<[end: string, lose: (run: (tool: string) => Promise<unknown>, pid: number) => Promise<unknown>, message: RegExp]>([
    ['crashes', (run) => run('crash'), /"test" was lost during a call of "crash".*exited with code 3.*out of luck/s],
    [
      'dies between two calls',
      async (run, pid) => {
        process.kill(pid, 'SIGKILL')
        await expect.poll(() => isAlive(pid)).toBe(false)
        return run('recall')
      },
      /"test" (ended between two calls|was lost during a call)/,
    ],
    ['answers nothing any more', (run) => run('block'), /"test" answers nothing since a call of "block" had no result in 3 s/],
  ])('that %s ends its lease: no blank one takes its place', async (_, lose, message) => {
    const environment = environmentWith()
    const servers = { test: server([], { timeout: 3 }), neighbour: server() }
    const [lease, other] = [await openLease(environment, servers), await openLease(environment, servers)]
    await call(other, 'test__remember', { value: 'kept' })
    const { pid } = JSON.parse((await call(lease, 'test__where')).content)
    const lost = expect.objectContaining({ code: 'TOOL_SERVER_DIED', message: expect.stringMatching(message) })
    await expect(lose((tool) => call(lease, `test__${tool}`), pid)).rejects.toEqual(lost)
    expect(isAlive(pid)).toBe(false)
    expect(lease.lost.reason).toEqual(lost)
    for (const tool of ['test__echo', 'neighbour__echo']) await expect(call(lease, tool)).rejects.toBe(lease.lost.reason)
    expect((await call(other, 'test__recall')).content).toBe('kept')
    expect(other.lost.aborted).toBe(false)
    await lease.close()
    expect((await call(await openLease(environment, servers), 'test__recall')).content).toBe('')
    expect(await environment.counts()).toMatchObject({ serversStarted: 6, serversLost: 1 })
  })

  it('that is shared costs only the calls under way when it dies', async () => {
    const environment = environmentWith()
    const config = { test: server([], { stateless: true }) }
    const [one, other] = await Promise.all([openLease(environment, config), openLease(environment, config)])
    const waiting = call(other, 'hang').catch((error) => error.code)
    await expect(call(one, 'crash')).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
    expect(await waiting).toBe('TOOL_SERVER_DIED')
    expect((await Promise.all([where(one), where(other)])).map(({ pid }) => pid)).toEqual([expect.any(Number), expect.any(Number)])
    expect(await environment.counts()).toMatchObject({ serversStarted: 2, serversLost: 1 })
  })

  it('that is shared survives one slow call, but not a hang', async () => {
    const environment = environmentWith()
    const config = { test: server([], { stateless: true, timeout: 3 }) }
    const [one, other] = await Promise.all([openLease(environment, config), openLease(environment, config)])
    const { pid } = await where(one)
    await expect(call(one, 'hang')).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' })
    expect((await where(other)).pid).toBe(pid)
    await expect(call(one, 'block')).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' })
    expect(isAlive(pid)).toBe(false)
    expect((await where(other)).pid).not.toBe(pid)
  })

  it.each([2_000_000, 100_000_000])('that answers %i bytes is told so, and goes on', async (bytes) => {
    const environment = environmentWith()
    const lease = await openLease(environment, { test: server() })
    const { pid } = await where(lease)
    const before = process.memoryUsage().rss
    const result = await call(lease, 'big', { bytes })
    expect(result).toEqual({
      content: expect.stringMatching(/^TOOL_RESULT_INVALID: The answer.* bytes long; at most \d+ are/),
      isError: true,
    })
    expect(process.memoryUsage().rss - before).toBeLessThan(80_000_000)
    expect((await where(lease)).pid).toBe(pid)
    expect(await environment.counts()).toMatchObject({ toolCalls: 3, toolErrors: 1, serversLost: 0 })
  })

  it('that answers invalid UTF-8 is told so, and goes on', async () => {
    const lease = await openLease(environmentWith(), { test: server() })
    expect(await call(lease, 'invalid')).toEqual({ content: 'TOOL_RESULT_INVALID: The answer is not valid UTF-8.', isError: true })
    expect((await call(lease, 'echo', { text: 'fine' })).content).toBe('fine')
  })

  it('whose tool fails, or refuses, gives the policy its words', async () => {
    const lease = await openLease(environmentWith(), { test: server() })
    expect(await call(lease, 'fail')).toEqual({ content: 'no such page', isError: true })
    expect(await call(lease, 'refuse')).toEqual({ content: expect.stringContaining('not like this'), isError: true })
    expect(await call(lease, 'ecko')).toEqual({ content: 'There is no tool "ecko"; did you mean "echo"?', isError: true })
  })

  it('that changes its tools during a lease stops the run', async () => {
    const lease = await openLease(environmentWith(), { test: server() })
    await call(lease, 'change')
    await expect
      .poll(() => call(lease, 'echo', { text: 'a' }).catch((error: unknown) => error))
      .toMatchObject({ code: 'ENVIRONMENT_TOOLS_CHANGED', message: expect.stringContaining('"test"') })
  })

  it('that changes its tools stops the run in every lease, not only in the first', async () => {
    const environment = environmentWith()
    await (await openLease(environment, { test: server() })).close()
    const lease = await openLease(environment, { test: server() })
    await call(lease, 'change')
    await expect.poll(() => call(lease, 'echo', { text: 'a' }).catch(({ code }) => code)).toBe('ENVIRONMENT_TOOLS_CHANGED')
  })

  it('that changes its tools between two processes stops the run', async () => {
    const extra = join(scratchDirectory(), 'extra')
    writeFileSync(extra, '')
    const environment = environmentWith()
    const config = { test: server(['--extra', extra]) }
    await (await openLease(environment, config)).close()
    writeFileSync(extra, 'yes')
    await expect(openLease(environment, config)).rejects.toMatchObject({ code: 'ENVIRONMENT_TOOLS_CHANGED' })
  })
})

describe('a cancelled call', () => {
  it('rejects at once with the reason, and a process that answers nothing is ended after the grace', async () => {
    const lease = await openLease(environmentWith(), { test: server() })
    const { pid } = await where(lease)
    const controller = new AbortController()
    const hanging = call(lease, 'block', {}, controller.signal)
    await new Promise((resolve) => setTimeout(resolve, 100))
    controller.abort(new Error('enough'))
    await expect(hanging).rejects.toThrow('enough')
    expect(isAlive(pid)).toBe(true)
    await expect.poll(() => lease.lost.aborted && !isAlive(pid)).toBe(true)
    await expect(call(lease, 'echo', {}, controller.signal)).rejects.toThrow('enough')
  })

  it.each([
    ['both eras', []],
    ['the older protocol only', ['--old']],
  ])('is cancelled in the server too, %s', async (_, flags) => {
    const log = join(scratchDirectory(), 'log')
    const lease = await openLease(environmentWith(), { test: server([...flags, '--log', log], { stateless: true }) })
    await expect(call(lease, 'hang', {}, AbortSignal.timeout(50))).rejects.toThrow('timeout')
    await expect.poll(() => readFileSync(log, 'utf8')).toContain('cancelled')
  })

  it.each([true, false])('leaves a server alone that goes on answering (stateless: %s)', async (stateless) => {
    const lease = await openLease(environmentWith({ graceMs: 3_000 }), { test: server([], { stateless }) })
    const { pid } = await where(lease)
    await expect(call(lease, 'hang', {}, AbortSignal.timeout(50))).rejects.toThrow('timeout')
    await new Promise((resolve) => setTimeout(resolve, 3_500))
    expect((await where(lease)).pid).toBe(pid)
  })

  it('does not hold up a lease that is asked for meanwhile', async () => {
    const aborted = AbortSignal.abort(new Error('stopped'))
    const selection = { mcpConfig: { mcpServers: { test: server() } } }
    await expect(leaseTools(environmentWith(), selection, {}, aborted)).rejects.toThrow('stopped')
    await expect(leaseTools(environmentWith(), selection, {}, AbortSignal.timeout(20))).rejects.toThrow('timeout')
  })
})
