import type { Divergence } from '@aworld-train/chat'
import type { GatewayWarning } from './options.ts'

/** Watches how agents change their histories, and warns once when a change makes every call a branch. */
export interface HistoryWatch {
  /** Reports a request that contains a recorded answer after a message that differs from the recorded one. */
  diverged(who: { readonly rollout: string; readonly agent: string }, divergence: Divergence): void
}

/** Requests that must differ in the message at one place before it counts as a habit of the agent. */
const threshold = 3

/** Warns once, about the first place in a history that agents rewrite again and again, such as a time in the system prompt. */
export function createHistoryWatch(warn: (warning: GatewayWarning) => void): HistoryWatch {
  const counts = new Map<string, number>()
  let warned = false
  return {
    diverged({ rollout, agent }, { index, role, recorded, received }) {
      if (warned) return
      const place = `${agent}:${role}:${index}`
      const count = (counts.get(place) ?? 0) + 1
      counts.set(place, count)
      if (count < threshold) return
      warned = true
      counts.clear()
      const what = `Agent "${agent}" rewrites message ${index} (${role}) between its calls: ${JSON.stringify(received)} was ${JSON.stringify(recorded)}`
      const cost = `Each such call begins a new branch, which is rendered whole and trained as a sample of its own (${count} so far, last in rollout "${rollout}")`
      const remedy =
        'Put what changes, such as the time, into the newest message, or name it in gateway.ignore, and leave the rest of earlier messages as it was.'
      warn({
        code: 'BRANCH_EXPLOSION',
        message: `${what}. ${cost}. ${remedy}`,
        details: { rollout, agent, index, role, recorded, received },
      })
    },
  }
}
