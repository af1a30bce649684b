import type { Duplex } from 'node:stream'
import { answerChallenge } from './vnc-password.ts'

/** Security type "VNC Authentication" of the Remote Framebuffer Protocol (RFC 6143), of which this file is the part that a still needs. */
const vncAuthentication = 2
/** 32 bits a pixel, 24 of them colour, little-endian, red first: bytes red, green, blue and one without meaning. */
const pixelFormat = Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0])
/** The list of encodings with one: raw. */
const rawEncoding = Buffer.from([2, 0, 0, 1, 0, 0, 0, 0])

/** The picture of a screen. */
export interface ScreenImage {
  readonly width: number
  readonly height: number
  /** Its rows as PNG has them before compression: a byte that names no filter, then red, green and blue of every pixel. */
  readonly rows: Buffer
}

/** Reads the whole picture of a VNC server once. The connection is used up. */
export async function readFrame(connection: Duplex, password: string, signal: AbortSignal): Promise<ScreenImage> {
  const bytes = createByteReader(connection, signal)
  try {
    await bytes.take(12)
    connection.write('RFB 003.008\n')
    const [count] = await bytes.take(1)
    if (!(await bytes.take(count!)).includes(vncAuthentication)) throw new Error('The VNC server wants no password.')
    connection.write(Buffer.from([vncAuthentication]))
    connection.write(answerChallenge(password, await bytes.take(16)))
    if ((await bytes.take(4)).readUInt32BE() !== 0) throw new Error('The VNC server refused the password.')
    // Others may watch too.
    connection.write(Buffer.from([1]))
    const start = await bytes.take(24)
    const [width, height] = [start.readUInt16BE(0), start.readUInt16BE(2)]
    await bytes.take(start.readUInt32BE(20))
    const request = Buffer.alloc(10)
    request[0] = 3
    request.writeUInt16BE(width, 6)
    request.writeUInt16BE(height, 8)
    connection.write(Buffer.concat([pixelFormat, rawEncoding, request]))
    return { width, height, rows: await readUpdate(bytes, width, height) }
  } finally {
    connection.destroy()
  }
}

/** Reads messages up to the update that was asked for. */
async function readUpdate(bytes: ByteReader, width: number, height: number): Promise<Buffer> {
  for (let [type] = await bytes.take(1); type !== 0; [type] = await bytes.take(1)) {
    // Besides an update there are a bell and a clipboard; colour maps are for other formats.
    if (type === 3) await bytes.take((await bytes.take(7)).readUInt32BE(3))
    else if (type !== 2) throw new Error(`The VNC server sent a message of type ${type}.`)
  }
  const stride = 1 + 3 * width
  const rows = Buffer.alloc(stride * height)
  const rectangles = (await bytes.take(3)).readUInt16BE(1)
  for (let index = 0; index < rectangles; index++) {
    const head = await bytes.take(12)
    const [left, top, columns, lines] = [0, 2, 4, 6].map((offset) => head.readUInt16BE(offset)) as [number, number, number, number]
    if (head.readInt32BE(8) !== 0 || left + columns > width || top + lines > height) throw new Error('The VNC server sent no raw picture.')
    const pixels = await bytes.take(4 * columns * lines)
    for (let from = 0, y = top; y < top + lines; y++)
      for (let to = y * stride + 1 + 3 * left, x = 0; x < columns; x++, from += 4, to += 3) {
        rows[to] = pixels[from]!
        rows[to + 1] = pixels[from + 1]!
        rows[to + 2] = pixels[from + 2]!
      }
  }
  return rows
}

interface ByteReader {
  /** Resolves to the next bytes. Rejects when the connection ends before, or the signal aborts. */
  take(count: number): Promise<Buffer>
}

function createByteReader(connection: Duplex, signal: AbortSignal): ByteReader {
  const chunks = connection[Symbol.asyncIterator]()
  let rest: Buffer[] = []
  let size = 0
  signal.addEventListener('abort', () => connection.destroy(signal.reason), { once: true })
  return {
    async take(count) {
      while (size < count) {
        const next = await chunks.next()
        signal.throwIfAborted()
        if (next.done) throw new Error('The VNC server closed the connection.')
        rest.push(next.value)
        size += next.value.length
      }
      const all = rest.length === 1 ? rest[0]! : Buffer.concat(rest)
      rest = [all.subarray(count)]
      size = all.length - count
      return all.subarray(0, count)
    },
  }
}
