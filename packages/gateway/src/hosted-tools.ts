import { add, type Counters } from './counters.ts'
import { badRequest } from './failure.ts'
import type { GatewayOptions, GatewayWarning } from './options.ts'

/** Tools that agents declare and a provider would run. */
export interface HostedTools {
  /** Counts the hosted tools of a call, which its prompt leaves out. Throws GATEWAY_BAD_REQUEST if the run refuses them. */
  leaveOut(agent: string, types: readonly string[]): void
}

/** Leaves hosted tools out and warns once, or refuses the calls that declare them. */
export function createHostedTools(
  mode: NonNullable<GatewayOptions['hostedTools']>,
  counters: Counters,
  warn: (warning: GatewayWarning) => void,
): HostedTools {
  let hasWarned = false
  return {
    leaveOut(agent, types) {
      if (types.length === 0) return
      const names = [...new Set(types)].join(', ')
      if (mode === 'refuse') {
        const message = `Agent "${agent}" declares ${names}, which a provider would run; take it out, or set gateway.hostedTools to "leave-out".`
        throw badRequest(message, 'tools')
      }
      for (const type of types) add(counters.ignored, `tool ${type}`)
      if (hasWarned) return
      hasWarned = true
      warn({
        code: 'HOSTED_TOOLS',
        message: `Agent "${agent}" declares ${names}: a provider would run that, the policy cannot. It is left out of every prompt, and counted as a request field without effect.`,
        details: { agent, types: [...types] },
      })
    },
  }
}
