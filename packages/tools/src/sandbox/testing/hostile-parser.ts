import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { ToolError } from '@aworld-train/core'

export interface HostileOptions {
  readonly what: string
  readonly path?: string
  readonly port?: number
}

/** A parser that misbehaves as its options ask. */
export default async function parse(bytes: Uint8Array, { what, path = '', port = 0 }: HostileOptions): Promise<unknown> {
  switch (what) {
    case 'echo':
      console.log('a library says something')
      return { text: Buffer.from(bytes).toString('latin1'), bytes: bytes.length }
    case 'nothing':
      return undefined
    case 'throw':
      throw new ToolError('The file is damaged; try another.')
    case 'spin':
      for (;;);
    case 'heap': {
      const kept: string[] = []
      for (let index = 0; ; index++) kept.push(`${index}`.repeat(1_000))
    }
    case 'buffers': {
      const kept: Buffer[] = []
      for (;;) {
        kept.push(Buffer.alloc(10_000_000, 1))
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    }
    case 'long':
      return 'x'.repeat(2_000_000)
    case 'exit':
      process.exit(7)
      break
    case 'read':
      return readFileSync(path, 'utf8')
    case 'write':
      return writeFileSync(path, 'x')
    case 'environment':
      return process.env
    case 'program':
      return execFileSync('id').toString()
    case 'thread':
      return new Worker('1', { eval: true }).threadId
    case 'connect':
      return new Promise((resolve, reject) => connect(port, '127.0.0.1', () => resolve('connected')).on('error', reject))
    case 'fetch':
      return (await fetch(`http://127.0.0.1:${port}/`)).status
  }
  throw new Error(`unknown: ${what}`)
}
