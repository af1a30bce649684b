import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readSafetensors, type Tensor, writeSafetensors } from '@aworld-train/engines/local'

const rank = 2
const alpha = 4
const projections = ['q_proj', 'v_proj'] as const

/** A deterministic number in (-scale, scale) for each index. */
const wave = (index: number, scale: number): number => scale * Math.sin(1 + index * 12.9898)

/**
 * Writes a LoRA adapter in PEFT's format (adapter_config.json, adapter_model.safetensors), and beside it the model with the
 * adapter merged into its weights.
 */
export async function writeAdapter(model: string, adapter: string, merged: string): Promise<void> {
  const { tensors } = await readSafetensors(join(model, 'model.safetensors'))
  const parts: [string, Tensor][] = []
  const whole: [string, Tensor][] = []
  for (const [name, { shape, data }] of tensors) {
    const projection = projections.find((each) => name.endsWith(`self_attn.${each}.weight`))
    if (!projection) {
      whole.push([name, { shape, data }])
      continue
    }
    const [outputs, inputs] = shape as [number, number]
    const down = Float32Array.from({ length: rank * inputs }, (_, index) => wave(index, 0.3))
    const up = Float32Array.from({ length: outputs * rank }, (_, index) => wave(index + 7, 0.3))
    const layer = `base_model.model.${name.slice(0, -'.weight'.length)}`
    parts.push(
      [`${layer}.lora_A.weight`, { shape: [rank, inputs], data: down }],
      [`${layer}.lora_B.weight`, { shape: [outputs, rank], data: up }],
    )
    const sum = Float32Array.from(data as Float32Array)
    for (let row = 0; row < outputs; row++)
      for (let column = 0; column < inputs; column++)
        for (let part = 0; part < rank; part++)
          sum[row * inputs + column]! += (alpha / rank) * up[row * rank + part]! * down[part * inputs + column]!
    whole.push([name, { shape, data: sum }])
  }
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: 'tiny',
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    target_modules: projections,
  }
  await Promise.all([mkdir(adapter, { recursive: true }), mkdir(merged, { recursive: true })])
  await writeFile(join(adapter, 'adapter_config.json'), JSON.stringify(config))
  await writeSafetensors(join(adapter, 'adapter_model.safetensors'), parts, { format: 'pt' })
  await writeSafetensors(join(merged, 'model.safetensors'), whole, { format: 'pt' })
  for (const file of ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'])
    await writeFile(join(merged, file), await readFile(join(model, file)))
}
