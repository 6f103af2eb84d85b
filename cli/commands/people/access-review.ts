/** `access-review`: tokens that nobody uses or whose people have left, and their revocation together. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { reviewReasons } from '../../../src/members/access-review/review-reasons.ts'
import type { Api } from '../../command/api.ts'
import { connect, pageFlags, pageQuery, pageSchema, readPage, recordFlags, showPage } from '../../command/record.ts'
import { readList } from '../../command/values.ts'
import { confirm } from '../../terminal/confirm.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const reasons: string[] = [...reviewReasons]
const filterFlags = {
  reason: { type: 'enum', options: reasons, description: 'Only tokens for which this holds' },
  'unused-days': { type: 'string', description: 'For how many days nobody has used them (default 90)', valueHint: 'N' },
} as const
const tokenFlag = {
  'token-id': { type: 'string', repeatable: true, description: 'A token (repeatable)', valueHint: 'NAME|UUID' },
} as const

export const accessReview = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Find and revoke tokens that nobody uses or whose people have left' },
    subCommands: {
      list: () => list(terminal),
      revoke: () => revoke(terminal),
    },
  })

const path = '/v1/access-review'

const list = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List these tokens, each with the reasons' },
    args: { ...filterFlags, ...pageFlags, ...recordFlags },
    async run({ args }) {
      const query = { reason: args.reason, unused_days: args['unused-days'], ...pageQuery(args) }
      const page = await readPage(connect(args, terminal), { path, query }, { of: 'tokens', all: args.all })
      const fields = ['token_id', 'name', 'reasons', 'created_by', 'last_used_at']
      await showPage(page, { of: 'tokens', fields, json: args.json, terminal })
    },
  })

const revokedSchema = z.looseObject({ tokens: z.array(z.object({ token_id: z.string(), result: z.string() })) })
/** As many as one call takes. */
const atOnce = 100

const revoke = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Revoke tokens: those that are named, or all for which a reason holds' },
    args: {
      ...tokenFlag,
      ...filterFlags,
      yes: { type: 'boolean', description: 'Confirm: this cannot be undone' },
      ...recordFlags,
    },
    async run({ args }) {
      const named = args['token-id'] === undefined ? null : readList('--token-id', args['token-id'])
      if ((named === null) === (args.reason === undefined)) {
        throw new Failure('usage', { message: 'Use either --token-id or --reason' })
      }
      const which = named === null ? 'all tokens for which this holds' : named.join(', ')
      await confirm(args.yes, `This revokes ${which}, which cannot be undone`, terminal)
      const api = connect(args, terminal)
      const ids = named ?? (await idsOf(api, { reason: args.reason, unused_days: args['unused-days'] }))
      const done: { token_id: string; result: string }[] = []
      for (let start = 0; start < ids.length; start += atOnce) {
        const body = { token_ids: ids.slice(start, start + atOnce) }
        const { tokens } = await api.json(
          { method: 'POST', path: `${path}/revoke`, body, references: { token_ids: '/v1/tokens' } },
          revokedSchema,
        )
        done.push(...tokens)
        if (!args.json) await terminal.write(tokens.map(({ token_id, result }) => `${result} ${token_id}\n`).join(''))
      }
      if (args.json) await terminal.write(`${JSON.stringify({ tokens: done })}\n`)
      else if (done.length === 0) terminal.note('No such tokens')
    },
  })

const reviewed = z.array(z.looseObject({ token_id: z.string() }))

/** All of a list, before any of it is revoked. */
async function idsOf(api: Api, filters: Record<string, string | undefined>): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path, query: { ...filters, cursor } }, pageSchema)
    ids.push(...reviewed.parse(page.tokens).map(({ token_id }) => token_id))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return ids
}
