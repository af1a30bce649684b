export { readAnswer as readSglangAnswer } from './sglang/sglang-reader.ts'
export { readAnswer as readVllmAnswer } from './vllm/vllm-reader.ts'
