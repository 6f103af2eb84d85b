/** Alerts as records: what is watched, from which threshold on it is announced, and to whom. */
import { z } from 'zod'
import { idParams, refersTo, refersToKind, resource } from '../api/resource.ts'
import { recordLists } from '../api/together/record-paths.ts'
import { nameText } from '../identity/free-text.ts'
import { conditionNames, type ScopeKind, scopeKinds } from './conditions/condition-table.ts'

export const severities = ['info', 'warning', 'critical'] as const

const scopeRecords: Readonly<Record<Exclude<ScopeKind, 'organization'>, { path: string; by: 'id' | 'name' }>> = {
  team: { path: recordLists.team, by: 'id' },
  gateway: { path: recordLists.gateway, by: 'id' },
  provider: { path: recordLists.provider, by: 'name' },
  model: { path: recordLists.model, by: 'id' },
  token: { path: recordLists.token, by: 'id' },
  budget: { path: recordLists.budget, by: 'id' },
}

const scope = z
  .strictObject({
    kind: z.enum(scopeKinds).default('organization').describe('For what it watches'),
    id: z
      .string()
      .min(1)
      .max(200)
      .nullable()
      .default(null)
      .describe('The id of the team, gateway, token or budget; the name of the provider or model')
      .meta(refersToKind('kind', scopeRecords)),
  })
  .refine(({ kind, id }) => (kind === 'organization') === (id === null), {
    path: ['id'],
    message: 'is given for every kind but organization, and for that not',
  })
  .prefault({})
  .describe('For what it watches')

const thresholds = z
  .array(z.number().min(0).max(1_000_000_000))
  .min(1)
  .max(5)
  .describe('From where on it fires; of several each fires once. Usual ones and their units are in the handbook')
const windowMinutes = z
  .number()
  .int()
  .min(1)
  .max(1440)
  .describe('How far it looks back: for error_rate, refusals and bound_violated')
const atLeast = z
  .number()
  .min(0)
  .max(1_000_000_000)
  .describe(
    'The least before it fires: refused requests for refusals, requests of the provider for error_rate, US dollars of the hour for spend_rate',
  )

const fields = {
  name: nameText(100).describe('What it is called'),
  severity: z.enum(severities).describe('How bad it is; channels show it'),
  reasons: z
    .array(z.string().regex(/^[a-z0-9_.*-]{1,100}$/, 'Write a reason code, such as policy.terms or tokens.*'))
    .max(50)
    .describe('For refusals: only those with these reason codes; * stands for any text'),
  quiet_minutes: z
    .number()
    .int()
    .min(0)
    .max(10_080)
    .describe('For how long it does not fire again about the same thing after it fired'),
  channel_ids: z
    .array(z.uuid().meta(refersTo('/v1/alert-channels')))
    .max(20)
    .describe('The channels that get notices; none: all of them'),
  send_resolved: z.boolean().describe('Whether channels get a notice when it is over'),
  enabled: z.boolean().describe('Whether it is looked at'),
}

/** What of an alert is kept as JSON. What is absent is as the condition's row of the table says. */
export const alertConfig = z.object({
  scope,
  thresholds: thresholds.nullable().default(null),
  window_minutes: windowMinutes.nullable().default(null),
  at_least: atLeast.nullable().default(null),
  severity: fields.severity.default('warning'),
  reasons: fields.reasons.default([]),
  quiet_minutes: fields.quiet_minutes.default(60),
  channel_ids: fields.channel_ids.default([]),
  send_resolved: fields.send_resolved.default(true),
})
export type AlertConfig = z.infer<typeof alertConfig>

const condition = z.enum(conditionNames).describe('What it watches; the page on alerts of the handbook explains each')

const record = z.object({
  id: z.uuid(),
  name: z.string(),
  condition: z.enum(conditionNames),
  watches: z.string().describe('The condition in words'),
  scope: z.object({ kind: z.string(), id: z.string().nullable() }),
  thresholds: z.array(z.number()),
  unit: z.string().describe('Of the thresholds'),
  unit_of_one: z.string().describe('The unit of a threshold of 1'),
  window_minutes: z.number().int().nullable(),
  at_least: z.number().nullable(),
  severity: z.enum(severities),
  reasons: z.array(z.string()),
  quiet_minutes: z.number().int(),
  channel_ids: z.array(z.string()),
  send_resolved: z.boolean(),
  enabled: z.boolean(),
  open: z.number().int().describe('How many things it has found that are not over'),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type AlertRecord = z.infer<typeof record>

export const alertResource = resource({
  name: 'alert',
  one: 'alert',
  plural: 'alerts',
  path: '/v1/alerts',
  tag: 'Alerts',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Be told when something needs a person: refusals, spend, errors, gateways, findings',
  summaries: {
    list: 'List alerts, in the order they were made',
    get: 'Show one alert',
    create: 'Make an alert',
    update: 'Change an alert; what it watches stays',
    delete: 'Delete an alert; what it has found stays in the history',
  },
  notes: { update: 'null takes the usual value of the condition' },
  record,
  create: z.strictObject({
    name: fields.name,
    condition,
    ...alertConfig.shape,
    enabled: fields.enabled.default(true),
  }),
  update: z.strictObject({
    name: fields.name.optional(),
    thresholds: thresholds.nullable().optional(),
    window_minutes: windowMinutes.nullable().optional(),
    at_least: atLeast.nullable().optional(),
    severity: fields.severity.optional(),
    reasons: fields.reasons.optional(),
    quiet_minutes: fields.quiet_minutes.optional(),
    channel_ids: fields.channel_ids.optional(),
    send_resolved: fields.send_resolved.optional(),
    enabled: fields.enabled.optional(),
  }),
  columns: ['id', 'name', 'condition', 'severity', 'thresholds', 'enabled', 'open'],
  flags: { 'scope.kind': { name: 'scope' }, 'scope.id': { hint: 'NAME|UUID' } },
})
