import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const workspace = fileURLToPath(new URL('..', import.meta.url))
const windows = process.platform === 'win32'
const noSignals = 'Windows has no signals that a process can be sent'

/** A workspace of one linked package: the one that carries a Node for this platform. */
let folder: string
let home: string
const children: ChildProcess[] = []

beforeEach(() => {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'aworld train launcher ')))
  folder = join(parent, 'a work space')
  home = join(parent, 'home')
  const platformNode = nodePackageOfThisPlatform()
  for (const path of ['scripts', 'vendor/node/bin']) mkdirSync(join(folder, path), { recursive: true })
  mkdirSync(home)
  copyFileSync(join(workspace, 'scripts', 'launch.mjs'), join(folder, 'scripts', 'launch.mjs'))
  copyFileSync(join(workspace, '.npmrc'), join(folder, '.npmrc'))
  if (windows) copyFileSync(process.execPath, join(folder, 'vendor/node/bin/node.exe'))
  else symlinkSync(process.execPath, join(folder, 'vendor/node/bin/node'))
  writeJson('vendor/node/package.json', { name: platformNode, version: '1.0.0' })
  const manifest = { name: 'a-workspace', version: '1.0.0', dependencies: { [platformNode]: 'file:vendor/node' } }
  writeJson('package.json', manifest)
  writeJson('package-lock.json', {
    ...{ name: manifest.name, version: manifest.version, lockfileVersion: 3, requires: true },
    packages: {
      '': manifest,
      [`node_modules/${platformNode}`]: { resolved: 'vendor/node', link: true },
      'vendor/node': { name: platformNode, version: '1.0.0' },
    },
  })
  writeFileSync(
    join(folder, 'print.mjs'),
    `process.stdout.write(JSON.stringify({ args: process.argv.slice(2), version: process.version, cwd: process.cwd(), nodeOptions: process.env.NODE_OPTIONS, npm: process.env.npm_execpath }))
     process.exitCode = Number(process.env.EXIT_CODE ?? 0)`,
  )
  writeFileSync(
    join(folder, 'signals.mjs'),
    `import { writeFileSync } from 'node:fs'
     const seen = []
     for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => {
       seen.push(name)
       if (seen.length === 1) setTimeout(() => { writeFileSync(process.argv[2], seen.join()); process.exit(7) }, 600)
     })
     setTimeout(() => process.exit(1), 120_000)
     console.log('ready')`,
  )
})

afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  rmSync(join(folder, '..'), { recursive: true, force: true })
})

function writeJson(path: string, value: unknown): void {
  writeFileSync(join(folder, path), JSON.stringify(value, null, 2))
}

function nodePackageOfThisPlatform(): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(workspace, 'package.json'), 'utf8'))
  const platform = windows ? 'win' : process.platform
  const found = Object.keys(optionalDependencies).find((name) => name.endsWith(`${platform}-${process.arch}`))
  if (!found) throw new Error(`package.json names no Node for ${process.platform}-${process.arch}`)
  return found
}

/** The folders of PATH without those that npm puts before it. */
function systemPath(): string {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'))
    .join(delimiter)
}

interface Options {
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly node?: string
  readonly before?: readonly string[]
}

function start({ args = ['run', 'print.mjs'], env = {}, node = process.execPath, before = [] }: Options = {}): ChildProcess {
  const [file = node, ...rest] = [...before, node, join(folder, 'scripts', 'launch.mjs'), ...args]
  const child = spawn(file, rest, {
    cwd: folder,
    env: { PATH: systemPath(), HOME: home, ...(windows ? { SystemRoot: process.env['SystemRoot'], USERPROFILE: home } : {}), ...env },
    stdio: 'pipe',
  })
  children.push(child)
  return child
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

async function endOf(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (text) => {
    stdout += text
  })
  child.stderr?.on('data', (text) => {
    stderr += text
  })
  const { promise, resolve } = Promise.withResolvers<Ended>()
  child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  return await promise
}

const launch = async (options: Options = {}) => await endOf(start(options))

async function ready(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.stdout?.on('data', (text) => {
    if (String(text).includes('ready')) resolve()
  })
  child.once('exit', () => reject(new Error('ended before it was ready')))
  await promise
}

function isOnPath(name: string): boolean {
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined
}

