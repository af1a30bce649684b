// Content above every page of a rollout, and in place of a rollout that is absent.
import type { RunSummary } from '@aworld-train/core'
import { integer, points, shellWord, visible } from './format.ts'
import type { Group } from './groups-of.ts'
import { hrefs } from './route.ts'
import { WatchDesktop } from './screens.tsx'
import { Empty, Trail } from './ui.tsx'

/** Shows the known facts of a rollout whose tokens are absent. */
export function Absent({
  rollout,
  group,
  summary,
  error,
}: {
  rollout: string
  group: Group | null
  summary: RunSummary
  error: string | null
}) {
  const row = group?.rows.find(({ key }) => key === rollout)
  if (error !== null)
    return (
      <Empty title="This rollout could not be read" main={!group}>
        {error}
      </Empty>
    )
  if (!row)
    return (
      <Empty key="none" title="No such rollout" main={!group}>
        The run has no rollout “{rollout}”. Keys look like train/20/3/5: split, step, group, sample.
      </Empty>
    )
  if (row.status === 'queued' || row.status === 'running')
    return (
      <Empty key="soon" title="This rollout has no tokens yet">
        They come with its first model call.
        {row.status === 'running' && summary.desktopUrl !== null && (
          <>
            {' '}
            <WatchDesktop page={summary.desktopUrl} rollout={rollout} />
          </>
        )}
      </Empty>
    )
  return (
    <Empty title="The tokens of this rollout are not in the file" command={`npx aworld-train view ${shellWord(summary.path)}`}>
      The file carries as many as its size allows, and none that are damaged. Of this one it has reward {points(row.reward)}, {row.turns}{' '}
      turns, {integer(row.sampledTokens)} sampled tokens, answer “{visible(row.answer ?? 'none')}”.
    </Empty>
  )
}

export function Head({ group, rollout, href = hrefs.rollout }: { group: Group; rollout: string; href?: (key: string) => string }) {
  return (
    <div class="title">
      <Trail group={group} rollout={rollout} href={href} />
      <h1>{group.task.question.slice(0, 400)}</h1>
    </div>
  )
}
