import type { RunningProgram } from '@aworld-train/core'
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client'

/** Longest message that is read. A longer one ends the program. */
const maxMessageBytes = 16 * 2 ** 20

/** MCP over the pipes of a program in a workspace. */
export class ProgramTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly #program: RunningProgram
  readonly #buffer = new ReadBuffer({ maxBufferSize: maxMessageBytes })

  constructor(program: RunningProgram) {
    this.#program = program
  }

  async start(): Promise<void> {
    const { stdin, stdout, ended } = this.#program
    stdin.on('error', (error) => this.onerror?.(error))
    stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    void ended.then(() => this.onclose?.())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#program.stdin.write(serializeMessage(message))
  }

  async close(): Promise<void> {
    await this.#program.close()
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk)
      for (let message = this.#buffer.readMessage(); message; message = this.#buffer.readMessage()) this.onmessage?.(message)
    } catch (error) {
      this.onerror?.(error as Error)
      void this.close()
    }
  }
}
