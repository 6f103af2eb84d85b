/** What the commands about tokens share: the path, the flags, how a new token's secret is shown. */
import { z } from 'zod'
import { recordSchema, showRecord } from '../../command/record.ts'
import { pathOf } from '../../command/record-names.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const tokenPath = (id: string, action = ''): string => pathOf('/v1/tokens', id) + action

export const madeSchema = recordSchema.extend({ token_value: z.string() })

/**
 * Shows a new token. Without `json` stdout gets the secret alone, so that `$(gatehouse token create …)` can store it,
 * and stderr the rest.
 */
export async function showMade(
  made: z.infer<typeof madeSchema>,
  json: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  if (json) return await showRecord(made, true, terminal)
  const { token_value, ...record } = made
  const write = async (text: string | Uint8Array) => terminal.note(String(text).trimEnd())
  await showRecord(record, false, { ...terminal, write })
  terminal.note('The secret is shown only now: keep it where secrets are kept')
  await terminal.write(`${token_value}\n`)
}
