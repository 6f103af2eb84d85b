/** Budgets as records: what may be spent in a window, and by whom. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, onlyWhere, refersToKind, resource } from '../../api/resource.ts'
import { recordLists } from '../../api/together/record-paths.ts'
import { isWholeNano, largestAmount } from '../../lib/money.ts'
import { identified, limitName, per, versioned } from './limit-fields.ts'

const { team, user, mcp_server } = recordLists
/** By the kind of a scope that names one record, where those records are listed. */
export const scopeLists = { team, user, mcp_server }

const byId = Object.entries(scopeLists).map(([kind, path]) => [kind, { path, by: 'id' as const }] as const)

const scopeSchema = z
  .strictObject({
    kind: z
      .enum(['organization', 'team', 'user', 'token', 'mcp_server'])
      .describe('Whose spend it bounds; token: that of the tokens that name this budget'),
    id: z
      .uuid()
      .nullable()
      .default(null)
      .describe('The team, the user or the MCP server')
      .meta(refersToKind('kind', Object.fromEntries(byId))),
    tool: z
      .string()
      .min(1)
      .max(128)
      .nullable()
      .default(null)
      .describe("The MCP server's own name of the only tool that it bounds")
      .meta(onlyWhere('kind', 'mcp_server')),
  })
  .refine(({ kind, id }) => kind in scopeLists === (id !== null), {
    path: ['id'],
    message: 'Name the team, the user or the MCP server whose spend it bounds; for the other kinds leave it out',
  })
  .refine(({ kind, tool }) => kind === 'mcp_server' || tool === null, {
    path: ['tool'],
    message: 'is given for an MCP server only',
  })

const amount = z
  .number()
  .positive()
  .max(largestAmount)
  .refine(isWholeNano, 'An amount has at most nine decimals: the least is a nano-dollar')
  .describe('US dollars in a window')

export const windowSchema = z.enum(['day', 'week', 'month', 'total'])

const fields = {
  max_budget: amount,
  window: windowSchema.describe('What the amount is for'),
  scope: scopeSchema,
}

export const budgetFields = z.object({ ...fields, per: per.unwrap() }).partial()

const record = z.object({
  ...identified,
  currency: z.literal('USD'),
  max_budget: z.number(),
  current_spend: z
    .number()
    .describe('What was booked in the present window, of all values together; requests still running are not yet'),
  remaining: z
    .number()
    .describe('What of max_budget is left of the present window; with per, what a value has that used nothing'),
  window: z.string(),
  resets_at: z.iso.datetime().nullable().describe('When the next window begins; null for total'),
  forecast: z
    .number()
    .nullable()
    .describe(
      'US dollars at the end of the window, if spend goes on at its pace so far; null for total, and in the first twentieth of a window',
    ),
  scope: z.object({ kind: z.string(), id: z.string().nullable(), tool: z.string().nullable() }),
  per: z.string().nullable(),
  values: z
    .object({
      count: z.number().int().describe('Values that spent something'),
      exhausted: z.number().int().describe('Values that spent all of max_budget'),
      nearly_exhausted: z.number().int().describe('Values that spent 80 % or more of it, and not all'),
      most_spent: z.number().describe('What the value spent that spent most'),
    })
    .nullable()
    .describe('With per, how its values stand in the present window'),
  ...versioned,
})

const usage = z
  .object({
    used: z.number().describe('US dollars settled in this window'),
    open: z.number().describe('Held by requests that run, or by gateways that did not answer: may be used yet'),
  })
  .describe('How the budget stands when gateways have given back what no request holds')

export const budgetResource = resource({
  name: 'budget',
  one: 'budget',
  plural: 'budgets',
  path: '/v1/budgets',
  tag: 'Budgets',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Limit what the organization, a team, a person, chosen tokens or calls of MCP servers may spend in a window',
  summaries: {
    list: 'List budgets, in the order they were made',
    get: 'Show one budget',
    create: 'Make a budget',
    update: 'Change the name or the amount of a budget',
    delete: 'Delete a budget that no token in force names',
  },
  record,
  create: z.strictObject({ name: limitName, ...fields, per }),
  update: z.strictObject({ name: limitName.optional(), max_budget: amount.optional() }),
  filters: z.strictObject({ name: nameFilter }),
  updated: record.extend({ usage }),
  columns: ['id', 'name', 'max_budget', 'window', 'scope', 'per', 'values'],
  flags: {
    max_budget: { hint: 'USD' },
    window: { default: 'month' },
    'scope.kind': { name: 'scope', default: 'organization' },
    'scope.id': { hint: 'NAME|UUID' },
  },
})
