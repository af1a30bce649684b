/** Whether an event of Chat Completions has only the usage. */
export const onlyUsage = (event: string): boolean => /"choices"\s*:\s*\[\s*\]/.test(event) && event.includes('"usage"')

const noBytes: Buffer = Buffer.alloc(0)

/** More bytes than an event with only the usage has. A longer event is not held back until it is whole. */
const longestUsage = 64 * 1024

/** Index after the last event that certainly ends in `bytes`; 0 if none does. */
function endOfEvents(bytes: Buffer): number {
  const [plain, carriage] = [bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\n\r\n')]
  return Math.max(plain < 0 ? 0 : plain + 2, carriage < 0 ? 0 : carriage + 3)
}

/** Removes the event that has only the usage from a stream. All other bytes stay as they are. */
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

  /** Bytes after the last event that was passed on. */
  rest(): Buffer {
    return this.#rest
  }
}
