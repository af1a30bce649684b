import type { GatewayCounts } from '../contracts/index.ts'
import type { Trajectory } from '../protocol/episode.ts'
import type { Message } from '../protocol/message.ts'
import type { FrozenUse, TokenReport } from '../protocol/token-report.ts'
import type { Turn } from '../protocol/turn.ts'

/** Collects a report from one trajectory at a time, so that a long run need not be held in memory. */
export interface TokenReportBuilder {
  /** Calls of frozen models by the reward are counted under `reward:` and the name of the model. */
  add(trajectories: readonly Trajectory[], ofReward?: readonly Trajectory[]): void
  /** `counts` are those of the gateway that recorded them. Without it, counts that only the gateway has are 0 or empty. */
  finish(counts?: Pick<GatewayCounts, 'failures' | 'tolerated' | 'parseIssues' | 'ignored'>): TokenReport
}

type Tally = Record<string, number>

/** The beginning of a conversation that is not a question. */
function systemPrompt(messages: readonly Message[]): string {
  const end = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  return JSON.stringify(messages.slice(0, end < 0 ? undefined : end).map(({ content }) => content))
}

/** Reports how clients treated the tokens of these trajectories. */
export function tokenReport(trajectories: readonly Trajectory[], counts?: GatewayCounts): TokenReport {
  const report = createTokenReport()
  report.add(trajectories)
  return report.finish(counts)
}

/** An empty report to add trajectories to. */
export function createTokenReport(): TokenReportBuilder {
  const branches: Tally = Object.create(null)
  const frozen: Record<string, FrozenUse> = Object.create(null)
  let turns = 0
  let continuations = 0
  let roots = 0
  let repeated = 0
  let abandoned = 0

  function addTurn({ parent, branchReasons, delivered, messagesDelta }: Turn, first: Turn): void {
    turns += 1
    if (parent !== null) continuations += 1
    else {
      const isOther = systemPrompt(messagesDelta) !== systemPrompt(first.messagesDelta)
      if (branchReasons.every((reason) => reason === 'root')) roots += 1
      else
        for (const kind of branchReasons) {
          const reason = kind === 'no-match' && isOther ? 'system-prompt' : kind
          branches[reason] = (branches[reason] ?? 0) + 1
        }
    }
    if (delivered === 'abandoned') abandoned += 1
  }

  function addFrozen({ model = 'frozen', usage, cost }: Turn): void {
    const before = frozen[model]
    const spent = cost === undefined ? null : (before?.cost ?? 0) + cost
    frozen[model] = {
      calls: (before?.calls ?? 0) + 1,
      promptTokens: (before?.promptTokens ?? 0) + usage.promptTokens,
      completionTokens: (before?.completionTokens ?? 0) + usage.completionTokens,
      cost: spent ?? before?.cost ?? null,
    }
  }

  return {
    add(trajectories, ofReward = []) {
      for (const { agent, turns } of ofReward) for (const turn of turns) addFrozen({ ...turn, model: agent })
      for (const trajectory of trajectories) {
        const questions = new Set<string>()
        let first: Turn | undefined
        for (const turn of trajectory.turns) {
          if (turn.branchReasons.includes('frozen-model')) {
            addFrozen(turn)
            continue
          }
          first ??= turn
          addTurn(turn, first)
          const question = JSON.stringify([turn.parent, turn.messagesDelta])
          if (questions.has(question)) repeated += 1
          questions.add(question)
        }
      }
    },
    finish(counts) {
      return {
        version: 1,
        turns,
        continuations,
        roots,
        branches: { ...branches },
        repeated,
        abandoned,
        failed: counts?.failures ?? 0,
        tolerated: { ...counts?.tolerated },
        unparsed: { ...counts?.parseIssues },
        ignored: { ...counts?.ignored },
        frozen: { ...frozen },
      }
    },
  }
}
