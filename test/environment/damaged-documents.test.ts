import { ToolError } from '@aworld-train/core'
import { openParserJail } from '@aworld-train/tools/sandbox'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batchedParsers } from '../../packages/tools/src/testing/batched-parsers.ts'
import { mutants } from '../../packages/tools/src/testing/mutants.ts'
import { openFileContext } from '../../packages/tools/src/testing/read-file.ts'
import { callServerTool } from '../../packages/tools/src/testing/tool-context.ts'

const numRuns = 5_000

test('thousands of damaged documents end as results or as errors that name the file', { timeout: 600_000 }, async () => {
  const jail = await openParserJail({ isolation: 'bubblewrap' })
  const parsers = batchedParsers(jail, 100)
  const outcomes = await Promise.all(
    fc.sample(mutants, { seed: 5, numRuns }).map(async ({ server, bytes }) => {
      const context = await openFileContext({ file: bytes }, { parsers })
      try {
        return (await callServerTool(server, server.tools[0]!.name, { file_path: 'file' }, context)).text
      } catch (error) {
        if (!(error instanceof ToolError)) throw error
        expect(error.message).toMatch(/^"file" .+\.$/s)
        return null
      }
    }),
  )
  await jail.close()
  expect(outcomes.filter((text) => text !== null).length).toBeGreaterThan(numRuns / 10)
})
