import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface ControlPlanePrograms {
  readonly etcd: string
  /** API server, controller manager, scheduler and kubectl; its first argument says which. */
  readonly kubernetes: string
}

const version = '1.33.13'
const source = fileURLToPath(new URL('control-plane', import.meta.url))
const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'aworld-train', 'kubernetes')

const hasProgram = (name: string) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0

/** Builds the control plane from Go modules, or finds it where a build with the same sources put it. It takes some twenty minutes of one core, once. */
async function buildKubernetes(): Promise<string> {
  const sources = await Promise.all(['go.mod', 'go.sum', 'main.go'].map((file) => readFile(join(source, file))))
  const digest = createHash('sha256').update(Buffer.concat(sources)).update(process.arch).digest('hex').slice(0, 16)
  const program = join(cache, `kubernetes-${version}-${digest}`)
  if (existsSync(program)) return program
  if (!hasProgram('go')) throw new Error('These tests build Kubernetes from its sources; install Go 1.24 or newer: https://go.dev/dl')
  console.log(`Building Kubernetes ${version}, once; it takes some twenty minutes …`)
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'build-'))
  try {
    await cp(source, folder, { recursive: true })
    const [major, minor] = version.split('.')
    const facts = {
      gitMajor: major,
      gitMinor: minor,
      gitVersion: `v${version}`,
      gitCommit: '0'.repeat(40),
      gitTreeState: 'clean',
      buildDate: '2026-01-01T00:00:00Z',
    }
    const flags = ['-s', '-w', ...Object.entries(facts).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)]
    execFileSync('go', ['build', '-trimpath', '-o', 'kubernetes', '-ldflags', flags.join(' '), '.'], {
      cwd: folder,
      env: { ...process.env, CGO_ENABLED: '0' },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    await rename(join(folder, 'kubernetes'), program)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return program
}

/** Finds etcd, or takes it out of Debian's package, without installing that. */
async function findEtcd(): Promise<string> {
  if (hasProgram('etcd')) return 'etcd'
  const program = join(cache, 'etcd')
  if (existsSync(program)) return program
  if (!hasProgram('apt-get')) throw new Error('These tests need etcd 3.4 or newer on the PATH: https://etcd.io/docs')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-etcd-'))
  try {
    if (process.getuid?.() === 0) spawnSync('apt-get', ['update', '-qq'], { stdio: ['ignore', 'ignore', 'inherit'] })
    execFileSync('apt-get', ['download', '-qq', 'etcd-server'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
    const [file] = (await readdir(folder)).filter((name) => name.endsWith('.deb'))
    execFileSync('dpkg-deb', ['-x', join(folder, file!), join(folder, 'files')])
    await cp(join(folder, 'files/usr/bin/etcd'), `${program}.new`)
    await rename(`${program}.new`, program)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return program
}

export async function findControlPlanePrograms(): Promise<ControlPlanePrograms> {
  return { etcd: await findEtcd(), kubernetes: await buildKubernetes() }
}
