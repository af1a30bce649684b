import { protobuf, protobufFields } from '@aworld-train/core'

/** One value of each tag at one step. */
export interface ScalarsOfStep {
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

// Numbers of fields: tensorflow/core/util/event.proto and framework/summary.proto.
const eventField = { wallTime: 1, step: 2, fileVersion: 3, summary: 5 } as const
const summaryField = { value: 1 } as const
const valueField = { tag: 1, simpleValue: 2 } as const

/** The first event of every file. */
export const encodeFileVersion = (atMs: number): Buffer =>
  Buffer.concat([protobuf.double(eventField.wallTime, atMs / 1_000), protobuf.text(eventField.fileVersion, 'brain.Event:2')])

/** Encodes values as 32-bit floats, like every writer of such files. */
export function encodeScalars({ step, values }: ScalarsOfStep, atMs: number): Buffer {
  const summary = Object.entries(values).map(([tag, value]) =>
    protobuf.bytes(summaryField.value, protobuf.text(valueField.tag, tag), protobuf.float(valueField.simpleValue, value)),
  )
  return Buffer.concat([
    protobuf.double(eventField.wallTime, atMs / 1_000),
    protobuf.varint(eventField.step, step),
    protobuf.bytes(eventField.summary, ...summary),
  ])
}

/** The step and the tags of an event. */
export function decodeTags(event: Buffer): { readonly step: number; readonly tags: string[] } {
  let step = 0
  const tags: string[] = []
  for (const { number, value } of protobufFields(event)) {
    if (number === eventField.step && typeof value === 'number') step = value
    if (number !== eventField.summary || typeof value === 'number') continue
    for (const entry of protobufFields(value)) {
      if (entry.number !== summaryField.value || typeof entry.value === 'number') continue
      for (const part of protobufFields(entry.value))
        if (part.number === valueField.tag && typeof part.value !== 'number') tags.push(part.value.toString('utf8'))
    }
  }
  return { step, tags }
}
