import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from './write-json-atomically.ts'

export interface SegmentPosition {
  readonly segment: number
  readonly offset: number
}

/** Appends to the files of `segments/`. One call at a time. */
export interface SegmentWriter {
  /** Appends `chunks` one after the other. Resolves, when they are durable, to where they begin. After a failure nothing was appended. */
  append(chunks: readonly Uint8Array[]): Promise<SegmentPosition>
  close(): Promise<void>
}

export interface SegmentWriterOptions {
  readonly directory: string
  /** End of the last record that the database names. Bytes after it belong to no record and are cut off. */
  readonly end: SegmentPosition
  /** A segment that exceeds this is followed by a new one. */
  readonly maxBytes?: number | undefined
}

/** Opens the segments of a run to append at `end`. */
export async function createSegmentWriter({ directory, end, maxBytes = 64 * 1024 * 1024 }: SegmentWriterOptions): Promise<SegmentWriter> {
  await mkdir(directory, { recursive: true })
  let { segment, offset } = end
  for (const other of (await segmentSizes(directory)).keys()) {
    if (other > segment) await rm(segmentPath(directory, other))
  }
  let file = await open(segmentPath(directory, segment), constants.O_RDWR | constants.O_CREAT)
  await file.truncate(offset)
  await syncDirectory(directory)

  async function rotate(): Promise<void> {
    const next = await open(segmentPath(directory, segment + 1), 'w+')
    await syncDirectory(directory)
    await file.close()
    file = next
    segment++
    offset = 0
  }

  return {
    async append(chunks) {
      if (offset >= maxBytes) await rotate()
      const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      const begin = { segment, offset }
      try {
        await writeAll(file, bytes, offset)
      } catch (error) {
        await file.truncate(offset).catch(() => {})
        throw error
      }
      offset += bytes.byteLength
      return begin
    },
    close: () => file.close(),
  }
}

export function segmentPath(directory: string, segment: number): string {
  return join(directory, `${String(segment).padStart(6, '0')}.bin`)
}

/** The size in bytes of every segment, by its number. */
export async function segmentSizes(directory: string): Promise<Map<number, number>> {
  const sizes = new Map<number, number>()
  for (const name of await readdir(directory).catch(() => [])) {
    const number = /^(\d+)\.bin$/.exec(name)?.[1]
    if (number) sizes.set(Number(number), (await stat(join(directory, name))).size)
  }
  return sizes
}

async function writeAll(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, offset + done)
    done += bytesWritten
  }
  await file.datasync()
}
