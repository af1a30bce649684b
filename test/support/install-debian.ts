import { spawnSync } from 'node:child_process'

/** Installs the Debian packages of missing programs, separated by spaces, if this process may; otherwise throws with the packages to install. */
export function installDebian(packages: Readonly<Record<string, string>>): void {
  const missing = () =>
    Object.entries(packages)
      .filter(([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      .flatMap(([, names]) => names.split(' '))
  if (missing().length === 0) return
  if (process.getuid?.() === 0) {
    const run = (...args: string[]) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    run('update', '-qq')
    run('install', '-y', '-qq', '--no-install-recommends', ...missing())
  }
  if (missing().length > 0) throw new Error(`These tests need programs that are not there; as root: apt-get install ${missing().join(' ')}`)
}
