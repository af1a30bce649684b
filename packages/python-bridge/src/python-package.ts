import { fileURLToPath } from 'node:url'

/** Folder to put on PYTHONPATH: it holds the Python package `aworld_train_bridge`. */
export const bridgeDirectory: string = fileURLToPath(new URL('../python', import.meta.url))
