// Findings, commands and facts of a run, beside its first page.
import type { RunSummary } from '@aworld-train/core'
import { isExport } from './data.ts'
import { findingsOf } from './findings.ts'
import { dollars, integer, shellWord, visible } from './format.ts'
import { Command, Facts, Section } from './ui.tsx'

const cli = 'npx aworld-train'
const plain = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? visible(String(value)) : null)

interface RailProps {
  readonly summary: RunSummary
  /** Commands of this kind of run, without the program: the purpose and the rest. */
  readonly commands: readonly (readonly [what: string, text: string])[]
}

export function Rail({ summary, commands }: RailProps) {
  const { details, rollouts } = summary
  const findings = findingsOf(summary)
  const path = shellWord(summary.path)
  const isEvaluation = summary.kind === 'evaluation'
  const facts = [
    ['model', plain(details['model'] ?? details['policy'])],
    ['checkpoint', plain(details['checkpoint'])],
    ['engine', plain(details['engine'])],
    ['agent', plain(details['agent'])],
    ['tasks', plain(details['tasks'])],
    ['rollouts', integer(rollouts.done)],
    ['model calls', integer(summary.turns)],
    ['tool calls', integer(summary.toolCalls)],
    ['checkpoints', isEvaluation ? null : String(summary.checkpoints.length)],
    ['cost', isEvaluation ? null : summary.cost > 0 ? dollars(summary.cost) : 'none recorded'],
    ['seed', summary.seed === null ? null : String(summary.seed)],
  ] as const
  return (
    <aside aria-label="Findings and next commands">
      <Section title="Worth a look" class="findings">
        <ul class="notices">
          {findings.length === 0 && (
            <li class="quiet">
              <i aria-hidden="true" />
              <p>Nothing so far.</p>
            </li>
          )}
          {findings.map(({ level, title, text, href, link }) => (
            <li key={title} class={level}>
              <i aria-hidden="true">{level === 'warn' ? '▲' : '✓'}</i>
              <p>
                <b>{title}</b> <span>{text}</span> {href && <a href={href}>{link}</a>}
              </p>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="What to type next" note={<code>{cli}</code>}>
        {commands.map(([what, text]) => (
          <Command key={what} under={cli} what={what} text={`${cli} ${text}`} />
        ))}
        <Command under={cli} what="Read an episode" text={`${cli} replay ${path}`} />
        <Command under={cli} what="Take the samples elsewhere" text={`${cli} export ${path} --to samples.jsonl`} />
        {!isExport && <Command under={cli} what="Hand this on as one file" text={`${cli} view ${path} --export run.html`} />}
      </Section>
      <Section title="Run">
        <Facts of={facts.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]))} />
      </Section>
    </aside>
  )
}
