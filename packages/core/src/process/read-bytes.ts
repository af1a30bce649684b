import type { ByteStream } from '../contracts/sandbox.ts'

/** The bytes of a file in one piece. Rejects with what they end with, where that is an error. */
export async function readBytes(bytes: Uint8Array | ByteStream): Promise<Uint8Array> {
  return bytes instanceof Uint8Array ? bytes : Buffer.concat(await Array.fromAsync(bytes.chunks))
}
