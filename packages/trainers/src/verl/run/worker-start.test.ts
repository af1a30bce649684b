import { describe, expect, it } from 'vitest'
import { createWorkerStart } from './worker-start.ts'

const dead =
  '(raylet) [2026-11-22 00:32:40,160 E 6842 6842] (raylet) worker_pool.cc:660: Some workers of the worker process(7071) have not registered within the timeout. The process is dead, probably it crashed during start.'
const gone = '(raylet) bash: line 1: /gone/python: No such file or directory'

function console(...lines: readonly (string | number)[]) {
  let at = 0
  const start = createWorkerStart({ graceMs: 30_000, now: () => at })
  const failures: (string | null)[] = []
  for (const line of lines) {
    if (typeof line === 'string') start.read(line)
    else at += line
    failures.push(start.failure()?.message ?? null)
  }
  return failures.at(-1) ?? null
}

describe('workers of Ray that do not start', () => {
  it.each([
    ['an interpreter that is not there', [gone, 30_000], /Ray cannot start its workers: bash: line 1: \/gone\/python: No such file/],
    [
      'a process that ends by itself, with what it said',
      ['(raylet) ImportError: libfoo.so.1: cannot open shared object file', 60_000, dead, 30_000],
      /cannot start its workers: ImportError: libfoo\.so\.1.*doctor --engine verl/,
    ],
    ['a process that says nothing', [dead, 31_000], /cannot start its workers: their processes end at once\./],
    ['on a node of a cluster', [gone.replace('(raylet)', '(raylet, ip=10.0.0.2)'), 30_000], /\/gone\/python/],
  ])('%s', (_, lines, message) => expect(console(...lines)).toMatch(message))

  it.each([
    ['before the grace is over', [gone, 29_999]],
    ['where one has spoken since', [gone, 10_000, "(TaskRunner pid=81) TaskRunner's configuration", 60_000]],
    ['where one that ran before ends', ['(pid=81) loading', dead, gone, 60_000]],
    ['where a process is only slow', [dead.replace('dead, probably it crashed', 'still alive, probably it is hanging'), 600_000]],
    ['where verl says so itself', ['bash: line 1: /gone: No such file or directory', 600_000]],
    ['where bash misses something else', ['(raylet) bash: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8)', 600_000]],
  ])('is not said %s', (_, lines) => expect(console(...lines)).toBeNull())
})
