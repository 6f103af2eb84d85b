/**
 * `POST /v1/together`: several calls of this API as one, of which all are done or none. Each is answered as if it were
 * alone, on top of those before it; the first that is refused undoes all, and its refusal is the answer, with the call
 * named in `param`. `dry_run` refuses the same and does nothing.
 *
 * A call may name a record that an earlier one makes: the text `urn:gatehouse:created:NAME`, in a path or a body, stands
 * for the id in the answer of the call whose `creates` is NAME.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { conventions } from '../conventions.ts'
import { type Answers, callAs, refusalOf } from './call-as.ts'
import { labelled, labelRoutes } from './labels.ts'
import { isOfRecord, recordPaths } from './record-paths.ts'

/** A list costs the square of its length (store/transaction.ts). */
const mostCalls = 500

const callSchema = z.strictObject({
  method: z.enum(['POST', 'PATCH', 'DELETE']),
  path: z
    .string()
    .max(500)
    .regex(/^\/v1\/[^?#\s]+$/, 'Write a path of this API'),
  body: z.record(z.string(), z.unknown()).optional(),
  if_match: z.number().int().optional().describe('The version that is changed'),
  creates: z
    .string()
    .regex(/^[A-Za-z0-9._~%!*'():-]{1,700}$/)
    .optional()
    .describe('The name by which later calls name the record that this one makes'),
})

const labelSchema = z.strictObject({
  path: z.string().max(100).describe('Where the records of its kind are: /v1/teams'),
  id: z.string().max(700),
  label: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, 'Write 1 to 63 letters, digits and . _ / -')
    .nullable()
    .describe('null takes it away'),
})

export interface TogetherRouteOptions {
  ledger: Database
  fetch: Answers
  /** Runs work and makes the changes of it, all or none. */
  together<Result>(work: () => Promise<Result>, options: { dryRun: boolean }): Promise<Result>
}

export const togetherRoutes = ({ fetch, together, ledger }: TogetherRouteOptions) =>
  new Elysia({ name: 'together' })
    .use(conventions)
    .use(labelRoutes(ledger))
    .post(
      '/v1/together',
      async ({ request, principal, body: { calls, labels, dry_run: dryRun } }) => {
        requireRecords(calls)
        requireLabels(labels, principal)
        const answers = await together(
          async () => {
            const made = new Map<string, string>()
            const done: Record<string, unknown>[] = []
            for (const [index, call] of calls.entries()) {
              const answer = await answerOf(fetch, request, withIds(call, made), index)
              const id = answer.id ?? answer.client_id
              if (call.creates !== undefined && typeof id === 'string') made.set(call.creates, id)
              done.push(answer)
            }
            if (labels.length > 0) await ledger.write(labelled(withIds(labels, made)))
            return done
          },
          { dryRun },
        )
        return { answers }
      },
      {
        access: 'catalog:write',
        body: z.strictObject({
          calls: z.array(callSchema).max(mostCalls),
          labels: z.array(labelSchema).max(5000).default([]).describe('Which files records come from'),
          dry_run: z.boolean().default(false).describe('Only say whether all would be done'),
        }),
        response: z.object({ answers: z.array(z.record(z.string(), z.unknown())) }),
        failures: [403, 404, 409, 412],
        detail: {
          tags: ['Configuration'],
          summary: 'Makes several calls of this API, all or none; each needs the permission of its own',
        },
      },
    )

type Call = z.infer<typeof callSchema>

/** Another list within a list, or a call whose effect is not in the databases, could not be undone. */
function requireRecords(calls: readonly Call[]): void {
  const index = calls.findIndex((call) => !isOfRecord(call))
  if (index < 0) return
  throw new Failure('invalid_parameter', {
    param: `calls.${index}.path`,
    message: 'Only calls that make, change or delete a record of the configuration can be made together',
  })
}

/** A label decides what `apply --prune` deletes, so who gives or takes one must be allowed to change the record. */
function requireLabels(labels: readonly z.infer<typeof labelSchema>[], { permissions }: Principal): void {
  for (const [index, { path }] of labels.entries()) {
    const needed = recordPaths[path]
    const param = `labels.${index}.path`
    if (needed === undefined) throw new Failure('invalid_parameter', { param, message: 'There are no such records' })
    if (!permissions.has(needed)) {
      throw new Failure('permission_denied', { param, message: `A label of these records needs ${needed}` })
    }
  }
}

const created = /urn:gatehouse:created:([A-Za-z0-9._~%!*'():-]+)/g

/** With the ids of records that were made meanwhile. */
function withIds<Value>(value: Value, ids: ReadonlyMap<string, string>): Value {
  const text = JSON.stringify(value)
  return text.includes('urn:gatehouse:created:')
    ? JSON.parse(text.replaceAll(created, (whole, name: string) => ids.get(name) ?? whole))
    : value
}

/** The answer of one call. Throws its refusal. */
async function answerOf(
  fetch: Answers,
  asked: Request,
  { if_match: version, ...call }: Call,
  index: number,
): Promise<Record<string, unknown>> {
  const answer = await callAs(fetch, asked, { ...call, version })
  if (answer.ok) return z.record(z.string(), z.unknown()).parse(await answer.json())
  const where = `calls.${index}`
  throw await refusalOf(answer, (param) => (param ? `${where}.body.${param}` : where))
}
