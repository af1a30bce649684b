import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decodeForwardBackward, decodeSample, encodeForwardBackward } from './messages.ts'

/** The goldens were written by the SDK itself: goldens/make-goldens.py. */
const goldens = JSON.parse(readFileSync(new URL('../goldens/tinker-wire.json', import.meta.url), 'utf8')) as {
  readonly requests: readonly {
    readonly fields: { modelId: string; seqId: number; lossFunction: string; lossConfig: Record<string, number>; forwardOnly: boolean }
    readonly rows: readonly { readonly tokens: number[]; readonly inputs: Record<string, number[]> }[]
    readonly bytes: string
  }[]
  readonly sample: {
    readonly sequences: readonly { stopped: boolean; tokenIds: number[]; logprobs: number[] }[]
    readonly bytes: string
  }
  readonly outputs: readonly { readonly logprobs: number[][]; readonly metrics: Record<string, number>; readonly bytes: string }[]
}
const buffer = (text: string) => Buffer.from(text, 'base64')

describe('the bytes of the SDK', () => {
  test.each(goldens.requests)('a request with the loss $fields.lossFunction is the same, byte for byte', ({ fields, rows, bytes }) => {
    const encoded = encodeForwardBackward({
      ...fields,
      rows: rows.map(({ tokens, inputs }) => ({
        tokens: Int32Array.from(tokens),
        inputs: Object.fromEntries(
          Object.entries(inputs).map(([name, values]) => [
            name,
            name === 'target_tokens' ? Int32Array.from(values) : Float32Array.from(values),
          ]),
        ),
      })),
    })
    expect(encoded.toString('hex')).toBe(buffer(bytes).toString('hex'))
  })

  test('sequences have their ids, logprobs and ends', () => {
    const { sequences, bytes } = goldens.sample
    expect(
      decodeSample(buffer(bytes)).map(({ tokenIds, logprobs, ...rest }) => ({
        ...rest,
        tokenIds: [...tokenIds],
        logprobs: [...logprobs],
      })),
    ).toEqual(sequences)
  })

  test.each(goldens.outputs)('a result has its rows, in 32 or 16 bits, and its metrics', ({ logprobs, metrics, bytes }) => {
    const result = decodeForwardBackward(buffer(bytes))
    expect(result.logprobs.map((row) => [...row])).toEqual(logprobs)
    expect(result.metrics).toEqual(metrics)
  })

  test('a message that is cut anywhere is refused, or has fewer fields, and never reads beyond its end', () => {
    const whole = buffer(goldens.sample.bytes)
    const outcomes = Array.from({ length: whole.length }, (_, length) => {
      try {
        return decodeSample(whole.subarray(0, length)).length
      } catch (error) {
        return (error as Error).constructor
      }
    })
    expect(new Set(outcomes)).toEqual(new Set([0, 1, 2, RangeError]))
    expect(outcomes.filter((each) => each === RangeError).length).toBeGreaterThan(whole.length / 2)
    const output = buffer(goldens.outputs[0]!.bytes)
    expect(() => decodeForwardBackward(output.subarray(0, output.length / 2))).toThrow(RangeError)
  })
})
