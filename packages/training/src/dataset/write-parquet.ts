import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { AnswerKey, Message, TrainingTask } from '@aworld-train/core'
import type { z } from 'zod'
import { type Shape, shapeOfValues, shapesOfSchema, toNestedColumn } from './parquet-schema.ts'

/**
 * Writes tasks as Parquet in the columns that training frameworks read: data_source, prompt (list of messages), ability, reward_model
 * (style, ground_truth), extra_info, and id; then files, setup and data, where a task has any. The file appears whole or not at all.
 */
export async function writeParquet(tasks: readonly TrainingTask[], answers: ReadonlyMap<string, AnswerKey>, path: string): Promise<void> {
  const columns = Object.entries(columnsOf(tasks, answers))
  await writeColumns(
    columns.map(([name, values]) => ({ name, values, shape: shapeOfValues(values) })),
    path,
  )
}

/**
 * Writes at least one row in the form that its schema has on the wire, with columns of the schema's types. The file appears whole or not at
 * all.
 */
export async function writeParquetRows<Schema extends z.ZodObject>(
  schema: Schema,
  rows: readonly z.input<Schema>[],
  path: string,
): Promise<void> {
  const shapes = [...shapesOfSchema(schema)]
  await writeColumns(
    shapes.map(([name, shape]) => ({ name, values: rows.map((row) => row[name]), shape })),
    path,
  )
}

interface Column {
  readonly name: string
  readonly values: readonly unknown[]
  readonly shape: Shape
}

async function writeColumns(written: readonly Column[], path: string): Promise<void> {
  const { ByteWriter, parquetWrite } = await import('hyparquet-writer')
  const columns = written.map(({ name, values, shape }) => ({ name, ...toNestedColumn(name, values, shape) }))
  const writer = new ByteWriter()
  parquetWrite({
    writer,
    schema: [{ name: 'root', num_children: columns.length }, ...columns.flatMap(({ elements }) => elements)],
    columnData: columns.map(({ name, data }) => ({ name, data })),
  })
  await mkdir(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await writeFile(temporary, writer.getBytes())
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

function columnsOf(tasks: readonly TrainingTask[], answers: ReadonlyMap<string, AnswerKey>): Record<string, unknown[]> {
  const columns: Record<string, unknown[]> = {
    id: tasks.map(({ id }) => id),
    data_source: tasks.map(({ dataSource }) => dataSource),
    prompt: tasks.map(({ input }) => (typeof input === 'string' ? [{ role: 'user', content: input }] : input.map(toChatMessage))),
    ability: tasks.map(({ dataSource, extraInfo }) => extraInfo['ability'] ?? dataSource),
    reward_model: tasks.map(({ id }) => ({ style: 'rule', ground_truth: answers.get(id)?.groundTruth })),
    // Parquet has no group without fields, so rows without extra information get their position.
    extra_info: tasks.map(({ extraInfo }, index) => (Object.keys(extraInfo).length > 0 ? extraInfo : { index })),
  }
  if (tasks.some(({ files }) => files)) columns['files'] = tasks.map(({ files }) => files ?? [])
  // The set-up is written as text, because its keys are paths, which would each become a column.
  if (tasks.some(({ setup }) => setup)) columns['setup'] = tasks.map(({ setup }) => (setup ? JSON.stringify(setup) : null))
  if (tasks.some(({ data }) => Object.keys(data).length > 0)) columns['data'] = tasks.map(({ data }) => data)
  return columns
}

function toChatMessage({ role, content, name, toolCallId, toolCalls }: Message): Record<string, unknown> {
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
    ...(toolCalls === undefined
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  }
}
