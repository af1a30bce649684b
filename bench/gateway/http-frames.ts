const headEnd = Buffer.from('\r\n\r\n')
const lastChunk = '0\r\n\r\n'

/**
 * Finds where messages of HTTP/1.1 end in the bytes of one connection, for programs that must cost less than what they measure.
 * It trusts its peer: a body has a content-length or is chunked, and requests are not pipelined.
 */
export class HttpFrames {
  #head: Buffer | null = null
  #missing = 0
  #chunked = false
  #tail = ''
  #inBody = false
  /** First and last bytes of the body, as Latin-1. */
  start = ''
  end = ''
  bodyLength = 0
  firstLine = ''
  /** The whole body, where `start` names a plan. */
  body = ''

  /** Whether `data` ends a message. */
  push(data: Buffer): boolean {
    let body = data
    if (!this.#inBody) {
      const all = this.#head ? Buffer.concat([this.#head, data]) : data
      const at = all.indexOf(headEnd)
      if (at < 0) {
        this.#head = all
        return false
      }
      this.#head = null
      const head = all.toString('latin1', 0, at)
      this.firstLine = head.slice(0, head.indexOf('\r\n') < 0 ? head.length : head.indexOf('\r\n'))
      const length = /content-length: *(\d+)/i.exec(head)
      this.#chunked = !length && /transfer-encoding: *chunked/i.test(head)
      this.#missing = length ? Number(length[1]) : 0
      this.#inBody = true
      this.#tail = ''
      this.start = ''
      this.end = ''
      this.bodyLength = 0
      this.body = ''
      body = all.subarray(at + 4)
    }
    if (body.length > 0) {
      if (this.start.length < 512) this.start += body.toString('latin1', 0, 512 - this.start.length)
      this.end = body.length >= 512 ? body.toString('latin1', body.length - 512) : (this.end + body.toString('latin1')).slice(-512)
      this.bodyLength += body.length
      this.body = this.start.includes('plan ') ? this.body + body.toString('latin1') : ''
    }
    if (this.#chunked) {
      this.#tail = (this.#tail + body.toString('latin1', Math.max(0, body.length - 8))).slice(-8)
      if (!this.#tail.endsWith(lastChunk)) return false
    } else {
      this.#missing -= body.length
      if (this.#missing > 0) return false
    }
    this.#inBody = false
    return true
  }
}
