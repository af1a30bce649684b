import { spawn } from 'node:child_process'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { installLocked } from '../support/install-locked.ts'
import { installMcpClient } from './mcp-client.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const isRoot = process.getuid?.() === 0

/** A user that owns nothing and is in no list. */
const plainUser = '48123'

const ownTests = (names: readonly string[]) => names.map((name) => `test/environment/${name}.test.ts`)
const serverTests = (names: readonly string[]) => names.map((name) => `packages/tools/src/servers/${name}/server.test.ts`)

/** Runs tests as a user without rights: files of the suite, and flags of its runner. */
async function runAsPlainUser(args: readonly string[]): Promise<void> {
  // The repository may stand where that user cannot go, so it is mounted where everybody can, for this process alone, with room for what
  // Vite writes beside its packages.
  const node = process.execPath.startsWith(root) ? join('/mnt', relative(root, process.execPath)) : process.execPath
  const script = `set -e; mount --bind "$0" /mnt; cd /mnt/node_modules; mkdir -p .vite .vite-temp
    for folder in .vite .vite-temp; do mount -t tmpfs tmpfs $folder; done
    cd /mnt; exec setpriv --reuid ${plainUser} --regid ${plainUser} --clear-groups "$@"`
  const child = spawn(
    'unshare',
    [...['--mount', '--propagation', 'private', 'sh', '-c', script, root], ...[node, 'scripts/test.ts', '--suite', 'environment', ...args]],
    { env: { PATH: process.env['PATH'], HOME: '/tmp', NODE_OPTIONS: process.env['NODE_OPTIONS'] }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const exitCode = await new Promise((resolve) => child.once('close', resolve))
  expect({ exitCode, summary: output.trim().split('\n').at(-1) }, output.slice(-6000)).toEqual({
    exitCode: 0,
    summary: expect.stringMatching(/^\d+ passed, 0 failed$/),
  })
}

const jailsAndLeases = ownTests(['bubblewrap', 'probes', 'copies', 'killed-server', 'leased-shells', 'egress', 'neighbours', 'browser'])

test.runIf(isRoot)('jails and leases hold for a process of a plain user', { timeout: 600_000, tags: ['quick'] }, () =>
  runAsPlainUser(['--quick', ...jailsAndLeases]),
)

test.runIf(isRoot)('tools, clients and bad input do', { timeout: 1_800_000 }, async () => {
  // What that user cannot install.
  await installLocked(join(root, 'test/environment/conformance'))
  await installMcpClient()
  await runAsPlainUser([
    ...jailsAndLeases,
    ...ownTests(['browser-bad-input', 'conformance', 'damaged-documents', 'desktop', 'jailed-servers', 'killed', 'killed-while-starting']),
    ...ownTests(['loopback-ports', 'office-documents', 'parsers', 'python-client', 'ready-browsers', 'reaped', 'ssrf']),
    ...serverTests(['code', 'download', 'terminal']),
    ...serverTests(['csv', 'docx', 'googlesearch', 'guard', 'parxiv', 'pdf', 'pptx', 'readweb', 'think', 'txt', 'wayback', 'wiki']),
    'packages/tools/src/servers/recorded-world.test.ts',
  ])
})
