import { ToolError } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mutants } from '../testing/mutants.ts'
import { readFile } from '../testing/read-file.ts'

const numRuns = Number(process.env['MUTANTS'] ?? 150)

test('a damaged document ends as a result, or as an error that names the file', async () => {
  let readable = 0
  await fc.assert(
    fc.asyncProperty(mutants, async ({ server, bytes }) => {
      try {
        await readFile(server, bytes)
        readable += 1
      } catch (error) {
        if (!(error instanceof ToolError)) throw error
        expect(error.message).toMatch(/^"file" .+\.$/s)
      }
    }),
    { seed: 12, numRuns },
  )
  expect(readable).toBeGreaterThan(numRuns / 10)
  expect(readable).toBeLessThan(numRuns)
})
