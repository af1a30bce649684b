import { execFile, spawn } from 'node:child_process'
import { glob, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describeService } from '@aworld-train/engines/tinker'
import { freePort, stopGroup } from '../../support/process-group.ts'
import { pythonEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export interface SkyrlServer extends AsyncDisposable {
  readonly url: string
}

/** A Python that SkyRL takes, 3.12 or newer: one of `PATH` that runs, else one of pyenv. */
async function recentPython(): Promise<string> {
  const run = promisify(execFile)
  const pyenv = await run('pyenv', ['root']).then(
    ({ stdout }) => Array.fromAsync(glob(join(stdout.trim(), 'versions/3.1[2-4].*/bin/python'))),
    () => [],
  )
  for (const python of ['python3.12', 'python3.13', 'python3.14', ...pyenv]) {
    const path = await run(python, ['-c', 'import sys; print(sys.executable)']).catch(() => null)
    if (path) return path.stdout.trim()
  }
  throw new Error('SkyRL needs Python 3.12 or newer, and there is none in PATH or in pyenv; install one.')
}

/** Starts SkyRL's open server on CPU in float32 over a model folder, with shapes that stay, so that it compiles each once. */
export async function startSkyrl(model: string): Promise<SkyrlServer> {
  const python = await pythonEnvironment({ name: 'skyrl', python: await recentPython(), requirements: here('requirements.txt') })
  const folder = await mkdtemp(join(tmpdir(), 'skyrl-'))
  // What was compiled is kept beside the environments: it is most of the time of a first run.
  const cache = join(repository, '.aworld-train', 'jax-cache')
  await Promise.all([mkdir(join(folder, 'checkpoints')), mkdir(cache, { recursive: true })])
  const port = await freePort()
  const backend = { max_lora_adapters: 4, max_lora_rank: 32, sample_max_num_sequences: 128, train_micro_batch_size: 32 }
  const { NODE_OPTIONS: _options, ...environment } = process.env
  const child = spawn(
    python,
    [
      ...[here('serve_skyrl.py'), '--port', `${port}`, '--base-model', model, '--backend', 'jax'],
      ...['--backend-config', JSON.stringify(backend), '--checkpoints-base', join(folder, 'checkpoints')],
      ...['--database-url', `sqlite:///${join(folder, 'tinker.db')}`],
    ],
    {
      detached: true,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...environment,
        HOME: folder,
        HF_HUB_OFFLINE: '1',
        JAX_PLATFORMS: 'cpu',
        JAX_COMPILATION_CACHE_DIR: cache,
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: '0',
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: '-1',
        PYTHONDONTWRITEBYTECODE: '1',
      },
    },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-20_000)
    })
  const url = `http://127.0.0.1:${port}`
  const server: SkyrlServer = {
    url,
    async [Symbol.asyncDispose]() {
      await stopGroup(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
  try {
    for (const end = Date.now() + 300_000; ; await sleep(500)) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`SkyRL ended before it was ready:\n${log}`)
      if (Date.now() > end) throw new Error(`SkyRL was not ready after five minutes:\n${log}`)
      if (await describeService({ url, patienceMs: 1 }).catch(() => null)) return server
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}
