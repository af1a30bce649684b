import { StringDecoder } from 'node:string_decoder'

const colours = /\x1b\[[0-9;?]*[A-Za-z]/g

/** A line of the console without colours and carriage returns, as a progress bar showed it last. */
export function plainLine(line: string): string {
  const text = line.replace(colours, '')
  return text.slice(text.lastIndexOf('\r', text.length - 2) + 1).trimEnd()
}

const maxLineLength = 64 * 1024

/** Calls `onLine` with every line of a stream. A line longer than 64 KiB, such as a progress bar in a pipe, loses its beginning. */
export function readLines(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = (lines.pop() as string).slice(-maxLineLength)
    for (const line of lines) onLine(line)
  })
  stream.on('close', () => {
    if (rest !== '') onLine(rest)
    rest = ''
  })
}
