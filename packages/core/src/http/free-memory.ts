/**
 * Gives back the memory of a buffer that nobody reads any more. Left to the garbage collector, what large bodies were read into
 * brings a collection of the whole heap every few hundred of them. Memory that other buffers lie in is left alone.
 */
export function freeMemory({ byteOffset, byteLength, buffer }: Uint8Array): void {
  if (byteLength > 0 && byteOffset === 0 && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
