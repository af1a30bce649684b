import { spawnSync } from 'node:child_process'

/** Programs that the tests run, and the Debian package of each. */
const programs = { bwrap: 'bubblewrap', ip: 'iproute2', '/usr/bin/python3': 'python3', setpriv: 'util-linux' }

/** Installs what is missing where we may; else says what to install. */
export default function install(): void {
  const missing = () =>
    Object.entries(programs)
      .filter(([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      .map(([, name]) => name)
  if (missing().length === 0) return
  if (process.getuid?.() === 0) {
    const run = (...args: string[]) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    run('update', '-qq')
    run('install', '-y', '-qq', '--no-install-recommends', ...missing())
  }
  if (missing().length > 0) throw new Error(`These tests need parts that are not there; as root: apt-get install ${missing().join(' ')}`)
}
