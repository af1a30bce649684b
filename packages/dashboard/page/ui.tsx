// Parts that the pages share: reward dots, sections, chips, commands, keys, empty states.
import type { InvocationTrace } from '@aworld-train/core'
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { integer, points, signed, stepName, visible } from './format.ts'
import { type Group, isEvaluation, isOfEvaluation, placeOf, sampleName } from './groups-of.ts'
import { hrefs } from './route.ts'

/** A reward as a shape, never by colour alone: full at 1, an open ring at 0, part-filled between, dashed without a reward. */
export function Dot({ reward, label }: { reward: number | null; label?: string }) {
  const kind = reward === null ? 'none' : reward >= 1 ? 'one' : reward <= 0 ? 'zero' : 'part'
  const style = kind === 'part' ? { backgroundImage: `linear-gradient(to top, var(--good) ${100 * reward!}%, transparent 0)` } : undefined
  return label ? (
    <i class={`dot ${kind}`} style={style} role="img" aria-label={label} />
  ) : (
    <i class={`dot ${kind}`} style={style} aria-hidden="true" />
  )
}

/** More samples than this are shown as shares, because dots would not fit the row. */
const mostDots = 16
/** The rewards of a group, each a link to its rollout. */
export function Dots({ group, current, href = hrefs.rollout }: { group: Group; current?: string; href?: (key: string) => string }) {
  const rows = group.rows.length <= mostDots ? group.rows : group.rows.filter((row, index) => index < mostDots || row.key === current)
  return (
    <span class="dots">
      {rows.map((row) => {
        const text = `${sampleName(row)}, ${row.status === 'done' ? `reward ${row.reward === null ? 'not scored' : points(row.reward)}` : row.status}`
        return (
          <a href={href(row.key)} key={row.key} aria-current={row.key === current ? 'true' : undefined} aria-label={text} title={text}>
            <Dot reward={row.reward} />
          </a>
        )
      })}
      {group.rows.length > rows.length && <small>+{group.rows.length - rows.length}</small>}
    </span>
  )
}

export function Section({
  title,
  note,
  children,
  class: name = '',
}: {
  title: string
  note?: ComponentChildren
  children?: ComponentChildren
  class?: string
}) {
  return (
    <section class={name}>
      <header>
        <h2>{title}</h2>
        {note && <p>{note}</p>}
      </header>
      {children}
    </section>
  )
}

interface ChipsProps<Name extends string> {
  /** Label of the choice, for screen readers. */
  label: string
  /** The name and the content of each button. */
  of: readonly (readonly [name: Name, content: ComponentChildren])[]
  chosen: Name | null
  onChoose: (name: Name) => void
}

/** Buttons of which one is chosen. */
export function Chips<Name extends string>({ label, of, chosen, onChoose }: ChipsProps<Name>) {
  return (
    <div class="chips" role="group" aria-label={label}>
      {of.map(([name, content]) => (
        <button type="button" key={name} aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {content}
        </button>
      ))}
    </div>
  )
}

interface InvocationChoiceProps {
  of: readonly Pick<InvocationTrace, 'id' | 'agent'>[]
  chosen: Pick<InvocationTrace, 'id' | 'agent'>
  choose: (id: string) => void
}

/** The choice of an agent and, if it worked several times, of one of its invocations. */
export function InvocationChoice({ of, chosen, choose }: InvocationChoiceProps) {
  const byAgent = Map.groupBy(of, ({ agent }) => agent)
  const own = byAgent.get(chosen.agent) ?? []
  return (
    <>
      {byAgent.size > 1 && (
        <Chips
          label="Agent"
          of={Array.from(byAgent.keys(), (name) => [name, visible(name)])}
          chosen={chosen.agent}
          onChoose={(name) => choose(byAgent.get(name)![0]!.id)}
        />
      )}
      {own.length > 1 && (
        <select aria-label="Invocation" value={chosen.id} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          {own.map(({ id }) => (
            <option key={id} value={id}>
              {visible(id)}
            </option>
          ))}
        </select>
      )}
    </>
  )
}

/**
 * A line that is cut in its middle, before its last `end` characters or more, because similar questions and paths of agents differ there.
 */
