// Evaluations as a table: a row a task, a cell a sample.
import type { EvaluationCell, EvaluationView } from '@aworld-train/core'
import { useState } from 'preact/hooks'
import { fixed, integer, points, signed, visible } from './format.ts'
import { filter, hrefs, route } from './route.ts'
import { matchesCell, outcomes, partners, type TaskOrder, type TaskRow, taskRows } from './task-rows.ts'
import { Chips, Empty, Middle } from './ui.tsx'

/** An evaluation of the table, with the run that it is. */
export interface MatrixSide {
  readonly run: string
  /** A letter, if there are several. */
  readonly name: string
  readonly view: EvaluationView
}

const marks = { right: 'one', wrong: 'zero', partly: 'part', failed: 'failed', unscored: 'none', running: 'running', waiting: 'waiting' }

/** An outcome as a shape, never by colour alone. */
function Mark({ outcome, reward }: Pick<EvaluationCell, 'outcome' | 'reward'>) {
  const style =
    outcome === 'partly' ? { backgroundImage: `linear-gradient(to top, var(--good) ${100 * (reward ?? 0.5)}%, transparent 0)` } : undefined
  return <i class={`dot ${marks[outcome]}`} style={style} aria-hidden="true" />
}

function Cell({ cell, run, isFaded }: { cell: EvaluationCell; run: string; isFaded: boolean }) {
  const { rollout, sample, outcome, reward, reason } = cell
  const text = [`sample ${sample}`, outcome, reward === null ? '' : `reward ${points(reward)}`, reason === null ? '' : visible(reason)]
    .filter(Boolean)
    .join(', ')
  if (outcome === 'waiting')
    return (
      <span role="img" aria-label={text} title={text} class={isFaded ? 'faded' : ''}>
        <Mark outcome={outcome} reward={reward} />
      </span>
    )
  return (
    <a href={hrefs.rollout(rollout, {}, run)} aria-label={text} title={text} class={isFaded ? 'faded' : ''}>
      <Mark outcome={outcome} reward={reward} />
    </a>
  )
}

interface ChoiceProps {
  /** Name of the filter, which is also its name in the address. */
  readonly name: string
  readonly all: string
  readonly of: readonly string[]
}

/** A filter that is named by text of a run, which may be anything. */
function Choice({ name, all, of }: ChoiceProps) {
  const chosen = route.value.query.get(name)
  const values = chosen === null || of.includes(chosen) ? of : [...of, chosen]
  return (
    <label class="choice">
      {name}{' '}
      <select
        value={chosen === null ? '' : `=${chosen}`}
        onChange={({ currentTarget: { value } }) => filter({ [name]: value === '' ? null : value.slice(1) })}
      >
        <option value="">{all}</option>
        {values.map((value) => (
          <option key={value} value={`=${value}`}>
            {visible(value).slice(0, 60)}
          </option>
        ))}
      </select>
    </label>
  )
}

const distinct = (values: readonly (string | null)[]) => [...new Set(values.filter((value) => value !== null))].sort()

/** Rows that are drawn at first, and how many a click adds. */
const fewRows = 200

