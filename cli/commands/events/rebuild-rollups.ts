/** `events rebuild-rollups`: the sums that charts show, made anew of the events. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { createApi } from '../../command/api.ts'
import { connectionFlags, findConnection } from '../../command/profile.ts'
import { linesOf } from '../../command/stream.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const line = z.object({ kind: z.enum(['progress', 'summary']), corrected: z.number(), growing: z.number() })

export const rebuildRollups = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Rebuild the rollups that charts show from the events, where they differ' },
    args: { json: { type: 'boolean', description: 'Print one JSON object' }, ...connectionFlags },
    async run({ args }) {
      const api = createApi(findConnection(args, terminal), fetch)
      const answer = await api.response({ method: 'POST', path: '/v1/events/series/rebuild', body: {} })
      for await (const text of linesOf(answer)) {
        const { kind, corrected, growing } = line.parse(JSON.parse(text))
        if (kind === 'progress') {
          terminal.progress?.(`${corrected} sums corrected`)
          continue
        }
        await terminal.write(args.json ? `${text}\n` : `${corrected} sums corrected\n`)
        if (growing > 0) terminal.note(`${growing} hours and days were left, because too much came in: run it again`)
        return
      }
      throw new Failure('api_unreachable', { message: 'The answer broke off: run it again' })
    },
  })
