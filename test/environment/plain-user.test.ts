// @module-tag quick
import { spawn } from 'node:child_process'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** A user that owns nothing and is in no list. */
const plainUser = '48123'

/** Suites of the jail, for a user without rights. */
const files = [
  'bubblewrap',
  'parsers',
  'probes',
  'killed',
  'killed-server',
  'killed-while-starting',
  'leased-shells',
  'jailed-servers',
  'tool-servers',
].map((name) => `test/environment/${name}.test.ts`)

test.runIf(process.getuid?.() === 0)('all of it holds for a process of a plain user', { timeout: 280_000 }, async () => {
  // The repository may stand where that user cannot go, so it is mounted where everybody can, for this process alone, with room for what
  // Vite writes beside its packages.
  const node = process.execPath.startsWith(root) ? join('/mnt', relative(root, process.execPath)) : process.execPath
  const script = `set -e; mount --bind "$0" /mnt; cd /mnt/node_modules; mkdir -p .vite .vite-temp
    for folder in .vite .vite-temp; do mount -t tmpfs tmpfs $folder; done
    cd /mnt; exec setpriv --reuid ${plainUser} --regid ${plainUser} --clear-groups "$@"`
  const child = spawn(
    'unshare',
    [
      ...['--mount', '--propagation', 'private', 'sh', '-c', script, root],
      ...[node, 'scripts/test.ts', '--suite', 'environment', ...files],
    ],
    { env: { PATH: process.env['PATH'], HOME: '/tmp', NODE_OPTIONS: process.env['NODE_OPTIONS'] }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
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
})
