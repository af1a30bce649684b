import {
  type AgentAnswer,
  type AgentEnd,
  type AgentProgram,
  type AttemptAssignment,
  type AttemptControl,
  type AttemptExecutor,
  type AttemptName,
  type AttemptOutcome,
  type AttemptState,
  createAttemptStates,
  type Environment,
  InvocationJournal,
  preciseNow,
  readTaskFile,
  TrainError,
  toAgentTask,
  toCollectedFile,
  toTrainError,
  type WorkspaceFile,
} from '@aworld-train/core'
import { AttemptClocks } from './attempt-clocks.ts'
import { createAttemptContext } from './attempt-context.ts'
import { type AttemptTools, createAttemptTools } from './attempt-tools.ts'
import { type Clock, processClock } from './clock.ts'
import { InvocationSpans } from './observe/invocation-spans.ts'
import { spanOfHeaders, withSpan } from './observe/rollout-spans.ts'
import { agentFailure, cancelled, rolloutEnded, strayFailure, timeLimit } from './rollout-errors.ts'
import { withErrorOwner } from './stray-errors.ts'
import { createTimeBudget } from './time-budget.ts'
import { createToolJournal, type ToolJournal } from './tool-journal.ts'

export interface AttemptExecutorOptions {
  readonly program: AgentProgram
  readonly environment: Environment
  /** Folder that paths of tasks' files are relative to. Default: the working directory. */
  readonly baseDirectory?: string | undefined
  /** How long an agent may take to return after its signal aborted; after that it is abandoned. Default 1,000. */
  readonly abandonAfterMs?: number | undefined
  /** How long opening or closing the tools of an agent may take. Opening costs no budget. Default 120,000. */
  readonly leaseTimeoutMs?: number | undefined
  /** Default: the clock of this process. */
  readonly clock?: Clock | undefined
}

/** Runs agents in this process. */
export function createAttemptExecutor(options: AttemptExecutorOptions): AttemptExecutor {
  const { program, environment, baseDirectory = '.', abandonAfterMs = 1000, leaseTimeoutMs = 120_000, clock = processClock } = options
  const clocks = new AttemptClocks()
  const journals = new Map<ToolJournal, AttemptName>()

  async function execute(assignment: AttemptAssignment, { signal, onEnd }: AttemptControl): Promise<AttemptOutcome> {
    const { key, attempt, sample, endpoints, limits } = assignment
    const { files, setup } = assignment.task
    const task = toAgentTask(assignment.task)
    const span = spanOfHeaders(assignment.traceHeaders)
    const startedAt = preciseNow()
    const stop = new AbortController()
    const budget = createTimeBudget(limits.timeoutMs, () => stop.abort(timeLimit(key, limits.timeoutMs)), clock)
    clocks.add({ key, attempt }, budget)
    const cancel = () => stop.abort(cancelled(key, signal.reason))
    signal.addEventListener('abort', cancel, { once: true })
    if (signal.aborted) cancel()

    const { maxTurns, maxToolCalls } = limits
    const invocations = new InvocationJournal(program.agents.map(({ name }) => name))
    const spans = new InvocationSpans(span)
    const journal = createToolJournal({ rollout: key, maxToolCalls, spans, signal: stop.signal, onLimit: (error) => stop.abort(error) })
    journals.set(journal, { key, attempt })
    const tools = createAttemptTools({
      request: { rollout: key, attempt, sample, task: { id: task.id, files, setup } },
      environment,
      journal,
      budget,
      signal: stop.signal,
      leaseTimeoutMs,
      // An attempt that lost a server's state has failed, even where its agent catches the error.
      onLost: (error) => stop.abort(error),
    })
    const file = (name: string) => readTaskFile(assignment.task, baseDirectory, name)
    const attemptContext = { rollout: key, attempt, task, file, signal: stop.signal }
    const states = createAttemptStates({ attempt: attemptContext, timeoutMs: leaseTimeoutMs, graceMs: abandonAfterMs })
    /** An attempt whose state cannot be set up has failed, even where its agent catches the error. */
    const state = async <State>(definition: AttemptState<State>): Promise<State> => {
      const release = budget.hold()
      try {
        return await states.get(definition)
      } catch (error) {
        stop.abort(error)
        throw error
      } finally {
        release()
      }
    }
    const context = createAttemptContext({
      attempt: attemptContext,
      program,
      endpoints,
      journal,
      tools,
      state,
      invocations,
      spans,
      maxTurns,
      maxToolCalls,
    })

    const stray = Promise.withResolvers<never>()
    let isOver = false
    const owner = {
      rollout: key,
      charge(error: unknown) {
        if (!isOver) stray.reject(strayFailure(error))
        return !isOver
      },
    }
    const run = () => Promise.race([stray.promise, withErrorOwner(owner, async () => program.run(task, context))])
    const end = await endOf(() => withSpan(span, run), stop.signal, { graceMs: abandonAfterMs, clock })
    isOver = true
    const endedAt = preciseNow()
    const records = invocations.records()
    spans.close()
    const aborted = stop.signal.aborted ? (stop.signal.reason as TrainError) : null
    clocks.remove({ key, attempt })
    budget.stop()
    signal.removeEventListener('abort', cancel)
    stop.abort(rolloutEnded(key))
    journals.delete(journal)
    const { errors: toolErrors, functions: functionCalls } = journal.counts()
    onEnd()
    const collected = aborted && !isLimit(aborted) ? {} : await collectFiles(tools)
    const [leaseProblem, stateProblems] = await Promise.all([tools.close(), states.close()])
    const problems = leaseProblem ? [leaseProblem, ...stateProblems] : stateProblems
    return {
      end,
      aborted: (aborted ?? collected.failure)?.toRecord() ?? null,
      environmentFailure: tools.failure()?.toRecord() ?? null,
      invocations: records,
      toolCalls: journal.calls(),
      toolErrors,
      functionCalls,
      ...(collected.files && { files: collected.files.map(toCollectedFile) }),
      ...(collected.refused && { filesRefused: collected.refused.toRecord() }),
      problems: problems.map((problem) => problem.toRecord()),
      timing: { startedAt, endedAt },
    }
  }

  return {
    execute,
    openCalls: () =>
      Array.from(journals, ([journal, name]) => {
        const open = journal.open()
        return open && { ...name, tool: open.name, openMs: Math.max(0, preciseNow() - open.startedAt) }
      }).filter((call) => call !== null),
    hold: (attempt) => clocks.hold(attempt),
    resume: (attempt) => clocks.resume(attempt),
  }
}

