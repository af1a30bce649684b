import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServerToolContext } from '@aworld-train/tools'
import { openSimulatedSandbox } from '@aworld-train/tools/sandbox'
import server from './server.ts'

const { signal } = new AbortController()

test('words are counted, and a file that is not there is said', async () => {
  const sandbox = await openSimulatedSandbox()
  try {
    const workspace = await sandbox.workspace({}, signal)
    await workspace.put('notes.txt', Buffer.from('two figs\nthree nuts\n'), signal)
    const countWords = (file_path: string) => server.tools[0]!.call({ file_path }, { workspace, signal } as ServerToolContext)
    assert.deepEqual(await countWords('notes.txt'), { words: 4, lines: 2 })
    await assert.rejects(countWords('other.txt'), /other\.txt/)
  } finally {
    await sandbox.close()
  }
})
