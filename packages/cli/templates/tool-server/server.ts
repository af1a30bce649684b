import { ToolError } from '@aworld-train/core'
import { defineTool, type ToolServer } from '@aworld-train/tools'
import { z } from 'zod'

const maxBytes = 10_000_000

/** Mounted by `aworld-train env start`; its tools are called `example-server__count_words`, and so on. */
const server: ToolServer = {
  name: 'example-server',
  scope: 'files',
  description: 'Says how long texts are.',
  needs: [],
  tools: [
    defineTool({
      name: 'count_words',
      description: 'Counts the words of a text file in the workspace.',
      input: z.object({ file_path: z.string().min(1).describe('Path of the file, such as notes.txt.') }),
      output: z.object({ words: z.int(), lines: z.int() }),
      async call({ file_path }, { workspace, signal }) {
        const text = (await workspace.get(file_path, maxBytes, signal)).toString('utf8')
        // The model reads the message of a ToolError, and can do something about it.
        if (text.includes('\0')) throw new ToolError(`${file_path} is no text file; ask for one that is.`)
        return { words: text.split(/\s+/).filter(Boolean).length, lines: text.split('\n').length - 1 }
      },
      toText: ({ words, lines }) => `${words} words, ${lines} lines`,
    }),
  ],
}

export default server
