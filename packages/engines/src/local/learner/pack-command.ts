import { attentionWidths } from '../model-config.ts'
import type { WorkerContext } from '../pool/worker-context.ts'

/** Packs the forward weights again after the parameters changed. */
export function packCommand(worker: WorkerContext): void {
  const units = worker.layout.model.layers + 1
  for (let unit = worker.nextTask(); unit < units; unit = worker.nextTask()) packUnit(worker, unit)
}

/** Packs one layer, or the head (the last unit). */
function packUnit({ kernels, layout }: WorkerContext, unit: number): void {
  const { model, table, parameters, packed } = layout
  const { hiddenSize: d, intermediateSize: width } = model
  const { query, fused } = attentionWidths(model)
  const pack = (inputs: number, outputs: number, offset: number, to: number): void =>
    kernels.prepack(1, inputs, outputs, parameters + offset * 4, inputs, to)
  if (unit === model.layers) {
    pack(d, model.vocabularySize, table.head, packed.head)
    return
  }
  const from = table.layers[unit]!
  const to = packed.layers[unit]!
  pack(d, fused, from.qkv, to.qkv)
  pack(query, d, from.output, to.output)
  pack(d, 2 * width, from.gateUp, to.gateUp)
  pack(width, d, from.down, to.down)
}
