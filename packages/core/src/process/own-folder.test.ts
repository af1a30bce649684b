import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { makeOwnFolder, processSpace } from './own-folder.ts'

test('folders of killed processes are removed, those of running ones, of other containers and of others are left', () => {
  const parent = mkdtempSync(join(tmpdir(), 'own-folder-test-'))
  vi.stubEnv('TMPDIR', parent).stubEnv('TEMP', parent)
  try {
    const { pid: ended } = spawnSync(process.execPath, ['-e', ''])
    const make = (name: string) => {
      mkdirSync(join(parent, name, 'lease-1'), { recursive: true })
      return join(parent, name)
    }
    const killed = make(`aworld-train-environment-${processSpace()}-${ended}-abc`)
    const running = make(`aworld-train-environment-${processSpace()}-${process.ppid}-abc`)
    const container = make(`aworld-train-environment-0123abcd-${ended}-abc`)
    const other = make('something-else-1-abc')
    const root = makeOwnFolder('aworld-train-environment-')
    expect([root, killed, running, container, other].map((path) => existsSync(path))).toEqual([true, false, true, true, true])
  } finally {
    vi.unstubAllEnvs()
    rmSync(parent, { recursive: true, force: true })
  }
})
