import type { KeyTree } from '@aworld-train/training'
import { askConfiguration } from '../../shared/process/ask-configuration.ts'

/** Has AReaL's own classes read a configuration. */
export const askAreal = (
  question: { readonly configuration: KeyTree },
  { python, signal }: { readonly python: string; readonly signal?: AbortSignal | undefined },
) => askConfiguration(question, { python, module: 'aworld_train_bridge.areal', title: 'AReaL', signal })
