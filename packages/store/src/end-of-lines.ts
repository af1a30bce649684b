import type { FileHandle } from 'node:fs/promises'

/** Length of a file up to the end of its last whole line. */
export async function endOfLines(file: FileHandle): Promise<number> {
  const chunk = Buffer.alloc(64 * 1024)
  for (let { size: end } = await file.stat(); end > 0; ) {
    const start = Math.max(0, end - chunk.length)
    const { bytesRead } = await file.read(chunk, 0, end - start, start)
    const lineFeed = chunk.subarray(0, bytesRead).lastIndexOf(0x0a)
    if (lineFeed >= 0) return start + lineFeed + 1
    end = start
  }
  return 0
}
