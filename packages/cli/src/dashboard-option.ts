import { z } from 'zod'

/** The flag `--dashboard`. */
export const DashboardOption = z
  .string()
  .refine((text) => text === 'on' || text === 'off' || (/^\d+$/.test(text) && Number(text) <= 65_535), 'Give on, off or a port.')
  .optional()

/** Reads the typed value; an omitted flag gives nothing. */
export function readDashboardOption(text: string | undefined): boolean | { readonly port: number } | undefined {
  if (text === undefined) return undefined
  return text === 'on' || text === 'off' ? text === 'on' : { port: Number(text) }
}
