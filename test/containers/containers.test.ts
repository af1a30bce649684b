import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { installDebian } from '../support/install-debian.ts'
import { type RunningContainer, service, startContainer } from './container.ts'
import { docker, startDocker, type TestDocker } from './docker.ts'
import { rollOut } from './rollouts.ts'

let testDocker: TestDocker
let close = async () => {}
beforeAll(async () => {
  installDebian({ dockerd: 'docker.io', docker: 'docker.io', mmdebstrap: 'mmdebstrap' })
  ;({ testDocker, close } = await startDocker())
}, 1_800_000)
afterAll(() => close())

/** Processes of this machine, whatever their namespace, with these arguments. */
const processesOf = (...words: readonly string[]) =>
  readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8') === `${words.join('\0')}\0`
    } catch {
      return false
    }
  })

it('with its profile, commands of a rollout run in bubblewrap, without root and without a file that can be written', async () => {
  await using container = await startContainer(testDocker)
  const status = await container.exec('aworld-train', 'env', 'status')
  expect(status).toMatch(/^sandbox +bubblewrap$/m)
  const command = 'python3 -c "print(6 * 7)"; id -u; ls /run /environment 2>&1; cat /proc/net/route | wc -l'
  const { stopReason, answer, error, toolCalls } = await rollOut(container, command)
  expect([stopReason, answer, error]).toEqual(['completed', 'done', undefined])
  expect(toolCalls.map(({ content }) => content)).toEqual([expect.stringMatching(/42\n1000\n/)])
  expect(toolCalls[0]!.content).toMatch(/cannot access '\/run'/)
  await expect(container.exec('touch', '/opt/file')).rejects.toThrow('Read-only file system')
  expect(await container.exec('id', '-u')).toBe('1000')
  await expect.poll(() => container.inspect('.State.Health.Status'), { timeout: 90_000 }).toBe('healthy')
  // The process that ends is the environment: it closes its leases and says 0.
  await docker(testDocker.host, 'stop', container.name)
  expect(await container.inspect('.State.ExitCode')).toBe('0')
})

it.each([
  [
    'its profile',
    service.security_opt.filter((option) => !option.startsWith('seccomp=')),
    /lets programs make no user namespaces.*seccomp/,
  ],
  [
    'its /proc',
    service.security_opt.filter((option) => !option.startsWith('systempaths=')),
    /hides parts of \/proc.*systempaths=unconfined/,
  ],
])('without %s it starts on the simulation and says why', async (_, securityOptions, reason) => {
  await using container = await startContainer(testDocker, { securityOptions })
  await expect.poll(() => container.log()).toMatch(reason)
  expect(await container.exec('aworld-train', 'env', 'status')).toMatch(/^sandbox +simulated$/m)
  const { stopReason, toolCalls } = await rollOut(container, 'echo $((6 * 7))')
  expect([stopReason, toolCalls[0]?.content]).toEqual(['completed', expect.stringContaining('42')])
})

it('a rollout that takes 4 GB by memfd does not end the container, nor what another rollout does there', async () => {
  await using container = await startContainer(testDocker, { memory: '2g' })
  const started = await container.inspect('.State.StartedAt')
  const neighbour = rollOut(container, 'for each in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done; echo still here')
  const script = 'import os; file = os.memfd_create("x"); [os.write(file, bytes(2**20)) for _ in range(4096)]; print("taken")'
  const hog = await rollOut(container, `python3 -c '${script}'`)
  expect(hog.toolCalls.map(({ content }) => content)).toEqual([expect.stringMatching(/PermissionError|Killed/)])
  expect(await neighbour).toMatchObject({ stopReason: 'completed', toolCalls: [{ content: expect.stringContaining('still here') }] })
  expect([await container.inspect('.State.StartedAt'), await container.inspect('.State.OOMKilled')]).toEqual([started, 'false'])
  expect((await rollOut(container, 'echo and after')).toolCalls[0]?.content).toContain('and after')
})

it('a container that is killed in mid-rollout ends the attempt, and the next attempt runs in another', async () => {
  await using stack = new AsyncDisposableStack()
  const containers: RunningContainer[] = []
  // Stands for the Service of a cluster: a connection goes to the first container that takes it.
  const front = createServer((socket) => {
    const pass = ([container, ...others]: readonly RunningContainer[]) => {
      if (!container) return void socket.destroy()
      const upstream = connect(container.port, '127.0.0.1')
      upstream
        .once('error', () => pass(others))
        .once('connect', () => upstream.pipe(socket.on('error', () => upstream.destroy())).pipe(upstream))
    }
    pass(containers)
  }).listen(0, '127.0.0.1')
  stack.defer(() => void front.close())
  await once(front, 'listening')
  const sharedUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`
  for (const options of [{ sharedUrl }, { sharedUrl }]) containers.push(stack.use(await startContainer(testDocker, options)))
  const [first, second] = containers as [RunningContainer, RunningContainer]

  const time = `6${process.pid}`
  const warnings: string[] = []
  const rollout = rollOut({ url: sharedUrl, token: second.token }, `sleep ${time}`, (event) => void warnings.push(JSON.stringify(event)))
  await expect.poll(() => processesOf('sleep', time).length, { timeout: 60_000 }).toBe(1)
  await docker(testDocker.host, 'kill', first.name)
  // Of the first attempt no process is left; the second runs in the other container.
  await expect.poll(() => second.exec('aworld-train', 'env', 'status'), { timeout: 60_000 }).toContain('1 lease, 1 call running')
  const [sleeper, ...others] = processesOf('sleep', time)
  expect(others).toEqual([])
  process.kill(Number(sleeper), 'SIGKILL')
  const { attempt, stopReason, answer, error } = await rollout
  expect([attempt, stopReason, answer, error]).toEqual([1, 'completed', 'done', undefined])
  expect(warnings.join('\n')).toMatch(/TOOL_SERVER_DIED/)
})
