import { type Environment, type ProgramJail, TrainError, type Verifier } from '@aworld-train/core'
import { createEnvironment as createMcpEnvironment, type EnvironmentOptions } from '@aworld-train/environment'

/** An environment of MCP servers. Servers whose configuration has `sandbox` run in a jail if `@aworld-train/tools` is installed. */
export function createEnvironment(options: EnvironmentOptions = {}): Environment {
  return createMcpEnvironment({ openProgramJail, ...options })
}

/** Opens the place where rewards check files, in a sandbox of this machine. */
export async function openVerifier(): Promise<Verifier> {
  return (await loadSandbox()).openVerifier()
}

async function openProgramJail(): Promise<ProgramJail> {
  return (await loadSandbox()).openProgramJail()
}

async function loadSandbox() {
  return await import('@aworld-train/tools/sandbox').catch((cause: unknown) => {
    throw new TrainError('SANDBOX_UNAVAILABLE', 'The package @aworld-train/tools is not there; run: npm install @aworld-train/tools', {
      cause,
    })
  })
}
