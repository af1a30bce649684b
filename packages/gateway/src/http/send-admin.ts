import type { ServerResponse } from 'node:http'
import { sendText } from '../stages/encode.ts'

/** Answers JSON that holds a secret, or that is true for a moment only. */
export function sendAdmin(response: ServerResponse, status: number, json: string | Buffer): void {
  sendText(response, status, 'application/json', json, { 'cache-control': 'no-store' })
}