describe('the launcher', () => {
  it('installs in a path with spaces, passes arguments and exit codes, and installs again only when the lock changed', async () => {
    const first = await launch({ args: ['run', 'print.mjs', '--name', 'two words', '$HOME'], env: { EXIT_CODE: '7' } })
    expect(first).toMatchObject({ code: 7, stderr: expect.stringContaining('Installing packages') })
    expect(JSON.parse(first.stdout)).toMatchObject({ args: ['--name', 'two words', '$HOME'], cwd: folder })

    const second = await launch()
    expect(second).toMatchObject({ code: 0, stderr: '' })

    writeFileSync(join(folder, 'package-lock.json'), `${readFileSync(join(folder, 'package-lock.json'), 'utf8')}\n`)
    expect((await launch()).stderr).toContain('Installing packages')
  })

  it.each([
    ['not set', undefined],
    ['not there', join(tmpdir(), 'there', 'is', 'no', 'such', 'home')],
  ])('works where HOME is %s', async (_, value) => {
    expect(await launch({ env: { HOME: value } })).toMatchObject({ code: 0 })
  })

  it('keeps the NODE_OPTIONS that it finds', async () => {
    const { stdout } = await launch({ env: { NODE_OPTIONS: '--max-old-space-size=2048 --no-warnings' } })
    expect(JSON.parse(stdout).nodeOptions).toBe('--max-old-space-size=2048 --no-warnings')
  })

  it('tells its children where npm is', async () => {
    const { stdout } = await launch()
    expect(JSON.parse(stdout).npm).toMatch(/npm-cli\.js$/)
  })

  it('finds npm by PATH alone', async (context) => {
    if (windows) return context.skip('npm is linked by a symbolic link here, which Windows asks a privilege for')
    const npm = JSON.parse((await launch()).stdout).npm as string
    const bin = join(home, 'bin')
    mkdirSync(bin)
    symlinkSync(npm, join(bin, 'npm'))
    const node = join(bin, 'node')
    copyFileSync(process.execPath, node)
    rmSync(join(folder, 'node_modules'), { recursive: true })
    const { code, stdout, stderr } = await launch({ node, env: { PATH: bin } })
    expect(stderr).toContain('Installing packages')
    expect({ code, npm: JSON.parse(stdout).npm }).toEqual({ code: 0, npm })
  })

  it('installs once where two start at the same moment', async () => {
    const ends = await Promise.all([launch(), launch(), launch()])
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(ends.filter(({ stderr }) => stderr.includes('Installing packages'))).toHaveLength(1)
  })

  it('passes over the lock of a process that died', async () => {
    const dead = spawnSync(process.execPath, ['-e', '']).pid
    mkdirSync(join(folder, '.aworld-train'))
    writeFileSync(join(folder, '.aworld-train', 'install.lock'), String(dead))
    expect(await launch()).toMatchObject({ code: 0 })
    expect(existsSync(join(folder, '.aworld-train', 'install.lock'))).toBe(false)
  })

  it('says what failed when npm ci fails, and tries again the next time', async () => {
    const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
    writeFileSync(join(folder, 'package-lock.json'), '{')
    expect(await launch()).toMatchObject({ code: 1, stderr: expect.stringContaining('npm ci did not end well') })
    writeFileSync(join(folder, 'package-lock.json'), lock)
    expect(await launch()).toMatchObject({ code: 0 })
  })

  it('ends with 2 for a command that is not there', async () => {
    expect(await launch({ args: ['toString'] })).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage:') })
  })

  it.for(['SIGINT', 'SIGTERM'] as const)('passes %s on once, and the exit code back', async (signal, context) => {
    if (windows) return context.skip(noSignals)
    const child = start({ args: ['run', 'signals.mjs', 'seen'] })
    const end = endOf(child)
    await ready(child)
    child.kill(signal)
    expect(await end).toMatchObject({ code: 7 })
    expect(readFileSync(join(folder, 'seen'), 'utf8')).toBe(signal)
  })

  it('ends by the signal that ended its child', async (context) => {
    if (windows) return context.skip(noSignals)
    writeFileSync(join(folder, 'killed.mjs'), "process.kill(process.pid, 'SIGKILL')")
    expect(await launch({ args: ['run', 'killed.mjs'] })).toMatchObject({ signal: 'SIGKILL' })
  })

  it('lets Ctrl-C of a terminal reach its child once', async (context) => {
    if (process.platform !== 'linux' || !isOnPath('script')) return context.skip('util-linux "script", which makes a terminal, is not here')
    const command = [process.execPath, join(folder, 'scripts', 'launch.mjs'), 'run', 'signals.mjs', 'seen']
      .map((part) => `'${part}'`)
      .join(' ')
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: { PATH: systemPath(), HOME: home, SHELL: '/bin/sh' },
      stdio: 'pipe',
    })
    children.push(child)
    const end = endOf(child)
    await ready(child)
    child.stdin?.write('\x03')
    await end
    expect(readFileSync(join(folder, 'seen'), 'utf8')).toBe('SIGINT')
  })

  it('works on one core', async (context) => {
    if (!isOnPath('taskset')) return context.skip('"taskset", which binds a process to a core, is not here')
    expect(await launch({ before: ['taskset', '-c', '0'] })).toMatchObject({ code: 0 })
  })

  it('runs commands under the Node that npm installed where its own is too old', async (context) => {
    const old = systemPath()
      .split(delimiter)
      .map((path) => join(path, windows ? 'node.exe' : 'node'))
      .find((path) => existsSync(path) && /^v(?:20|21)\./.test(spawnSync(path, ['--version']).stdout.toString()))
    if (!old) return context.skip('no Node 20 or 21 is on PATH')
    const { code, stdout } = await launch({ node: old })
    expect({ code, version: JSON.parse(stdout).version }).toEqual({ code: 0, version: process.version })
  })
})
