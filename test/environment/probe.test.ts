// @module-tag quick
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('print-probe.ts', import.meta.url))

/** What the probe says in a process whose view of the machine was changed, by root and for that process alone. */
async function probeWhere(change: string): Promise<{ ok: boolean; reason?: string; tier: string; notices: string[]; parsers?: string }> {
  const command = ['sh', '-c', `${change} && exec "$@"`, 'sh', process.execPath, script]
  const { stdout } = await promisify(execFile)('unshare', ['--mount', '--propagation', 'private', ...command])
  return JSON.parse(stdout)
}

const cases = {
  'bubblewrap is not installed': [
    'mount --bind /dev/null "$(command -v bwrap)"',
    /^bubblewrap is not installed; run: apt-get install bubblewrap/,
  ],
  'nsenter is not installed': ['mount --bind /dev/null "$(command -v nsenter)"', /^nsenter of util-linux is missing/],
  'user namespaces are off': [
    'exec unshare --user --map-root-user sh -c \'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"\' sh "$@"; true',
    /^This system lets programs make no user namespaces.*sysctl.*--security-opt seccomp=PROFILE.*env\/seccomp\.json/s,
  ],
  'a container hides parts of /proc': [
    'mount -t tmpfs tmpfs /proc/fs',
    /^This container hides parts of \/proc.*--security-opt systempaths=unconfined/,
  ],
} as const

test.runIf(process.getuid?.() === 0).each(Object.entries(cases))(
  'where %s the probe says what to do, and the simulation is taken',
  async (_, [change, reason]) => {
    const { ok, reason: answer, tier, notices, parsers } = await probeWhere(change)
    expect({ ok, answer, tier }).toEqual({ ok: false, answer: expect.stringMatching(reason), tier: 'simulated' })
    expect(notices[0]).toContain(answer)
    // Parsers need no nsenter.
    if (change.includes('nsenter')) return
    const [, why = ''] = parsers!.split('Parsers run in a Node without permissions, not in bubblewrap: ')
    expect(why).toMatch(reason)
  },
)

test.runIf(process.getuid?.() === 0)('where Python is not installed, the notices say so', async () => {
  const { tier, notices } = await probeWhere('mount --bind /dev/null "$(readlink -f /usr/bin/python3)"')
  expect({ tier, notices }).toEqual({
    tier: 'bubblewrap',
    notices: expect.arrayContaining([expect.stringMatching(/Python.*apt-get install python3/)]),
  })
})
