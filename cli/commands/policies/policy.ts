/** `policy list|get|apply|test|replay|delete|order`. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { deleteOf, getOf, idArgument, listOf, recordPath } from '../../command/resource-commands.ts'
import { readStructuredFile } from '../../command/settings.ts'
import { columns, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { applyCommand } from '../apply/apply.ts'

const policies = {
  plural: 'policies',
  path: '/v1/policies',
  columns: ['order', 'id', 'name', 'kind', 'stages', 'mode', 'enabled'],
  summaries: {
    list: 'List policies in their order',
    get: 'Show one policy',
    delete: 'Delete a policy, for tokens that name it too',
  },
}

export const policyCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Manage policies, and try one before it is in force' },
    subCommands: {
      list: async () => listOf(policies, terminal),
      get: async () => getOf(policies, terminal),
      apply: async () => applyCommand(terminal),
      test: async () => test(terminal),
      replay: async () => replay(terminal),
      delete: async () => deleteOf(policies, terminal),
      order: async () => order(terminal),
    },
  })

const findingsSchema = z.looseObject({
  verdict: z.string(),
  family: z.string(),
  reason_code: z.string(),
  findings: z.array(
    z.looseObject({
      name: z.string(),
      stage: z.string(),
      mode: z.string(),
      verdict: z.string(),
      reason_code: z.string(),
      targets: z.array(z.string()),
    }),
  ),
})

const test = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show what policies decide about a request, and about an answer to it; nothing is stored' },
    args: {
      request: { type: 'string', required: true, description: "The request's body, as a file", valueHint: 'FILE' },
      response: { type: 'string', description: "A whole answer's body", valueHint: 'FILE' },
      file: { type: 'string', alias: 'f', description: 'Policies to try, as apply takes them', valueHint: 'FILE' },
      'policy-id': {
        type: 'string',
        repeatable: true,
        description: 'Or a policy that exists (repeatable)',
        valueHint: 'NAME|UUID',
      },
      family: { type: 'string', description: 'The language of both (default: recognized)', valueHint: 'NAME' },
      ...recordFlags,
    },
    async run({ args }) {
      const { file, family, response } = args
      const ids = args['policy-id']
      if ((file === undefined) === (ids === undefined)) {
        throw new Failure('usage', {
          message: 'Give --file with policies to try, or --policy-id of policies that exist',
        })
      }
      const body = {
        ...(file === undefined ? {} : z.looseObject({ policies: z.unknown() }).parse(readStructuredFile(file))),
        ...(ids === undefined ? {} : { policy_ids: ids.split('\n') }),
        request: readStructuredFile(args.request),
        ...(response === undefined ? {} : { response: readStructuredFile(response) }),
        ...(family === undefined ? {} : { family }),
      }
      const call = {
        method: 'POST',
        path: '/v1/policies/test',
        body,
        references: { policy_ids: policies.path },
      } as const
      const tried = await connect(args, terminal).json(call, findingsSchema)
      if (args.json) return await terminal.write(`${JSON.stringify(tried)}\n`)
      const rows = tried.findings.map(({ name, stage, mode, verdict, reason_code, targets }) =>
        [name, stage, mode, verdict, reason_code, targets.join(', ')].map(printable),
      )
      const head = ['POLICY', 'STAGE', 'MODE', 'VERDICT', 'REASON', 'FOUND']
      if (rows.length > 0) await terminal.write(columns([head, ...rows]))
      await terminal.write(`Verdict: ${tried.verdict} (${tried.reason_code})\n`)
      if (family === undefined)
        terminal.note(`The request was read as ${tried.family}: --family names another language`)
    },
  })

const replaySchema = z.looseObject({
  examined: z.number(),
  matched: z.number(),
  undecided: z.number(),
  unreplayed: z.record(z.string(), z.number()),
  verdicts: z.record(z.string(), z.number()),
  complete: z.boolean(),
})

const replay = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show what a policy would have decided about the requests that were recorded' },
    args: {
      ...idArgument,
      since: { type: 'string', required: true, description: 'RFC 3339, or 15m, 12h, 7d, 4w', valueHint: 'WHEN' },
      ...recordFlags,
    },
    async run({ args }) {
      const path = `${recordPath(policies, args.id)}/replay`
      const call = { method: 'POST', path, body: { since: args.since } } as const
      const replayed = await connect(args, terminal).json(call, replaySchema)
      if (args.json) return await terminal.write(`${JSON.stringify(replayed)}\n`)
      const { examined, matched, undecided, unreplayed, verdicts, complete } = replayed
      const rows = Object.entries(verdicts).map(([verdict, count]) => [verdict, String(count)])
      await terminal.write(
        columns([
          ['examined', String(examined)],
          ['matched', String(matched)],
          ...rows,
          ['undecided', String(undecided)],
        ]),
      )
      for (const [reason, count] of Object.entries(unreplayed)) terminal.note(`Not replayed: ${count} ${reason}`)
      if (!complete) terminal.note('There are older requests in the window that were not looked at')
    },
  })

const order = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Set the order of all policies' },
    args: {
      policy_ids: {
        type: 'positional',
        required: true,
        description: 'The names or ids of all policies, separated by commas',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const ids = args.policy_ids.split(',').map((id) => id.trim())
      const references = { policy_ids: policies.path }
      const call = { method: 'PUT', path: '/v1/policies/order', body: { policy_ids: ids }, references } as const
      const ordered = await connect(args, terminal).json(call, z.looseObject({ policy_ids: z.array(z.string()) }))
      await terminal.write(args.json ? `${JSON.stringify(ordered)}\n` : `${ordered.policy_ids.join('\n')}\n`)
    },
  })
