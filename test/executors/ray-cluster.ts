import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createJobsApi } from '@aworld-train/executors/ray'
import { freePort } from '../support/process-group.ts'
import { pythonEnvironment } from '../support/python-environment.ts'
import { rayAgentPorts } from '../support/ray-ports.ts'

export interface RayCluster {
  /** Of its Jobs API. */
  readonly address: string
  /** What drivers of Ray's own connect to. */
  readonly gcsAddress: string
  /** The Python that Ray is installed in. */
  readonly python: string
  close(): Promise<void>
}

/** Processors that each node offers. */
export const nodeCpus = 2
/** How long a node may take to start, and a head node to answer. */
const startMs = 180_000

/** A cluster that asks for the token which this process then has in its environment: one head node without processors for workers and `nodes` others, as processes of this machine. */
export async function startRayCluster(folder: string, nodes: number): Promise<RayCluster> {
  const requirements = fileURLToPath(new URL('../../packages/executors/requirements/ray-2.60.0.txt', import.meta.url))
  // Ray's processes end where the path of their Python has a blank, as that of this repository may have.
  const environment = join(folder, 'python')
  await symlink(dirname(dirname(await pythonEnvironment({ name: 'ray-2.60.0', requirements }))), environment)
  const python = join(environment, 'bin/python')
  const token = join(folder, 'ray.token')
  await writeFile(token, randomBytes(24).toString('base64url'))
  const env = {
    RAY_AUTH_MODE: 'token',
    RAY_AUTH_TOKEN_PATH: token,
    // A node that is not registered in time, 30 s by default, ends itself.
    RAY_raylet_start_wait_time_s: '60',
  }
  const [port, dashboard] = [await freePort(), await freePort()]
  const stops: (() => Promise<void>)[] = []

  /** A node that runs. One may end itself while it starts on a busy machine: it is started again. */
  async function start(...args: string[]): Promise<void> {
    for (let tries = 3; ; tries--) {
      // A group of their own: Ray leaves processes behind when only the first is ended, and "ray stop" ends those of everybody.
      const child = spawn(
        python,
        [
          join(environment, 'bin/ray'),
          'start',
          '--block',
          '--disable-usage-stats',
          '--object-store-memory',
          '80000000',
          ...(await rayAgentPorts()),
          ...args,
        ],
        {
          env: { ...process.env, ...env, NODE_OPTIONS: '' },
          stdio: ['ignore', 'pipe', 'pipe'],
          detached: true,
        },
      )
      let output = ''
      const ended = new Promise<'ended'>((resolve) => child.once('exit', () => resolve('ended')))
      const started = new Promise<'started'>((resolve) => {
        for (const stream of [child.stdout, child.stderr])
          stream.setEncoding('utf8').on('data', (text: string) => {
            output += text
            if (output.includes('Ray runtime started')) resolve('started')
          })
      })
      const stop = async () => {
        try {
          process.kill(-child.pid!, 'SIGKILL')
        } catch {
          // All of it has ended.
        }
        await ended
      }
      if ((await Promise.race([started, ended, sleep(startMs, 'late', { ref: false })])) === 'started') {
        stops.push(stop)
        return
      }
      await stop()
      if (tries === 1) throw new Error(`A node of Ray does not start: ${output}`)
    }
  }

  async function close(): Promise<void> {
    for (const stop of stops.splice(0)) await stop()
  }

  const address = `http://127.0.0.1:${dashboard}`
  const gcsAddress = `127.0.0.1:${port}`
  for (const [name, value] of Object.entries(env)) process.env[name] = value
  try {
    // The path of a socket below it must stay short.
    const place = ['--dashboard-host', '127.0.0.1', '--temp-dir', join(folder, 'r')]
    // Ray's own port for clients is that of every other cluster on this machine, and a head node that does not get it ends.
    const ports = [`--port=${port}`, `--dashboard-port=${dashboard}`, `--ray-client-server-port=${await freePort()}`]
    await start('--head', '--num-cpus', '0', ...place, ...ports)
    const api = createJobsApi(address)
    for (const deadline = performance.now() + startMs; ; await sleep(500)) {
      const version = await api.version().catch((error: Error) => error)
      if (typeof version === 'string') break
      if (performance.now() > deadline) throw version
    }
    // Two that start at once take the same names of sockets.
    for (let node = 0; node < nodes; node++) await start('--address', gcsAddress, '--num-cpus', String(nodeCpus))
  } catch (error) {
    await close()
    throw error
  }
  return { address, gcsAddress, python, close }
}
