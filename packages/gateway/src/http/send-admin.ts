import type { ServerResponse } from 'node:http'
import { sendText } from '../stages/encode.ts'

/** Answers with JSON that no cache may keep: it holds a secret, or changes at any moment. */
export function sendAdmin(response: ServerResponse, status: number, json: string | Buffer): void {
  sendText(response, status, 'application/json', json, { 'cache-control': 'no-store' })
}
