import type { HttpResponse } from '@aworld-train/core'
import { sendText } from '../stages/encode.ts'

/** Answers JSON that holds a secret, or that is true for a moment only. */
export function sendAdmin(response: HttpResponse, status: number, value: object): void {
  sendText(response, status, 'application/json', JSON.stringify(value), { 'cache-control': 'no-store' })
}
