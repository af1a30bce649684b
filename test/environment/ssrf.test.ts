// @module-tag quick
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const publicAddress = '93.184.216.34'
const addresses = [
  ...['10.0.0.5/32', '172.16.0.1/32', '192.168.1.1/32', '169.254.169.254/32', '100.64.0.1/32', '100.100.100.200/32', '198.18.0.1/32'],
  ...['192.0.0.192/32', '192.0.2.1/32', '198.51.100.1/32', `${publicAddress}/32`],
  ...['fd00::1/128', 'fc00::5/128', '64:ff9b::7f00:1/128', '2002:7f00:1::/128'],
]

/** Runs the canary in a network without a way out, where every one of `addresses` is this machine and names are the canary's. */
async function runCanary() {
  const folder = await mkdtemp(join(tmpdir(), 'ssrf-'))
  try {
    const resolver = join(folder, 'resolv.conf')
    await writeFile(resolver, 'nameserver 127.0.0.53\noptions timeout:1 attempts:1\n')
    const script = [
      'set -e',
      'ip link set lo up',
      ...addresses.map((address) => `ip addr add ${address} dev lo`),
      'mount --bind "$0" /etc/resolv.conf',
      'exec "$@"',
    ].join('\n')
    const rights = process.getuid?.() === 0 ? [] : ['--map-root-user']
    const canary = fileURLToPath(new URL('ssrf-canary.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(
      'unshare',
      [...rights, '--net', '--mount', '--propagation', 'private', 'sh', '-c', script, resolver, process.execPath, canary],
      { timeout: 110_000 },
    )
    return JSON.parse(stdout)
  } finally {
    await rm(folder, { recursive: true })
  }
}

it('no address, name, rebinding or redirect leads a tool to a private address', async () => {
  const { vectors, control, guarded, rebinding, relayed, redirects } = await runCanary()
  expect(vectors).toBeGreaterThanOrEqual(52)
  // Without the guard most of them arrive, so that the canary can see what it is there for.
  expect(control).toBeGreaterThan(25)
  expect([...guarded.odd, ...rebinding.odd, ...relayed.odd, ...redirects.odd]).toEqual([])
  const privately = (reached: readonly string[]) => reached.filter((address) => address !== publicAddress)
  expect([guarded, rebinding, relayed, redirects].flatMap(({ reached }) => privately(reached))).toEqual([])
  expect(rebinding.reached.length).toBeGreaterThan(0)
  expect(relayed.reached.length).toBeGreaterThan(0)
  expect(redirects.reached.length).toBe(30)
})