export function Middle({ text, end = 24 }: { text: string; end?: number }) {
  const at = Math.max(0, text.length - end)
  const cut = Math.max(text.lastIndexOf(' ', at), text.lastIndexOf('/', at))
  if (cut < 0)
    return (
      <span class="middle">
        <span>{text}</span>
      </span>
    )
  return (
    <span class="middle">
      <span>{text.slice(0, cut)}</span>
      <span>{text.slice(cut).slice(0, 2 * end)}</span>
    </span>
  )
}

interface StretchProps {
  /** Name of the listed items. */
  readonly name: string
  /** Place of the first shown item, number of shown items, and number of all. */
  readonly from: number
  readonly count: number
  readonly total: number
  readonly go: (place: number) => void
}
/** The shown stretch of a long list, with links to its neighbours. */
export function Stretch({ name, from, count, total, go }: StretchProps) {
  if (count === total) return null
  return (
    <p class="stretch">
      {name} {integer(from + 1)} – {integer(from + count)} of {integer(total)}
      <button type="button" class="link" disabled={from === 0} onClick={() => go(from - 1)}>
        Earlier
      </button>
      <button type="button" class="link" disabled={from + count >= total} onClick={() => go(from + count)}>
        Later
      </button>
    </p>
  )
}

const copied = signal('')
/** A command to copy. `under` is the beginning that a heading already shows. */
export function Command({ text, what, under = '' }: { text: string; what: string; under?: string }) {
  const copy = () => {
    void navigator.clipboard?.writeText(text)
    copied.value = text
    setTimeout(() => {
      copied.value = ''
    }, 1200)
  }
  return (
    <div class="command">
      <span>{what}</span>
      <button type="button" title="Copy" onClick={copy}>
        <code>{text.slice(under.length).trim()}</code>
        <b aria-live="polite">{copied.value === text ? 'copied' : 'copy'}</b>
      </button>
    </div>
  )
}

export function Empty({
  title,
  children,
  command,
  main,
}: {
  title: string
  children?: ComponentChildren
  command?: string
  main?: boolean
}) {
  return (
    <div class="empty">
      {main ? <h1>{title}</h1> : <h2>{title}</h2>}
      <p>{children}</p>
      {command && <Command what="In the terminal" text={command} />}
    </div>
  )
}

/** The position in the run, and links to the group's samples. */
export function Trail({ group, rollout, href }: { group: Group; rollout: string; href: (key: string) => string }) {
  const row = group.rows.find(({ key }) => key === rollout) ?? group.rows[0]!
  const place = placeOf(row)
  return (
    <div class="trail">
      <a href={hrefs.step(place)}>{isOfEvaluation(row) ? 'Tasks' : stepName(place)}</a>
      <span>›</span>
      <a href={hrefs.step(place, { group: group.id })}>{`${isEvaluation(place) ? 'task' : 'group'} ${group.label}`}</a>
      <span>›</span>
      <b>{sampleName(row)}</b>
      <Dots group={group} current={rollout} href={href} />
    </div>
  )
}

export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value], index) => (
        <div key={name || index}>
          <dt class={name ? '' : 'unseen'}>{name || 'see'}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

export const Advantage = ({ value, none = 'not trained' }: { value: number | null; none?: string }) => (
  <span class={value === null || value === 0 ? 'quiet' : value > 0 ? 'up' : 'down'}>{value === null ? none : signed(value)}</span>
)

/**
 * Keys of the page on screen; the shell adds its own. While the page is being read, the last pressed key waits, because people press
 * faster than a busy machine answers.
 */
export function useKeys(keys: Readonly<Record<string, () => void>>, isRead = true): void {
  const latest = useRef({ keys, isRead })
  latest.current = { keys, isRead }
  const waiting = useRef<string | null>(null)
  // Runs with the drawing and not a frame later, so that no key is lost between two pages.
  useLayoutEffect(() => {
    if (!isRead || waiting.current === null) return
    const action = keys[waiting.current]
    waiting.current = null
    action?.()
  })
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
      if (event.target instanceof Element && event.target.closest('input, select, textarea, dialog')) return
      // On a link or a button, Enter belongs to that element.
      if (event.key === 'Enter' && event.target instanceof Element && event.target.closest('a, button')) return
      const { keys, isRead } = latest.current
      const action = keys[event.key]
      if (!action) return
      event.preventDefault()
      if (isRead) action()
      else waiting.current = event.key
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}
