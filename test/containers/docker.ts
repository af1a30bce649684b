import { execFile, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { repository } from '../support/run-cli.ts'
import { findNpm } from '../support/run-npm.ts'

const run = promisify(execFile)
const startMs = 60_000
/** Certificates of this machine, which a network may need. */
const certificates = '/etc/ssl/certs/ca-certificates.crt'

/** A Docker of these tests alone. */
export interface TestDocker {
  /** Address of its socket. */
  readonly host: string
  /** Image of the environment, built from `env/Dockerfile`. */
  readonly image: string
}

/** Runs Docker's client, and resolves to what it printed on both outputs. */
export async function docker(host: string, ...args: readonly string[]): Promise<string> {
  // The classic builder needs no plug-in of the client.
  const env = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' }
  const { stdout, stderr } = await run('docker', args, { env, maxBuffer: 2 ** 26 })
  return `${stdout}${stderr}`.trim()
}

/** Starts a daemon without a bridge, so that it leaves the network of this machine as it is, and builds the image. */
export async function startDocker(): Promise<{ readonly testDocker: TestDocker; close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'aworld-train-docker-'))
  const host = `unix://${join(folder, 'docker.sock')}`
  const daemon = spawn(
    'dockerd',
    [
      ...['--host', host, '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid')],
      ...['--bridge', 'none', '--iptables=false', '--ip6tables=false'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let log = ''
  daemon.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = `${log}${text}`.slice(-10_000)
  })
  const ended = new Promise<void>((resolve) => daemon.once('close', () => resolve()).once('error', () => resolve()))
  const close = async () => {
    const ids = await docker(host, 'ps', '--all', '--quiet').catch(() => '')
    if (ids !== '') await docker(host, 'rm', '--force', ...ids.split('\n')).catch(() => {})
    daemon.kill('SIGTERM')
    await ended
    // The daemon leaves the network namespace of its containers mounted.
    for (const [, path = ''] of readFileSync('/proc/self/mounts', 'utf8').matchAll(/^\S+ (\S+) /gm))
      if (path.startsWith(`${folder}/`)) execFileSync('umount', ['--lazy', path])
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const deadline = Date.now() + startMs
    while (!(await docker(host, 'version').catch(() => ''))) {
      if (daemon.exitCode !== null || Date.now() > deadline) throw new Error(`dockerd did not start:\n${log}`)
      await sleep(200)
    }
    const base = await buildBase(host, join(folder, 'base'))
    return { testDocker: { host, image: await buildImage(host, join(folder, 'env'), base) }, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A root file system of Debian and this Node, in place of an image from a registry. */
async function buildBase(host: string, folder: string): Promise<string> {
  mkdirSync(folder)
  const [, codename = ''] = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  const [mirror = ''] = /https?:\S+/.exec(execFileSync('apt-cache', ['policy', 'base-files'], { encoding: 'utf8' })) ?? []
  const archive = join(folder, 'root.tar')
  await run('mmdebstrap', ['--quiet', '--variant=minbase', '--include=ca-certificates', codename, archive, mirror])
  copyFileSync(process.execPath, join(folder, 'node'))
  cpSync(dirname(dirname(findNpm())), join(folder, 'npm'), { recursive: true, dereference: true })
  copyFileSync(certificates, join(folder, 'certificates'))
  writeFileSync(
    join(folder, 'Dockerfile'),
    `FROM scratch
ADD root.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
COPY certificates ${certificates}
ENV NODE_EXTRA_CA_CERTS=${certificates}
`,
  )
  await docker(host, 'build', '--quiet', '--tag', 'base', folder)
  return 'base'
}

/** The image as the guide has it built, but for the packages of media, documents and browser. */
async function buildImage(host: string, folder: string, base: string): Promise<string> {
  cpSync(join(repository, 'env'), folder, { recursive: true, filter: (path) => !path.endsWith('.tgz') && !path.endsWith('secrets') })
  const env = { ...process.env, npm_execpath: findNpm() }
  await run(process.execPath, [join(repository, 'scripts/pack.ts'), join(folder, 'packages')], { cwd: repository, env })
  const registry = (await run(process.execPath, [findNpm(), 'config', 'get', 'registry'], { cwd: tmpdir() })).stdout.trim()
  const args = [`BASE_IMAGE=${base}`, 'PACKAGES=', `NPM_CONFIG_REGISTRY=${registry}`]
  await docker(host, 'build', '--network', 'host', ...args.flatMap((each) => ['--build-arg', each]), '--tag', 'environment', folder)
  return 'environment'
}
