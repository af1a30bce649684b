import type { Environment, ProgramJail } from '@aworld-train/core'
import { createEnvironment as createMcpEnvironment, type EnvironmentOptions } from '@aworld-train/environment'
import { TrainError } from '@aworld-train/protocol'

/** An environment of MCP servers. Servers whose configuration has `sandbox` run in a jail if `@aworld-train/sandbox` is installed. */
export function createEnvironment(options: EnvironmentOptions = {}): Environment {
  return createMcpEnvironment({ openProgramJail, ...options })
}

async function openProgramJail(): Promise<ProgramJail> {
  const sandbox = await import('@aworld-train/sandbox').catch((cause: unknown) => {
    throw new TrainError('SANDBOX_UNAVAILABLE', 'The package @aworld-train/sandbox is not there; run: npm install @aworld-train/sandbox', {
      cause,
    })
  })
  return sandbox.openProgramJail()
}
