import { attentionWidths } from '../model-config.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import { samplerWord } from './sampler-layout.ts'

/** Copies and packs the trainer's weights into the buffer that does not sample. The main thread swaps the two afterwards. */
export function publishCommand({ kernels, layout, views, nextTask }: WorkerContext): void {
  const { model, table, parameters, sampler } = layout
  const { hiddenSize: d, intermediateSize: width, vocabularySize } = model
  const { query, fused } = attentionWidths(model)
  const to = sampler.published[Atomics.load(views.i32, sampler.control / 4 + samplerWord.buffer) === 0 ? 1 : 0]
  const pack = (inputs: number, outputs: number, offset: number, packed: number) => () =>
    kernels.prepack(1, inputs, outputs, parameters + offset * 4, inputs, packed)
  const tasks = [
    () => kernels.copy(to.parameters, parameters, table.count),
    pack(d, vocabularySize, table.head, to.packed.head),
    ...table.layers.flatMap((layer, index) => {
      const packed = to.packed.layers[index]!
      return [
        pack(d, fused, layer.qkv, packed.qkv),
        pack(query, d, layer.output, packed.output),
        pack(d, 2 * width, layer.gateUp, packed.gateUp),
        pack(width, d, layer.down, packed.down),
      ]
    }),
  ]
  for (let task = nextTask(); task < tasks.length; task = nextTask()) tasks[task]!()
}
