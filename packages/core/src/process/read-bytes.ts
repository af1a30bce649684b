import type { ByteStream } from '../contracts/sandbox.ts'

/** Reads the bytes of a file in one piece. Rejects with the error that they end with, if there is one. */
export async function readBytes(bytes: Uint8Array | ByteStream): Promise<Uint8Array> {
  return bytes instanceof Uint8Array ? bytes : Buffer.concat(await Array.fromAsync(bytes.chunks))
}
