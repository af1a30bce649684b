/** Whether an event of Chat Completions has nothing but the usage. */
export const onlyUsage = (event: string): boolean => /"choices"\s*:\s*\[\s*\]/.test(event) && event.includes('"usage"')

const noBytes: Buffer = Buffer.alloc(0)

/** More bytes than an event has that holds nothing but the usage; an event that is longer is not kept until it is whole. */
const longestUsage = 64 * 1024

/** Index behind the last event that certainly ends in `bytes`; 0 where none does. */
function endOfEvents(bytes: Buffer): number {
  const [plain, carriage] = [bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\n\r\n')]
  return Math.max(plain < 0 ? 0 : plain + 2, carriage < 0 ? 0 : carriage + 3)
}

/** Takes the event that has nothing but the usage out of a stream, whose other bytes stay as they are. */
export class UsageFilter {
  #rest = noBytes

  push(chunk: Buffer): Buffer {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const whole = endOfEvents(bytes)
    const end = bytes.length - whole > longestUsage ? bytes.length : whole
    this.#rest = bytes.subarray(end)
    const events = bytes.subarray(0, end)
    if (!events.includes('"usage"')) return events
    const kept = events
      .toString('latin1')
      .split(/(?<=\n\r?\n)/)
      .filter((event) => !onlyUsage(event))
    return Buffer.from(kept.join(''), 'latin1')
  }

  /** What came behind the last event that left. */
  rest(): Buffer {
    return this.#rest
  }
}
