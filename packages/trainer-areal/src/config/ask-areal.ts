import { askConfiguration } from '@aworld-train/python-bridge'
import type { KeyTree } from '@aworld-train/training'

/** Has AReaL's own classes read a configuration. */
export const askAreal = (
  question: { readonly configuration: KeyTree },
  { python, signal }: { readonly python: string; readonly signal?: AbortSignal | undefined },
) => askConfiguration(question, { python, module: 'aworld_train_bridge.areal', title: 'AReaL', signal })
