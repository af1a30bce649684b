import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('the agents and these tests have the types of their frameworks', async () => {
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', 'examples/any-agent'], { cwd: root }).catch(
    (error: { stdout: string }) => error,
  )
  // The packages have a check of their own; here some frameworks bring another version of Node's types.
  expect(stdout.split('\n').filter((line) => /^(examples|test)\//.test(line))).toEqual([])
})