export function Matrix({ sides, order: usual }: { sides: readonly MatrixSide[]; order: TaskOrder }) {
  const { query } = route.value
  const [shown, show] = useState(fewRows)
  const order = query.get('sort') === 'dataset' ? 'dataset' : query.get('sort') === 'differs' ? 'differs' : usual
  const all = taskRows(
    sides.map(({ view }) => view),
    order,
  )
  const cells = all.flatMap((row) => row.sides.flatMap((side) => side?.cells ?? []))
  const wanted = { outcome: query.get('outcome'), reason: query.get('reason'), tool: query.get('tool') }
  const isFiltered = Object.values(wanted).some((value) => value !== null)
  const kind = query.get('kind')
  const group = query.get('group')
  const words = (query.get('find') ?? '').toLowerCase()
  const rows = all.filter(
    (row) =>
      (kind === null || row.task.kind === kind) &&
      (group === null || row.task.id === group) &&
      `${row.task.id} ${row.task.question}`.toLowerCase().includes(words) &&
      (!isFiltered || row.sides.some((side) => side?.cells.some((cell) => matchesCell(cell, wanted)))),
  )
  const isCompared = sides.length > 1
  return (
    <section class="matrix">
      <header>
        <h2>Tasks</h2>
        <p>
          <span class="readout">
            <b>{integer(rows.length)}</b> of {integer(all.length)}
          </span>
          {group !== null && (
            <button type="button" class="link" onClick={() => filter({ group: null })}>
              All tasks
            </button>
          )}
        </p>
      </header>
      <div class="bar">
        <Chips
          label="Outcome"
          of={[
            ['all', 'All'],
            ...outcomes.map(
              (outcome) =>
                [
                  outcome,
                  <>
                    <Mark outcome={outcome} reward={0.5} /> {outcome}{' '}
                    <small>{integer(cells.filter((cell) => cell.outcome === outcome).length)}</small>
                  </>,
                ] as const,
            ),
          ]}
          chosen={wanted.outcome ?? 'all'}
          onChoose={(name) => filter({ outcome: name === 'all' ? null : name })}
        />
        <Choice name="kind" all="all kinds" of={distinct(all.map(({ task }) => task.kind))} />
        <Choice name="reason" all="any end" of={distinct(cells.map(({ reason }) => reason))} />
        <Choice name="tool" all="any tool" of={distinct(cells.flatMap(({ tools }) => tools))} />
        <Chips
          label="Sort"
          of={[
            ['differs', 'What differs'],
            ['dataset', 'Dataset'],
          ]}
          chosen={order}
          onChoose={(name) => filter({ sort: name === usual ? null : name })}
        />
        <input
          type="search"
          placeholder="Find in tasks"
          aria-label="Find in tasks"
          value={query.get('find') ?? ''}
          onInput={(event) => filter({ find: event.currentTarget.value || null })}
        />
      </div>
      {rows.length === 0 ? (
        <Empty title={all.length === 0 ? 'No task is there yet' : 'No task matches'}>
          {all.length === 0 ? 'They come when the evaluation begins.' : `None of ${integer(all.length)} tasks has all of these filters.`}
        </Empty>
      ) : (
        <div class="scroll">
          <table class="rows tasks">
            <thead>
              <tr>
                <th scope="col">task</th>
                <th scope="col" class="wide">
                  kind
                </th>
                {sides.map(({ run, name }) => [
                  <th scope="col" key={`${run} samples`}>
                    {isCompared ? name : 'samples'}
                  </th>,
                  <th scope="col" key={`${run} mean`}>
                    mean
                  </th>,
                ])}
                {isCompared && <th scope="col">difference</th>}
                <th scope="col">
                  <span class="unseen">compare</span>
                </th>
              </tr>
            </thead>
            {/* Another order is drawn anew, so that no row moves over the page. */}
            <tbody key={order}>
              {rows.slice(0, shown).map((row) => (
                <Row key={row.key} row={row} sides={sides} isFaded={(cell) => isFiltered && !matchesCell(cell, wanted)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > shown && (
        <p class="more">
          The first {integer(shown)} of {integer(rows.length)}.{' '}
          <button type="button" class="link" onClick={() => show(shown + 2 * fewRows)}>
            More
          </button>
        </p>
      )}
    </section>
  )
}

interface RowProps {
  readonly row: TaskRow
  readonly sides: readonly MatrixSide[]
  readonly isFaded: (cell: EvaluationCell) => boolean
}

function Row({ row, sides, isFaded }: RowProps) {
  const { task, change } = row
  const pair = partners(row)
  const question = visible(task.question)
  return (
    <tr>
      <th scope="row" title={`${visible(task.id)}: ${question.slice(0, 400)}`}>
        <Middle text={question.slice(0, 400)} />
      </th>
      <td class="wide kind">{visible(task.kind)}</td>
      {sides.map(({ run }, index) => {
        const side = row.sides[index]
        return [
          <td key={`${run} samples`}>
            <span class="dots">
              {side ? (
                side.cells.map((cell) => <Cell key={cell.sample} cell={cell} run={run} isFaded={isFaded(cell)} />)
              ) : (
                <small class="quiet">not in it</small>
              )}
            </span>
          </td>,
          <td key={`${run} mean`} class="number">
            {fixed(side?.mean, 2)}
          </td>,
        ]
      })}
      {sides.length > 1 && (
        <td class="number">
          <span class={change === null || change === 0 ? 'quiet' : change > 0 ? 'up' : 'down'}>{signed(change)}</span>
        </td>
      )}
      <td>
        {pair && (
          <a
            href={hrefs.compare(pair[1], pair[3], pair[2] === pair[0] ? {} : { in: sides[pair[2]]!.run }, sides[pair[0]]!.run)}
            aria-label={`Compare two rollouts of ${visible(task.id)}`}
          >
            compare
          </a>
        )}
      </td>
    </tr>
  )
}
