import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'
import type { ScreenImage } from './read-frame.ts'

const compress = promisify(deflate)

/** A frame as a PNG. */
export async function toPng({ width, height, rows }: ScreenImage): Promise<Buffer> {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0])
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([signature, pngChunk('IHDR', header), pngChunk('IDAT', await compress(rows)), pngChunk('IEND', Buffer.alloc(0))])
}

/** A chunk of a PNG, with its length and its checksum. */
export function pngChunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  body.copy(framed, 4)
  framed.writeUInt32BE(crc32(body), body.length + 4)
  return framed
}
