// What the desktop of a rollout showed after each of its tool calls.
import type { ToolCallRecord } from '@aworld-train/core'
import { toolId } from './calls.ts'
import { seconds, visible } from './format.ts'
import { Section } from './ui.tsx'

interface ScreensProps {
  readonly calls: readonly ToolCallRecord[]
  /** Unix milliseconds when the rollout was queued. */
  readonly start: number
  /** Id of the chosen call. */
  readonly chosen: string | undefined
  readonly choose: (call: string) => void
}

/** The pictures in the order of the calls. Each leads to its call, where it is large. */
export function Screens({ calls, start, chosen, choose }: ScreensProps) {
  const shown = calls.flatMap((call) => {
    const image = call.images?.find(({ shows }) => shows === 'desktop')
    return image ? [{ call, id: toolId(call), src: `data:${image.mimeType};base64,${image.data}` }] : []
  })
  if (shown.length === 0) return null
  return (
    <Section class="screens" title="Desktop" note={`${shown.length} of ${calls.length} calls changed it`}>
      <ol>
        {shown.map(({ call, id, src }) => (
          <li key={id}>
            <button type="button" aria-pressed={id === chosen} onClick={() => choose(id)}>
              <img src={src} alt="" />
              {visible(call.name)} <small>{seconds(call.timing.endedAt - start)}</small>
            </button>
          </li>
        ))}
      </ol>
    </Section>
  )
}

/** Link to the desktop of a rollout that runs. */
export function WatchDesktop({ page, rollout }: { page: string; rollout: string }) {
  const url = new URL(page)
  url.searchParams.set('rollout', rollout)
  return (
    <a href={url.href} target="_blank" rel="noreferrer">
      Desktop
    </a>
  )
}
