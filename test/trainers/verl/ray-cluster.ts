import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { freePort } from '../../support/process-group.ts'
import { rayAgentPorts } from '../../support/ray-ports.ts'

export interface RayCluster {
  /** Where jobs are submitted. */
  readonly address: string
  /** `ray job submit …`: what it said, and its exit code. */
  submit(args: readonly string[]): Promise<{ code: number; output: string }>
  /** The dashboard's answer to a GET. */
  read(path: string): Promise<string>
  /** Ends the head with all its processes. */
  close(): Promise<void>
}

/**
 * `ray start --head` of Ray 2.60 with its job server, for jobs that want one logical GPU. It has nothing of this process's
 * environment, as a cluster that somebody else started. Its folder is short, since sockets lie below it, and so is the path of
 * its interpreter: Ray's client server does not start from one with a blank, and takes the head with it.
 */
export async function startRayCluster(python: string): Promise<RayCluster> {
  const folder = await mkdtemp('/tmp/awt-ray-')
  const tokenFile = join(folder, 'auth')
  const token = randomBytes(32).toString('hex')
  await writeFile(tokenFile, token)
  await chmod(tokenFile, 0o600)
  const [port, dashboard] = [await freePort(), await freePort()]
  const address = `http://127.0.0.1:${dashboard}`
  await symlink(dirname(dirname(python)), join(folder, 'env'))
  const interpreter = join(folder, 'env/bin/python')
  const ray = ['-m', 'ray.scripts.scripts']
  const marker = randomUUID()
  const environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    // Ray shows its processes' names in the place of their environment, by which they are found.
    SPT_NOENV: '1',
    RAY_USAGE_STATS_ENABLED: '0',
    RAY_AUTH_MODE: 'token',
    RAY_AUTH_TOKEN_PATH: tokenFile,
  }
  const guard = spawn(
    python,
    [
      ...['-I', join(bridgeDirectory, 'aworld_train_bridge/launch.py'), '--marker', `TEST_CLUSTER=${marker}`, '--remove', folder],
      ...['--', interpreter, ...ray, 'start', '--head', '--block', '--disable-usage-stats', '--temp-dir', join(folder, 'ray')],
      ...['--port', String(port), '--dashboard-host', '127.0.0.1', '--dashboard-port', String(dashboard)],
      ...(await rayAgentPorts()),
      ...['--ray-client-server-port', String(await freePort())],
      ...['--num-cpus', '16', '--num-gpus', '1', '--object-store-memory', '200000000'],
    ],
    { env: { ...environment, TEST_CLUSTER: marker }, stdio: ['pipe', 'pipe', 'pipe', 'ignore'] },
  )
  const output = collect(guard)
  const ended = new Promise<void>((resolve) => guard.once('close', () => resolve()))
  const read = async (path: string) => {
    const answer = await fetch(`${address}${path}`, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(5_000) })
    if (!answer.ok) throw new Error(`${path} answers ${answer.status}`)
    return await answer.text()
  }
  const run = (args: readonly string[]) =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const options = { env: environment, timeout: 240_000, maxBuffer: 64 * 1024 * 1024 }
      execFile(interpreter, [...ray, ...args], options, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, output: stdout + stderr }),
      )
    })
  const deadline = Date.now() + 90_000
  const cluster: RayCluster = {
    address,
    read,
    async submit(args) {
      for (;;) {
        const result = await run(['job', 'submit', '--address', address, ...args])
        // The job server answers before there is an agent that starts what it is given.
        if (!result.output.includes('No available agent to submit job') || Date.now() > deadline) return result
        await sleep(1_000)
      }
    },
    async close() {
      guard.stdin?.end('stop\n')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
  for (;;) {
    const up = await read('/api/jobs/').catch((error: unknown) => error as Error)
    if (typeof up === 'string') return cluster
    if (guard.exitCode !== null || Date.now() > deadline) {
      await cluster.close()
      throw new Error(`Ray's job server is not up: ${up.message}\n${output.text}`)
    }
    await sleep(250)
  }
}

function collect(child: ChildProcess): { text: string } {
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output.text += text
    })
  return output
}
