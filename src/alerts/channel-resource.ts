/** Channels as records: where notices of alerts go. Addresses and secrets are stored encrypted and never shown again. */
import { z } from 'zod'
import { idParams, resource, secret } from '../api/resource.ts'
import { nameText } from '../identity/free-text.ts'

export const channelKinds = ['webhook', 'slack', 'teams', 'pagerduty', 'email'] as const
export type ChannelKind = (typeof channelKinds)[number]

const kind = z
  .enum(channelKinds)
  .describe(
    'webhook: JSON, signed as Standard Webhooks say; slack: an incoming webhook; teams: a workflow that posts a card; pagerduty: Events API v2; email: by SMTP',
  )

const mailAddress = z
  .string()
  .max(254)
  .regex(/^[^\s@<>"(),:;\\[\]]+@[^\s@<>"(),:;\\[\]]+$/, 'Write one e-mail address: ann@example.com')

const fields = {
  name: nameText(100).describe('What it is called'),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .refine((text) => URL.canParse(text) && new URL(text).username === '' && new URL(text).password === '', {
      error: 'Leave user and password out',
    })
    .describe('Where it is sent; of pagerduty only where it is not https://events.pagerduty.com/v2/enqueue')
    .meta(secret),
  signing_secret: z
    .string()
    .regex(
      /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/,
      'Write whsec_ and 24 to 64 bytes in base64: echo "whsec_$(openssl rand -base64 32)"',
    )
    .describe('For webhook: the key of the signature, whsec_ and 24 to 64 bytes in base64')
    .meta(secret),
  routing_key: z
    .string()
    .regex(/^[A-Za-z0-9]{32}$/, 'A routing key has 32 letters and digits')
    .describe('For pagerduty: the integration key of the service')
    .meta(secret),
  smtp_host: z
    .string()
    .regex(/^[A-Za-z0-9.:-]{1,253}$/, 'Write a host name or an address')
    .describe('For email: the server'),
  smtp_port: z.number().int().min(1).max(65_535).describe('For email: its port'),
  smtp_tls: z
    .enum(['starttls', 'implicit', 'none'])
    .describe('For email: how the connection is encrypted; none is for a server on this host, without a user'),
  smtp_username: z.string().min(1).max(320).describe('For email: who signs in at the server'),
  smtp_password: z.string().min(1).max(1000).describe('For email: the password').meta(secret),
  mail_from: mailAddress.describe('For email: the sender'),
  mail_to: z.array(mailAddress).max(50).describe('For email: who gets it'),
  enabled: z.boolean().describe('Whether anything is sent to it'),
}

/** What of a channel is kept as JSON. */
export const channelConfig = z.object({
  smtp_host: fields.smtp_host.nullable().default(null),
  smtp_port: fields.smtp_port.default(587),
  smtp_tls: fields.smtp_tls.default('starttls'),
  smtp_username: fields.smtp_username.nullable().default(null),
  mail_from: fields.mail_from.nullable().default(null),
  mail_to: fields.mail_to.default([]),
})
export type ChannelConfig = z.infer<typeof channelConfig>

/** What of a channel is sealed. */
export const channelSecrets = z.object({
  url: fields.url.optional(),
  signing_secret: fields.signing_secret.optional(),
  routing_key: fields.routing_key.optional(),
  smtp_password: fields.smtp_password.optional(),
})
export type ChannelSecrets = z.infer<typeof channelSecrets>

const record = z.object({
  id: z.uuid(),
  name: z.string(),
  kind: z.enum(channelKinds),
  host: z.string().nullable().describe('The host that it is sent to'),
  has_url: z.boolean(),
  has_signing_secret: z.boolean(),
  has_routing_key: z.boolean(),
  has_smtp_password: z.boolean(),
  ...channelConfig.shape,
  enabled: z.boolean(),
  state: z.enum(['ok', 'failing', 'unused']).describe('How it went last'),
  failing_since: z.iso.datetime().nullable(),
  last_error: z.string().nullable(),
  next_try_at: z.iso.datetime().nullable().describe('Notices wait until then'),
  last_sent_at: z.iso.datetime().nullable(),
  waiting: z.number().int().describe('Notices that were not delivered yet'),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type ChannelRecord = z.infer<typeof record>

export const channelResource = resource({
  name: 'alert-channel',
  one: 'alert channel',
  plural: 'alert_channels',
  path: '/v1/alert-channels',
  tag: 'Alerts',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Say where notices of alerts go: webhooks, Slack, Teams, PagerDuty, e-mail',
  summaries: {
    list: 'List alert channels, in the order they were made',
    get: 'Show one alert channel, without its secrets',
    create: 'Make an alert channel',
    update: 'Change an alert channel; a secret that is left out stays',
    delete: 'Delete an alert channel; notices that wait are dropped',
  },
  notes: { update: 'another address needs the password or routing key again; null takes a field away' },
  record,
  create: z.strictObject({
    name: fields.name,
    kind,
    ...channelSecrets.shape,
    ...channelConfig.shape,
    enabled: fields.enabled.default(true),
  }),
  update: z.strictObject({
    name: fields.name.optional(),
    url: fields.url.nullable().optional(),
    signing_secret: fields.signing_secret.nullable().optional(),
    routing_key: fields.routing_key.nullable().optional(),
    smtp_password: fields.smtp_password.nullable().optional(),
    smtp_host: fields.smtp_host.nullable().optional(),
    smtp_port: fields.smtp_port.optional(),
    smtp_tls: fields.smtp_tls.optional(),
    smtp_username: fields.smtp_username.nullable().optional(),
    mail_from: fields.mail_from.nullable().optional(),
    mail_to: fields.mail_to.optional(),
    enabled: fields.enabled.optional(),
  }),
  columns: ['id', 'name', 'kind', 'host', 'state', 'enabled', 'waiting'],
  flags: { smtp_host: { hint: 'HOST' }, mail_from: { hint: 'ADDRESS' }, mail_to: { hint: 'ADDRESS' } },
})