interface Collected {
  readonly files?: readonly WorkspaceFile[]
  /** The agent's fault. */
  readonly refused?: TrainError
  /** The environment's fault, for which the attempt is tried again. */
  readonly failure?: TrainError
}

async function collectFiles(tools: AttemptTools): Promise<Collected> {
  try {
    const files = await tools.collect()
    return files ? { files } : {}
  } catch (cause) {
    const error = toTrainError(cause, 'TOOL_SERVER_DIED')
    return error.code === 'FILES_REFUSED' ? { files: [], refused: error } : { failure: error }
  }
}

/** Whether an attempt was stopped at a limit, and its result counts. */
const isLimit = ({ code }: TrainError) => code === 'AGENT_LIMIT' || code === 'POLICY_CONTEXT_OVERFLOW'

/** Resolves to how `run` ended, or to `abandoned` if it still runs `graceMs` after the abort. */
function endOf(
  run: () => Promise<AgentAnswer>,
  signal: AbortSignal,
  { graceMs, clock }: { readonly graceMs: number; readonly clock: Clock },
): Promise<AgentEnd> {
  return new Promise((resolve) => {
    let endGrace = () => {}
    const aborted = () => {
      endGrace = clock.after(graceMs, () => settle({ kind: 'abandoned' }))
    }
    const settle = (end: AgentEnd) => {
      endGrace()
      signal.removeEventListener('abort', aborted)
      resolve(end)
    }
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted, { once: true })
    const threw = (error: unknown) => settle({ kind: 'threw', error: agentFailure(error).toRecord() })
    // An agent that is not async may throw before it returns a promise.
    new Promise<AgentAnswer>((resolveRun) => resolveRun(run())).then(
      (answer) => (isAnswer(answer) ? settle(answered(answer)) : threw(notAnAnswer(answer))),
      threw,
    )
  })
}

const answered = ({ answer, messages, stopped, metSharedLimit }: AgentAnswer): AgentEnd => ({
  kind: 'answered',
  answer,
  messages: [...messages],
  ...(stopped && { stopped }),
  ...(metSharedLimit && { metSharedLimit }),
})

function isAnswer(value: unknown): value is AgentAnswer {
  const { answer, messages } = (value ?? {}) as Partial<AgentAnswer>
  return (answer === null || typeof answer === 'string') && Array.isArray(messages)
}

function notAnAnswer(value: unknown): TrainError {
  const what = value === null || value === undefined ? `${value}` : typeof value === 'object' ? 'another object' : `a ${typeof value}`
  return new TrainError('AGENT_FAILED', `The agent program returned ${what}; return { answer, messages }: the text or null, and a list.`)
}
