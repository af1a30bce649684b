import { spawnSync } from 'node:child_process'

const isThere = () => spawnSync('sh', ['-c', 'command -v chromium']).status === 0

/** Installs Debian's Chromium where it is missing and we may; else says what to install. */
export default function install(): void {
  if (isThere()) return
  if (process.getuid?.() === 0) {
    const run = (...args: string[]) => spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    run('update', '-qq')
    run('install', '-y', '-qq', '--no-install-recommends', 'chromium')
  }
  if (!isThere()) throw new Error('These tests need Chromium; as root: apt-get install chromium')
}
