// Installs the frameworks of examples/any-agent, and Python's client, where they are missing or their lock changed.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { installLocked } from '../support/install-locked.ts'
import { pythonEnvironment } from '../support/python-environment.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** An interpreter that has the packages of the example's requirements.txt. */
    readonly python: string
  }
}

const example = fileURLToPath(new URL('../../examples/any-agent', import.meta.url))

export default async function setup({ provide }: TestProject): Promise<void> {
  await installLocked(example)
  provide('python', await pythonEnvironment({ name: 'any-agent', requirements: join(example, 'requirements.txt') }))
}
